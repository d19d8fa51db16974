"""Looks at every queue now and then, also at those that nobody asks for: is something about to be
lost, or lost already?

An alarm is (kind, queue) -> a number, shown by /metrics and /health until it is over. Every worker
looks for itself, so that whichever is asked can tell. Round trips for 100 queues: a few to Kafka,
one to Redis; units with old or deleted records cost more. It also ends what was cut off: deletions
of queues, and of tags.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from engine.catalog.catalog import Catalog
from engine.errors import EngineError
from engine.log import Log
from engine.rules.limits import MAX_DELAYED
from engine.rules.queue import Queue
from engine.rules.rights import Targets
from engine.runtime.counters import Alarms
from engine.runtime.service import Periodic
from engine.runtime.signals import Signal
from engine.window.retention import Retention
from engine.window.topic_retention import TopicRetention
from engine.window.window import Window
from state.errors import StateError
from state.keys import Unit
from state.replies import MAX_OPEN, TagCounts
from state.store import Store

logger = logging.getLogger(__name__)

# Soon after a start: this worker may stand in for one that died.
FIRST_S = 0.5
ROUND_S = 30.0
AT_A_TIME = 100
# After so many queues, so that a round of 20,000 takes minutes and costs a worker a few hundredths
# of a core.
PAUSE_S = 1.0
# Part of a queue's retention after which its open messages are told to be near its end.
NEAR = 0.9
# Part of the delayed messages that a partition may have under a tag, from which on that is told.
NEARLY = 0.8

# Kind of alarm -> what its number counts.
KINDS = {
    "retention_near": "open or stored messages, at most, that are older than 90% of their queue's retention",
    "unacked_kept": "messages, at most, that are older than 90% of their queue's retention and stay until every tag has acked them",
    "alert_firing": "alert policies of the queue that fire",
    "retention_passed": "open messages, at most, that Kafka no longer has: only the window does",
    "redrive_stopped": "redrive policies of the queue and its tags that move nothing: their dead-letter queue is gone or refuses",
    "topic_missing": "partitions of the queue that Kafka does not have",
    "load_stopped": "partitions of which nothing was loaded for a minute though Kafka has more",
    "delayed_near": "delayed messages of the partition and tag with the most, over 80% of what may be: more are refused at 150,000",
    "transaction_open": "records, at most, behind a transaction of a Kafka producer that has been open for 30 s: the log line names it",
    "records_skipped": "records that were settled unseen in the last hour: parts of torn batches, unreadable ones, late commits",
    "groups_parked": "groups of a FIFO queue that are parked, of the partition and tag with the most",
    "parked_full": "messages, at most, that nobody gets until groups are unparked: what they hold back fills the window",
    "delayed_full": "messages, at most, that nobody gets until some that are delayed before them are due: they fill the window",
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
    """Alarms of this worker. `run_once` may be called by tests; the service calls it every 30 s.

    `finish` finishes deletions of queues, `suspect` hears of a topic that may be gone.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        catalog: Catalog,
        targets: Targets,
        window: Window,
        retention: Retention,
        topic_retention: TopicRetention,
        alarms: Alarms,
        finish: Callable[[], Awaitable[None]],
        troubles: Troubles,
        note_use: Callable[[Queue, int], None],
        suspect: Signal[[Queue]],
    ) -> None:
        self._log = log
        self._store = store
        self._catalog = catalog
        self._targets = targets
        self._window = window
        self._retention = retention
        self._topic_retention = topic_retention
        self._alarms = alarms
        self._finish = finish
        self._troubles = troubles
        self._note_use = note_use
        self._suspect = suspect
        self._services = (
            Periodic("watch", lambda: self._check_all(PAUSE_S), ROUND_S, first_s=FIRST_S, quiet=(EngineError,)),
            # Beside it, for a round over many queues takes minutes.
            Periodic("find_unjournaled", self._drain_left, ROUND_S, first_s=FIRST_S),
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
        await self._drain_left()
        await self._check_all(0.0)

    async def _check_all(self, pause_s: float) -> None:
        """One look at all queues, with a pause after each AT_A_TIME of them. Raises
        LogUnavailable.
        """
        await self._finish()
        self._targets.known.clear()  # keys may have expired
        by_retention: dict[int, list[Queue]] = {}
        for queue in self._catalog.queues.values():
            by_retention.setdefault(queue.record.retention_ms, []).append(queue)
        for retention_ms, queues in by_retention.items():
            for at in range(0, len(queues), AT_A_TIME):
                some = queues[at : at + AT_A_TIME]
                await self._close_left(some)
                await self._check_queues(some, self._log.clock.earliest_ms() - int(retention_ms * NEAR))
                if at + AT_A_TIME < len(queues):
                    await asyncio.sleep(pause_s)

    async def _drain_left(self) -> None:
        """Sees to it that somebody owns the units whose owner died with entries that the journal
        does not have: 20,000 units take half a second.
        """
        units = [(queue, partition) for queue in self._catalog.queues.values() for partition in range(len(queue.units))]
        for at in range(0, len(units), AT_A_TIME):
            some = units[at : at + AT_A_TIME]
            try:
                left = await asyncio.gather(*(self._store.undrained(queue.units[partition]) for queue, partition in some))
            except StateError:
                return  # without Redis nobody can drain anything
            for (queue, partition), entries in zip(some, left, strict=True):
                if entries:
                    self._note_use(queue, partition)

    async def _close_left(self, queues: Sequence[Queue]) -> None:
        """Drops what deleted tags still have in Redis: it was away, or the worker died, when they
        were deleted.
        """
        store = self._store
        for queue in queues:
            if queue.record.next_tag_id == len(queue.tags):
                continue  # none was ever deleted
            try:
                for unit in queue.units:
                    # A tag that is being made has the next number.
                    for tag in sorted(await store.known_tags(unit)):
                        if tag < queue.record.next_tag_id and tag not in queue.tag_ids:
                            await store.close(unit, tag)
            except StateError:
                return

    async def _check_queues(self, queues: Sequence[Queue], old_ms: int) -> None:
        log = self._log
        parts = [(queue.topic, p) for queue in queues for p in range(len(queue.units))]
        starts, ends = await log.start_offsets(parts), await log.end_offsets(parts)
        olds = await log.offsets_at(list(starts), old_ms)
        crowded, parked = await self._crowded(queues), await self._parked(queues)
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
                    self._suspect(queue)
                for partition, part in enumerate(mine):
                    # Nothing old and nothing deleted: nothing to ask Redis for.
                    if part in starts and part in ends and (olds.get(part, 0) > starts[part] or starts[part] > 0):
                        found = await self._unit(queue, partition, starts[part], olds.get(part, 0), ends[part])
                        alarms = {kind: alarms.get(kind, 0) + found.get(kind, 0) for kind in KINDS}
                    if part in ends and queue.units[partition] in crowded:
                        near, full, held = await self._full(queue, partition, ends[part])
                        alarms["delayed_near"] = max(alarms.get("delayed_near", 0), near)
                        alarms["delayed_full"] = alarms.get("delayed_full", 0) + full
                        alarms["parked_full"] = alarms.get("parked_full", 0) + held
            except (EngineError, StateError) as error:
                logger.debug("action=watch queue=%s error=%s", queue.name, error)
            if queue.incarnation in self._catalog.by_incarnation:
                self._set(queue, alarms)

    async def _unit(self, queue: Queue, partition: int, low: int, old: int, high: int) -> dict[str, float]:
        unit = queue.units[partition]
        tags = await self._window.call(queue, lambda g: self._store.info(unit, g, queue.tag_ids))
        if any(tag.cursor > high for tag in tags):
            self._suspect(queue)
            return {}
        if any(tag.cursor < low for tag in tags):
            await self._retention.expire_unloaded(queue, partition, low)
            tags = await self._window.call(queue, lambda g: self._store.info(unit, g, queue.tag_ids))
        passed = _waiting(tags, low)
        near = "retention_near"
        if queue.record.keep_unacked:
            near = "unacked_kept"
            await self._topic_retention.trim(queue, partition, low, min(tag.floor for tag in tags))
        return {near: max(0, _waiting(tags, old) - passed), "retention_passed": passed}

    async def _crowded(self, queues: Sequence[Queue]) -> set[Unit]:
        """Units with so much open that the rest is worth asking for."""
        units = [(unit, queue.tag_ids) for queue in queues for unit in queue.units]
        try:
            most = await asyncio.gather(*(self._store.open_most(unit, tags) for unit, tags in units))
        except StateError:
            return set()
        return {unit for (unit, _), count in zip(units, most, strict=True) if count > NEARLY * MAX_DELAYED}

    async def _parked(self, queues: Sequence[Queue]) -> dict[str, int]:
        """How many groups are parked of the partition and tag with the most, by queue."""
        found = {queue.name: 0 for queue in queues}
        for queue in queues:
            if queue.record.fifo:
                with contextlib.suppress(StateError):
                    most = await asyncio.gather(*(self._store.parked_most(unit, queue.tag_ids) for unit in queue.units))
                    found[queue.name] = max(most)
        return found

    async def _full(self, queue: Queue, partition: int, high: int) -> tuple[int, int, int]:
        """(delayed messages of the tag with the most, if they are near the bound; messages behind
        windows that delayed ones fill; the same of what parked groups fill).
        """
        unit = queue.units[partition]
        tags = await self._window.call(queue, lambda g: self._store.info(unit, g, queue.tag_ids))
        most = max(tag.delayed for tag in tags)
        full = [tag for tag in tags if tag.ready + tag.delayed + tag.parked >= MAX_OPEN]
        delayed = [max(0, high - tag.cursor) for tag in full if tag.delayed > NEARLY * MAX_DELAYED]
        parked = [max(0, high - tag.cursor) for tag in full if tag.parked]
        return most if most > NEARLY * MAX_DELAYED else 0, max(delayed, default=0), max(parked, default=0)

    def _set(self, queue: Queue, alarms: dict[str, float]) -> None:
        for kind, about in KINDS.items():
            value = alarms.get(kind, 0)
            if self._alarms.set(kind, queue.name, value):
                logger.error("action=alarm kind=%s queue=%s number=%d: %s", kind, queue.name, value, about)


def _waiting(tags: Iterable[TagCounts], below: int) -> int:
    """Messages below an offset that are ready, leased, parked or not loaded, at most; delayed ones
    are not yet due.
    """
    return max(
        (min(max(below - tag.floor, 0), tag.ready + tag.leased + tag.parked + max(below - tag.cursor, 0)) for tag in tags), default=0
    )
