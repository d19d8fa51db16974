"""A slot of the wheel tells what was put into it, each pointer once, in whatever pieces it came;
and however many there are, it holds nobody up.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

import pytest

from engine.loading import slot as slots
from engine.loading.slot import Pointer, Slot
from schemas.records import DelayRecord
from schemas.vocabulary import SLOT_MS
from state.keys import Unit

UNIT = Unit("abcdefabcdef", 0)
DUE = 500_000 * SLOT_MS


def record(pointers: list[Pointer]) -> DelayRecord:
    return DelayRecord(
        UNIT.incarnation, UNIT.partition, 0, [offset for _, offset in pointers], [due for due, _ in pointers]
    )


@pytest.mark.parametrize("run", [slots.RUN, 20])
def test_a_slot_counts_and_shows_each_pointer_once(monkeypatch: pytest.MonkeyPatch, run: int) -> None:
    monkeypatch.setattr(slots, "RUN", run)
    draw, slot, all_of = random.Random(7), Slot(), set[Pointer]()
    for _ in range(200):
        some = [(DUE + draw.randrange(1_000), draw.randrange(5)) for _ in range(draw.randrange(20))]
        slot.add(record(some))
        all_of.update(some)
        after, until = sorted((DUE + draw.randrange(1_000), draw.randrange(-1, 5)) for _ in range(2))
        others = {(DUE + draw.randrange(1_000), draw.randrange(5)) for _ in range(5)}
        between = {pointer for pointer in all_of if after < pointer <= until}
        assert list(slot.between(UNIT, after, until)) == sorted(between)
        more = [pointer for pointer in others if after < pointer <= until]
        assert slot.count(UNIT, after, until, more) == len(between.union(more))
    other = Unit("abcdefabcdef", 1)
    assert list(slot.between(other, (0, 0), (2 * DUE, 0))) == []
    assert slot.count(other, (0, 0), (2 * DUE, 0), [(DUE, 1)]) == 1


def test_who_is_reading_a_slot_is_not_disturbed_by_what_comes_meanwhile() -> None:
    slot = Slot()
    slot.add(record([(DUE + n, n) for n in range(0, 100, 2)]))
    reading = slot.between(UNIT, (DUE, -1), (DUE + 1_000, 0))
    first = [next(reading) for _ in range(10)]
    slot.add(record([(DUE + n, n) for n in range(1, 100, 2)]))
    assert first + list(reading) == [(DUE + n, n) for n in range(0, 100, 2)]


@pytest.mark.parametrize("same_ms", [False, True], ids=["over an hour", "at one moment"])
def test_a_million_pointers_of_an_hour_hold_nobody_up(same_ms: bool) -> None:
    # As 500 filings wrote them: each in order, all over the hour.
    draw, slot, longest = random.Random(3), Slot(), 0.0

    def timed(work: Callable[[], object]) -> None:
        nonlocal longest
        began = time.thread_time()  # what others do meanwhile does not count
        work()
        longest = max(longest, time.thread_time() - began)

    for at in range(0, 1_000_000, 2_000):
        some = sorted((DUE if same_ms else DUE + draw.randrange(SLOT_MS), offset) for offset in range(at, at + 2_000))
        written = record(some)
        timed(lambda written=written: slot.add(written))  # type: ignore[misc]
    after, until = (DUE, -1), (DUE + SLOT_MS, 0)
    timed(lambda: slot.count(UNIT, after, until, []))
    rows, taken = slot.between(UNIT, after, until), [500]
    while taken[-1]:
        timed(lambda: taken.append(sum(1 for _ in itertools.islice(rows, 500))))
    assert sum(taken) == 1_000_500
    assert longest < 0.2, f"{longest:.2f} s at once"
