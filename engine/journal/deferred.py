"""What the journal says of the deferred messages of one tag of a unit, folded.

Those at or above the floor are known one by one: a loader that begins at the floor defers them
again. Below it they are counted by the slot in which they are due, and the wheel knows which they
are. Pure data.
"""

from __future__ import annotations

from collections import Counter

from schemas.records import JournalEntry, TagSnapshot
from schemas.vocabulary import SETTLES, SLOT_MS, EventKind, Reason

NO_MARK = (0, -1)


class DeferredState:
    """`mark`: what is due up to there (ms, then offset) was brought. `bound`: all below was purged.
    `excepted`: (offset, slot) of those that were cancelled or rescheduled, until the mark has
    passed the slot.
    """

    __slots__ = ("above", "bound", "excepted", "mark", "slots")

    def __init__(self) -> None:
        self.mark = NO_MARK
        self.bound = 0
        self.above: dict[int, int] = {}
        self.slots: Counter[int] = Counter()
        self.excepted: set[tuple[int, int]] = set()

    def apply(self, entry: JournalEntry) -> None:
        """Applies an entry of any kind; entries come in seq order."""
        if entry.kind == EventKind.DEFERRED:
            self.above.update(zip(entry.offsets, entry.times, strict=True))
        elif entry.kind == EventKind.BROUGHT:
            for offset, due_ms in zip(entry.offsets, entry.times, strict=True):
                self._remove(offset, due_ms)
            ms, _, at = entry.reason.partition(":")
            self._raise_mark(int(ms), int(at))
        elif entry.kind in (EventKind.CANCELLED, EventKind.DELETED) and entry.times:
            self._except(entry.offsets[0], entry.times[0], counted=entry.reason != Reason.NOT_LOADED)
        elif entry.kind == EventKind.SKIPPED and entry.times:
            self._except(entry.offsets[0], entry.times[0], counted=False)
        elif entry.kind in SETTLES:
            # After a rebuild, before the window had come to it again.
            for offset in entry.offsets if self.above else ():
                self.above.pop(offset, None)
        elif entry.kind == EventKind.RESCHEDULED and entry.reason:
            self._except(entry.offsets[0], int(entry.reason))
        elif entry.kind == EventKind.PURGED:
            self._purge(entry.offsets[0])

    def _remove(self, offset: int, due_ms: int) -> None:
        if self.above.pop(offset, None) is None:
            self._count(due_ms // SLOT_MS, -1)

    def _count(self, slot: int, by: int) -> None:
        self.slots[slot] += by
        if not self.slots[slot]:
            del self.slots[slot]

    def _raise_mark(self, ms: int, offset: int) -> None:
        slot, before = ms // SLOT_MS, self.mark[0] // SLOT_MS
        self.mark = (ms, offset)
        if slot > before:
            self.excepted = {one for one in self.excepted if one[1] >= slot}
            self.slots = Counter({one: count for one, count in self.slots.items() if one >= slot})
            self.above = {offset: due_ms for offset, due_ms in self.above.items() if self._is_after(offset, due_ms)}

    def _is_after(self, offset: int, due_ms: int) -> bool:
        """Not so of one that was loaded again, after a rebuild, when the mark had passed it."""
        return (due_ms, offset) > self.mark

    def _except(self, offset: int, due_ms: int, *, counted: bool = True) -> None:
        if counted:
            self._remove(offset, due_ms)
        else:  # but a rebuild may have counted it
            self.above.pop(offset, None)
        self.excepted.add((offset, due_ms // SLOT_MS))

    def _purge(self, bound: int) -> None:
        self.bound = max(self.bound, bound)
        # The script raises the bound above all that is deferred, if anything is.
        self.above = {offset: due_ms for offset, due_ms in self.above.items() if offset >= bound}
        self.slots.clear()
        self.excepted.clear()

    def raise_floor(self, floor: int) -> None:
        """What is below the floor is counted, no longer named."""
        for offset in [offset for offset in self.above if offset < floor]:
            due_ms = self.above.pop(offset)
            if self._is_after(offset, due_ms):
                self._count(due_ms // SLOT_MS, 1)

    def size(self) -> int:
        return len(self.above) + len(self.slots) + len(self.excepted)

    def waiting(self) -> dict[int, int]:
        """Those at or above the floor that are deferred still: offset -> due ms."""
        return {offset: due_ms for offset, due_ms in self.above.items() if self._is_after(offset, due_ms)}

    def in_snapshot(self) -> tuple[int, int, int, list[int], list[int], list[int], list[int], list[int], list[int]]:
        """The fields of a TagSnapshot from `bound` on."""
        excepted, slots = sorted(self.excepted), sorted(self.slots)
        return (
            self.bound,
            *self.mark,
            list(self.above),
            list(self.above.values()),
            slots,
            [self.slots[slot] for slot in slots],
            [offset for offset, _ in excepted],
            [slot for _, slot in excepted],
        )

    @classmethod
    def from_snapshot(cls, snapshot: TagSnapshot) -> DeferredState:
        state = cls()
        state.bound = snapshot.bound
        state.mark = (snapshot.mark_ms, snapshot.mark_offset)
        state.above = dict(zip(snapshot.deferred, snapshot.deferred_due, strict=True))
        state.slots = Counter(dict(zip(snapshot.slots, snapshot.slot_counts, strict=True)))
        state.excepted = set(zip(snapshot.excepted, snapshot.excepted_slots, strict=True))
        return state
