"""Looks at every queue now and then, also at those that nobody asks for: is something about to be
lost, or lost already?

An alarm is (kind, queue) -> a number, shown by /metrics and /health until it is over. Every worker
looks for itself, so that whichever is asked can tell. Round trips for 100 queues: a few to Kafka,
one to Redis; units with old or deleted records cost more.

It also ends what was cut off: deletions of queues and of tags, and units that nobody owns though
their outbox has entries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from engine.catalog.catalog import Catalog
from engine.errors import EngineError
from engine.log import Log
from engine.queues.info import Depths
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.window.window import Window
from runtime.counters import Alarms
from runtime.service import Periodic
from state.errors import StateError
from state.upkeep import UpkeepScripts

AT_A_TIME = 100


class Leftovers:
    """`finish_deletions` finishes deletions of queues."""

    def __init__(
        self, upkeep: UpkeepScripts, catalog: Catalog, window: Window, finish_deletions: Callable[[], Awaitable[None]]
    ) -> None:
        self.finish_deletions = finish_deletions
        self._upkeep = upkeep
        self._catalog = catalog
        self._window = window

    async def drain_left(self) -> None:
        """Sees to it that somebody owns the units whose owner died with entries that the journal
        does not have: 20,000 units take half a second.
        """
        units = [(queue, partition) for queue in self._catalog.queues.values() for partition in range(len(queue.units))]
        for at in range(0, len(units), AT_A_TIME):
            some = units[at : at + AT_A_TIME]
            try:
                left = await asyncio.gather(
                    *(self._upkeep.undrained(queue.units[partition]) for queue, partition in some)
                )
            except StateError:
                return  # without Redis nobody can drain anything
            for (queue, partition), entries in zip(some, left, strict=True):
                if entries:
                    self._window.used(queue, partition)

    async def close_left(self, queues: Sequence[Queue]) -> None:
        """Drops what deleted tags still have in Redis: it was away, or the worker died, when they
        were deleted.
        """
        upkeep = self._upkeep
        for queue in queues:
            if queue.record.next_tag_id == len(queue.tags):
                continue  # none was ever deleted
            try:
                for unit in queue.units:
                    # A tag that is being made has the next number.
                    for tag in sorted(await upkeep.known_tags(unit)):
                        if tag < queue.record.next_tag_id and tag not in queue.tag_ids:
                            await upkeep.close(unit, tag)
            except StateError:
                return


logger = logging.getLogger(__name__)

# Soon after a start: this worker may stand in for one that died.
FIRST_S = 0.5
ROUND_S = 30.0
# After so many queues, so that a round of 20,000 takes minutes and costs a worker a few hundredths
# of a core.
PAUSE_S = 1.0
# Part of a queue's retention after which its open messages are told to be near its end.
NEAR = 0.9
# Kind of alarm -> what its number counts.
KINDS = {
    "retention_near": "open or stored messages, at most, that are older than 90% of their queue's retention",
    "unacked_kept": (
        "messages, at most, that are older than 90% of their queue's retention and stay until every tag has acked them"
    ),
    "alert_firing": "alert policies of the queue that fire",
    "retention_passed": "open messages, at most, that Kafka no longer has: only the window does",
    "redrive_stopped": (
        "redrive policies of the queue and its tags that move nothing: their dead-letter queue is gone or refuses"
    ),
    "topic_missing": "partitions of the queue that Kafka does not have",
    "load_stopped": "partitions of which nothing was loaded for a minute though Kafka has more",
    "delayed_near": (
        "delayed messages of the partition and tag with the most, over 80% of what may be: more are refused at 150,000"
    ),
    "transaction_open": (
        "records, at most, behind a transaction of a Kafka producer that has been open for 30 s: the log line names it"
    ),
    "records_skipped": (
        "records that were settled unseen in the last hour: parts of torn batches, unreadable ones, late commits"
    ),
    "groups_parked": "groups of a FIFO queue that are parked, of the partition and tag with the most",
    "parked_full": (
        "messages, at most, that nobody gets until groups are unparked: what they hold back fills the window"
    ),
    "delayed_full": (
        "messages, at most, that nobody gets until some that are delayed before them are due: they fill the window"
    ),
}


class Troubles(Protocol):
    """What keeps messages from being loaded at this worker."""

    def stalled_partitions(self, queue: Queue) -> int:
        """Returns how many partitions of a queue are not loaded though there is more."""

    def skipped(self, queue: Queue) -> int:
        """Returns how many records of a queue were settled unseen in the last hour."""

    def behind_transactions(self, queue: Queue) -> int:
        """Returns how many records lie behind transactions of Kafka that are open for long."""


class AlarmMonitor:
    """Alarms of this worker. `run_once` may be called by tests; the service calls it every 30 s."""

    def __init__(
        self,
        log: Log,
        catalog: Catalog,
        targets: Targets,
        alarms: Alarms,
        troubles: Troubles,
        depths: Depths,
        leftovers: Leftovers,
    ) -> None:
        self._log = log
        self._catalog = catalog
        self._targets = targets
        self._alarms = alarms
        self._troubles = troubles
        self._depths = depths
        self._leftovers = leftovers
        self._services = (
            Periodic("watch", lambda: self._check_all(PAUSE_S), ROUND_S, first_s=FIRST_S, quiet=(EngineError,)),
            # Beside it, for a round over many queues takes minutes.
            Periodic("find_unjournaled", self._leftovers.drain_left, ROUND_S, first_s=FIRST_S),
        )

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone."""
        self._set(queue, {})

    async def start(self) -> None:
        for service in self._services:
            await service.start()

    async def stop(self) -> None:
        for service in self._services:
            await service.stop()

    async def run_once(self) -> None:
        """One look at all queues, without pauses. Raises LogUnavailable."""
        await self._leftovers.drain_left()
        await self._check_all(0.0)

    async def _check_all(self, pause_s: float) -> None:
        """One look at all queues, with a pause after each AT_A_TIME of them. Raises
        LogUnavailable.
        """
        await self._leftovers.finish_deletions()
        self._targets.known.clear()  # keys may have expired
        by_retention: dict[int, list[Queue]] = {}
        for queue in self._catalog.queues.values():
            by_retention.setdefault(queue.record.retention_ms, []).append(queue)
        for retention_ms, queues in by_retention.items():
            for at in range(0, len(queues), AT_A_TIME):
                some = queues[at : at + AT_A_TIME]
                await self._leftovers.close_left(some)
                await self._check_queues(some, self._log.clock.earliest_ms() - int(retention_ms * NEAR))
                if at + AT_A_TIME < len(queues):
                    await asyncio.sleep(pause_s)

    async def _check_queues(self, queues: Sequence[Queue], old_ms: int) -> None:
        log = self._log
        parts = [(queue.topic, p) for queue in queues for p in range(len(queue.units))]
        starts, ends = await log.start_offsets(parts), await log.end_offsets(parts)
        olds = await log.offsets_at(list(starts), old_ms)
        crowded, parked = await self._depths.crowded(queues), await self._depths.parked(queues)
        for queue in queues:
            mine = [(queue.topic, p) for p in range(len(queue.units))]
            missing = sum(part not in starts or part not in ends for part in mine)
            alarms: dict[str, float] = {
                "topic_missing": missing,
                "load_stopped": self._troubles.stalled_partitions(queue),
                "groups_parked": parked[queue.name],
            }
            alarms["transaction_open"] = self._troubles.behind_transactions(queue)
            alarms["records_skipped"] = self._troubles.skipped(queue)
            alarms["redrive_stopped"] = self._targets.stopped(queue)
            try:
                if missing:
                    self._depths.suspect(queue)
                for partition, part in enumerate(mine):
                    # Nothing old and nothing deleted: nothing to ask Redis for.
                    if part in starts and part in ends and (olds.get(part, 0) > starts[part] or starts[part] > 0):
                        found = await self._depths.unit(queue, partition, starts[part], olds.get(part, 0), ends[part])
                        alarms = {kind: alarms.get(kind, 0) + found.get(kind, 0) for kind in KINDS}
                    if part in ends and queue.units[partition] in crowded:
                        near, full, held = await self._depths.full(queue, partition, ends[part])
                        alarms["delayed_near"] = max(alarms.get("delayed_near", 0), near)
                        alarms["delayed_full"] = alarms.get("delayed_full", 0) + full
                        alarms["parked_full"] = alarms.get("parked_full", 0) + held
            except (EngineError, StateError) as error:
                logger.debug("action=watch queue=%s error=%s", queue.name, error)
            if queue.incarnation in self._catalog.by_incarnation:
                self._set(queue, alarms)

    def _set(self, queue: Queue, alarms: dict[str, float]) -> None:
        for kind, about in KINDS.items():
            value = alarms.get(kind, 0)
            if self._alarms.set(kind, queue.name, value):
                logger.error("action=alarm kind=%s queue=%s number=%d: %s", kind, queue.name, value, about)
