"""How long a call waits for company: never while little is done at once."""

from __future__ import annotations

import pytest

from engine.rules.linger import (
    LINGER_S,
    MANY,
    SEND_LINGER_S,
    batch_size_if_shared,
    is_busy,
    send_linger_s,
    should_linger,
)


@pytest.mark.parametrize(("size", "callers", "kept"), [(100, 1, 0), (100, 2, 100), (0, 0, 0)])
def test_who_is_alone_leaves_no_size_to_wait_for(size: int, callers: int, kept: int) -> None:
    assert batch_size_if_shared(size, callers) == kept


@pytest.mark.parametrize(
    ("last", "waiting", "busy", "lingers"),
    [
        (0, MANY - 1, False, False),
        (0, MANY, True, False),
        (MANY, 0, True, True),
        (MANY // 2, MANY // 2, True, True),
        (8, 9, True, False),
    ],
)
def test_a_call_lingers_only_while_those_of_the_last_one_are_not_back(
    last: int, waiting: int, busy: bool, lingers: bool
) -> None:
    assert (is_busy(last, waiting), should_linger(last, waiting)) == (busy, lingers)


def test_a_send_lingers_for_a_part_of_the_last_one_within_its_bounds() -> None:
    assert [send_linger_s(took) for took in (0.0, LINGER_S, 0.01, 10.0)] == [LINGER_S, LINGER_S, 0.005, SEND_LINGER_S]
