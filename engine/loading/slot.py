"""An hour of the wheel, as far as it was read: the pointers of each unit, in order, each once.

Pointers are numbers here, and lie in sorted runs: a run that is full is never sorted again, and
whoever asks merges the runs as far as it needs them. So a million pointers of one hour cost nobody
more than some milliseconds at a time, in whatever order they come. Some 100 bytes a pointer. Pure
data.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterable, Iterator

from schemas.records import DelayRecord
from state.keys import Unit

# (due ms, offset)
Pointer = tuple[int, int]

# Of a run: two that have more together are not merged.
RUN = 50_000
# A pointer as a number: the due time in the bits above the offset, which may be -1 in a bound.
_BITS = 54
_OFFSET = (1 << _BITS) - 1


def _number(pointer: Pointer) -> int:
    return (pointer[0] << _BITS) + pointer[1]


def _pointer(number: int) -> Pointer:
    return number >> _BITS, number & _OFFSET


class _Rows:
    """The pointers of one unit."""

    __slots__ = ("known", "runs")

    def __init__(self) -> None:
        self.known: set[int] = set()
        self.runs: list[list[int]] = []

    def add(self, numbers: Iterable[int]) -> None:
        fresh = sorted(set(numbers) - self.known)
        if not fresh:
            return
        self.known.update(fresh)
        runs = self.runs
        runs.append(fresh)
        # Few runs, each about twice as long as the next; and a new list each time, for somebody may
        # be reading the old ones.
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]) and len(runs[-2]) + len(runs[-1]) <= RUN:
            last = runs.pop()
            runs[-1] = sorted(runs[-1] + last)

    def between(self, after: int, until: int) -> list[tuple[list[int], range]]:
        """The places in each run of what is after one number and up to another."""
        return [(run, range(bisect.bisect_right(run, after), bisect.bisect_right(run, until))) for run in self.runs]


class Slot:
    """The pointers of one hour. Its methods belong to the event loop, and never wait."""

    def __init__(self) -> None:
        self.next_offset = -1
        self.asked_at = 0.0
        self._rows: dict[Unit, _Rows] = {}

    def note_asked(self, now: float) -> None:
        """Somebody needs it, at that time of the loop."""
        self.asked_at = now

    def begin_at(self, offset: int) -> None:
        """It is read anew, from there on."""
        self.next_offset = offset

    def note_read(self, next_offset: int) -> None:
        """It was read up to there."""
        self.next_offset = max(self.next_offset, next_offset)

    def add(self, record: DelayRecord) -> None:
        rows = self._rows.setdefault(Unit(record.incarnation, record.partition), _Rows())
        rows.add(map(_number, zip(record.due_ms, record.offsets, strict=True)))

    def between(self, unit: Unit, after: Pointer, until: Pointer) -> Iterator[Pointer]:
        """What is due after one place and up to another, in order, as it is now."""
        rows = self._rows.get(unit)
        parts = rows.between(_number(after), _number(until)) if rows is not None else []
        return map(_pointer, heapq.merge(*(map(run.__getitem__, places) for run, places in parts)))

    def count(self, unit: Unit, after: Pointer, until: Pointer, others: Iterable[Pointer]) -> int:
        """How many are due after one place and up to another, with those of `others`, which are due
        there too and differ, that are not here. It copies nothing, for it is asked every second.
        """
        rows = self._rows.get(unit)
        if rows is None:
            return sum(1 for _ in others)
        here = sum(len(places) for _, places in rows.between(_number(after), _number(until)))
        return here + sum(_number(pointer) not in rows.known for pointer in others)
