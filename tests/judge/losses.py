"""What a loss of Redis excuses, by what is promised of it (docs/explanation/promises.md)."""

from __future__ import annotations

import bisect
from collections import defaultdict

from tests.judge.history import History, Loss

SECOND = 1_000_000_000
# A change that was answered so long before a loss of Redis is in the journal; on a loaded machine.
DRAINED_NS, DRAINED_LOADED_NS = 1 * SECOND, 5 * SECOND
# So long after another fault the journal may still be behind (a lease of the owner, a broker that
# is back).
HELD_UP_NS = 8 * SECOND
# From that load average on (two cores), whoever made it, the bounds are those of a loaded machine.
LOADED = 10


class Losses:
    """The losses and faults of a history. All times are monotonic ns."""

    def __init__(self, history: History) -> None:
        self._history = history
        told = [line.args for line in history.notes] + [op.line.args for op in history.ops if op.line.verb == "probe"]
        self.loaded = any(float(row.get(name, 0)) >= LOADED for row in told for name in ("load", "load_average"))
        self._drained = DRAINED_LOADED_NS if self.loaded else DRAINED_NS
        self._leased: dict[str, list[int]] = defaultdict(list)
        for op in history.ops:
            if op.line.verb == "receive" and op.ok and op.end is not None and op.end.deliveries:
                self._leased[op.line.queue].append(op.ended)
        for times in self._leased.values():
            times.sort()

    def excused(self, began: int, ended: int, again: int) -> bool:
        """Whether a loss of Redis explains that what was done from `began` to `ended` was forgotten
        when `again` came.

        It does when it was done within the second before the loss; or while the journal was held up
        by another fault.
        """
        return any(
            ended >= self._reach(loss) and began <= loss.ended and again >= loss.began for loss in self._history.losses
        )

    def hurt(self, queue: str, began: int, ended: int) -> bool:
        """Whether a fault was there while something was asked of a queue and answered, or the queue
        had not been back for 8 s: since the heal, or since it leased a message again, for a slow
        machine rebuilds slowly.
        """
        return any(
            fault.began <= ended and self._back(queue, fault.over) + HELD_UP_NS >= began
            for fault in self._history.faults
        )

    def _back(self, queue: str, healed: int) -> int:
        """When a queue first leased a message after a time; that time when it never did."""
        leased = self._leased[queue]
        at = bisect.bisect_left(leased, healed)
        return leased[at] if at < len(leased) else healed

    def _reach(self, loss: Loss) -> int:
        """From when on what was done may be forgotten."""
        away = [
            fault.began
            for fault in self._history.faults
            if fault.op != loss.op
            and fault.holds_up
            and fault.began < loss.ended
            and fault.over + HELD_UP_NS > loss.began
        ]
        return min([loss.began, *away]) - self._drained
