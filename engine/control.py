"""The control topic, materialised: queues, keys, tasks, generation. Every worker has all of it in memory.

A write returns when this worker has applied it; another worker applies it within milliseconds, or at once by `sync`.
Changes of one name are made under a lock (`change`), for a compacted topic keeps the last writer's record.
Neighbours: `queues.py`, `tasks.py`, `keys.py` write; everyone reads. Must not know verbs.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from engine.config import Settings
from engine.errors import LogUnavailable, QueueInUse, QueueNotFound, StoreUnavailable
from engine.log import MAX_RECORD_BYTES, Log, Record, TopicSpec
from engine.queue import Queue
from schemas.records import GenerationRecord, KeyRecord, QueueRecord, TaskRecord
from schemas.wire import UndecodableRecord, decode, encode
from state.connection import Connection
from state.ending import end
from state.errors import StateUnavailable
from state.lock import LockBusy, lock

logger = logging.getLogger(__name__)

# Rebuilds need the journal since the last snapshots only; the rest of this time is for analytics.
JOURNAL_KEEP_MS = str(30 * 86_400_000)

REMEMBER_DELETED_MS = 60_000

_T = TypeVar("_T")

ControlRecord = QueueRecord | KeyRecord | TaskRecord | GenerationRecord


class Control:
    """All control records, and the way to change them."""

    def __init__(self, settings: Settings, log: Log, connection: Connection) -> None:
        self._settings = settings
        self._log = log
        self._connection = connection
        self.topic = f"{settings.topic_prefix}.control"
        self.journal_topic = f"{settings.topic_prefix}.journal"
        self.snapshot_topic = f"{settings.topic_prefix}.snapshot"
        self.queues: dict[str, Queue] = {}
        self.names: list[str] = []
        self.by_incarnation: dict[str, Queue] = {}
        self.keys: dict[str, KeyRecord] = {}
        self.tasks: dict[str, TaskRecord] = {}
        self.sources: dict[str, set[str]] = {}
        self.unfinished: dict[str, QueueRecord] = {}
        self.deleted: dict[str, int] = {}  # when (epoch ms), oldest first; at least those of the last minute
        self.journal_partitions = settings.journal_partitions
        self.generation = 0
        self.redis_run_id = ""
        self.gone: list[Callable[[Queue], None]] = []
        self._applied = 0
        self._moved = asyncio.Condition()
        self._tail: asyncio.Task[None] | None = None
        self._syncing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Makes the topics, reads all records, and follows. Raises LogUnavailable."""
        await self._make_topics()
        # What the topic has counts, not what a setting says: entries of a unit must stay in one partition.
        self.journal_partitions = await self._log.partition_count(self.journal_topic) or self._settings.journal_partitions
        ends = await self._log.end_offsets([(self.topic, 0)])
        end = ends.get((self.topic, 0), 0)
        while self._applied < end:
            await self._read(wait_ms=200)
        self._tail = asyncio.create_task(self._follow())
        if self.generation == 0:
            async with self.change("generation"):
                if self.generation == 0:
                    await self.write("generation", GenerationRecord(1, self._connection.run_id, 0))

    async def stop(self) -> None:
        await end(self._tail, self._syncing)
        self._tail = self._syncing = None

    async def _make_topics(self) -> None:
        s = self._settings
        replicas = {"min.insync.replicas": "2"} if s.replication_factor >= 3 else {}
        flush = {"flush.messages": str(s.flush_messages)} if s.flush_messages else {}
        common = {"message.timestamp.type": "LogAppendTime", "retention.bytes": "-1", **replicas, **flush}
        compact = {"cleanup.policy": "compact", "segment.ms": "3600000", **common}
        await self._log.create_topics(
            [
                TopicSpec(self.topic, 1, s.replication_factor, compact),
                TopicSpec(self.journal_topic, s.journal_partitions, s.replication_factor, {"retention.ms": JOURNAL_KEEP_MS, **common}),
                TopicSpec(
                    self.snapshot_topic, s.journal_partitions, s.replication_factor, {"max.message.bytes": str(MAX_RECORD_BYTES), **compact}
                ),
            ]
        )

    async def _follow(self) -> None:
        while True:
            try:
                await self._read(wait_ms=1000)
            except LogUnavailable as error:
                logger.warning("action=follow part=control error=%s", error)
                await asyncio.sleep(0.2)

    async def _read(self, wait_ms: int) -> None:
        chunk = await self._log.fetch(self.topic, 0, self._applied, 1000, 4_000_000, wait_ms=wait_ms)
        for record in chunk.records:
            self._apply(record)
        if chunk.next_offset > self._applied:
            async with self._moved:
                self._applied = chunk.next_offset
                self._moved.notify_all()

    def _apply(self, record: Record) -> None:
        key = (record.key or b"").decode("utf-8", "replace")
        kind, _, name = key.partition("/")
        try:
            value = decode(record.value) if record.value else None
        except UndecodableRecord as error:
            logger.error("action=apply part=control offset=%d key=%s error=%s", record.offset, key, error)
            return
        if kind == "queue" and (value is None or isinstance(value, QueueRecord)):
            self._apply_queue(name, value)
            if value is None or value.deleting:
                self._remember_deleted(name, record.timestamp_ms)
        elif kind == "key" and (value is None or isinstance(value, KeyRecord)):
            _put(self.keys, name, value)
        elif kind == "task" and (value is None or isinstance(value, TaskRecord)):
            _put(self.tasks, name, value)
        elif kind == "generation" and isinstance(value, GenerationRecord):
            self.generation, self.redis_run_id = value.generation, value.redis_run_id

    def _apply_queue(self, name: str, record: QueueRecord | None) -> None:
        old = self.queues.pop(name, None)
        if old is not None:
            self.names.remove(name)
            self.by_incarnation.pop(old.incarnation, None)
            if old.record.redrive_policy is not None:
                self.sources.get(old.record.redrive_policy.dead_letter_queue, set()).discard(name)
        self.unfinished.pop(name, None)
        if record is not None and record.deleting:
            self.unfinished[name] = record
        elif record is not None:
            queue = Queue(record, self._settings.topic_prefix)
            self.queues[name] = queue
            self.by_incarnation[record.incarnation] = queue
            bisect.insort(self.names, name)
            if record.redrive_policy is not None:
                self.sources.setdefault(record.redrive_policy.dead_letter_queue, set()).add(name)
        if old is not None and (record is None or record.deleting or record.incarnation != old.incarnation):
            for listener in self.gone:
                listener(old)

    def _remember_deleted(self, name: str, at_ms: int) -> None:
        self.deleted.pop(name, None)
        self.deleted[name] = at_ms
        while (oldest := next(iter(self.deleted))) != name and self.deleted[oldest] < at_ms - REMEMBER_DELETED_MS:
            del self.deleted[oldest]

    @contextlib.asynccontextmanager
    async def change(self, name: str) -> AsyncIterator[None]:
        """Holds the right to change what is called `name`, with all records applied. Raises QueueInUse after 10 s."""
        try:
            async with lock(self._connection, self._settings.topic_prefix, f"control:{name}", hold_ms=30_000, wait_s=10):
                await self.sync()
                yield
        except StateUnavailable as error:
            raise StoreUnavailable(f"{name!r} can't be changed without Redis: {error}") from error
        except LockBusy:
            raise QueueInUse(f"another change of {name!r} is under way", field="name", given=name) from None

    async def write(self, key: str, record: ControlRecord | None) -> None:
        """Writes a record (None: a tombstone) and returns when it is applied here. Raises LogUnavailable."""
        value = None if record is None else encode(record)
        appended = await self._log.append(self.topic, 0, value, key=key.encode())
        await self._reach(appended.offset + 1)

    async def _reach(self, offset: int) -> None:
        async with self._moved:
            try:
                async with asyncio.timeout(10):
                    await self._moved.wait_for(lambda: self._applied >= offset)
            except TimeoutError:
                raise LogUnavailable(f"the control topic did not come to offset {offset} within 10 s") from None

    async def sync(self) -> None:
        """Returns when everything written before the call is applied. Concurrent calls share one look at Kafka."""
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.create_task(self._sync())
            await asyncio.shield(self._syncing)
            return
        # The look under way may have begun before our caller's cause: wait for it, then look once more.
        with contextlib.suppress(LogUnavailable):
            await asyncio.shield(self._syncing)
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.create_task(self._sync())
        await asyncio.shield(self._syncing)

    async def _sync(self) -> None:
        ends = await self._log.end_offsets([(self.topic, 0)])
        await self._reach(ends.get((self.topic, 0), 0))

    async def queue(self, name: str) -> Queue:
        """The queue of that name, looked up once more in Kafka when unknown here. Raises QueueNotFound."""
        queue = self.queues.get(name)
        if queue is None:
            await self.sync()
            queue = self.queues.get(name)
        if queue is None:
            raise QueueNotFound(f"there is no queue {name!r}", field="queue", given=name)
        return queue


def _put(table: dict[str, _T], name: str, value: _T | None) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value
