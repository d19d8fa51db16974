"""The numbers that Python and the library share are different from each other."""

from __future__ import annotations

from engine.plane import library


def test_no_two_things_have_one_number() -> None:
    told: tuple[int, ...] = (
        library.CLOCK,
        library.OPEN,
        library.ROUTE,
        library.CLOSE,
        library.WOKEN,
        library.ADMIT,
        library.SHUT,
        library.EMPTY,
    )
    told += (library.STOP, library.WATCH, library.LEAVE, library.RETELL, library.DRAIN, library.GRANT)
    assert sorted(told) == list(range(14))
    news: tuple[int, ...] = (
        library.GREETED,
        library.LOST,
        library.SEEN,
        library.REFRESH,
        library.RETURNED,
        library.RETURN,
        library.CLOSED,
    )
    news += (
        library.DYING,
        library.FAILED,
        library.SUSPECT,
        library.USED,
        library.UNLOADED,
        library.AHEAD,
        library.VISIBLE,
        library.DRAINED,
        library.LOW,
    )
    assert sorted(news) == list(range(16))
    asked: tuple[int, ...] = (library.COUNTS, library.WAITING, library.RETURNING, library.WHYS, library.WAITS)
    asked += (library.ALLOWANCES, library.UNHEARD, library.CALLS)
    assert sorted(asked) == list(range(8))
