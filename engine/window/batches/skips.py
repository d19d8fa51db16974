"""Records that were settled unseen though nobody asked for it: each is counted and logged, and a
queue with some of them in the last hour alarms.
"""

from __future__ import annotations

import collections
import logging
from collections.abc import Hashable, Iterable

from msgspec import Struct

from engine.rules.queue import Queue
from runtime.counters import Counters
from schemas.vocabulary import Reason
from state.clock.boot import boot_s

logger = logging.getLogger(__name__)

# For so long a skipped record alarms.
RECENT_S = 3600.0
# Of so many it is known that they were counted: a record comes again for each tag, and after a
# rebuild.
MOST = 10_000


class Skip(Struct, frozen=True):
    """A record that is no message. `cause` is shared by records that one log line tells of; `about`
    is that line's end.
    """

    offset: int
    reason: Reason
    cause: Hashable
    about: str


class Skips:
    """What this worker skipped."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._known: dict[Hashable, None] = {}
        self._at: dict[str, collections.deque[float]] = {}

    def settled(self, queue: Queue, partition: int, skips: Iterable[Skip]) -> None:
        """The window has passed these records of a partition."""
        for skip in skips:
            if not self._is_new((queue.incarnation, partition, skip.offset)):
                continue
            self._count(skip.reason)
            self._at.setdefault(queue.incarnation, collections.deque(maxlen=MOST)).append(boot_s())
            if self._is_new((queue.incarnation, partition, skip.reason, skip.cause)):
                logger.error(
                    "action=skip queue=%s partition=%d offset=%d reason=%s %s",
                    queue.name, partition, skip.offset, skip.reason.value, skip.about,
                )  # fmt: skip

    def _count(self, reason: Reason) -> None:
        if reason is Reason.TORN_BATCH:
            self._counters.count("torn_batch_records_total")
        elif reason is Reason.LATE_COMMIT:
            self._counters.count("late_commits_total")
        else:
            self._counters.count("undecodable_records_total")

    def _is_new(self, key: Hashable) -> bool:
        if key in self._known:
            return False
        while len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[key] = None
        return True

    def recent(self, queue: Queue) -> int:
        """How many records of a queue were skipped here in the last hour."""
        times = self._at.get(queue.incarnation)
        if times is None:
            return 0
        while times and boot_s() - times[0] > RECENT_S:
            times.popleft()
        return len(times)

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone."""
        self._at.pop(queue.incarnation, None)
