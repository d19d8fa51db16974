"""A slot of the wheel tells what was put into it, each pointer once, in whatever pieces it came."""

from __future__ import annotations

import random

from engine.loading.wheel import Pointer, Slot
from schemas.records import DelayRecord
from state.keys import Unit

UNIT = Unit("abcdefabcdef", 0)


def test_a_slot_counts_and_shows_each_pointer_once() -> None:
    draw, slot, all_of = random.Random(7), Slot(), set[Pointer]()
    for _ in range(200):
        some = [(draw.randrange(1_000), draw.randrange(5)) for _ in range(draw.randrange(20))]
        slot.add(DelayRecord(UNIT.incarnation, UNIT.partition, 0, [offset for _, offset in some], [due for due, _ in some]))
        all_of.update(some)
        after, until = sorted((draw.randrange(1_000), draw.randrange(5)) for _ in range(2))
        others = [(draw.randrange(1_000), draw.randrange(5)) for _ in range(5)]
        between = {pointer for pointer in all_of if after < pointer <= until}
        assert list(slot.of(UNIT, after, until)) == sorted(between)
        there = between.union(pointer for pointer in others if after < pointer <= until)
        assert slot.count(UNIT, after, until, dict.fromkeys(others)) == len(there)
    assert list(slot.of(Unit("abcdefabcdef", 1), (0, 0), (1_000, 0))) == []
