"""The control topic, materialised: queues, keys, tasks, users, watches, generation. Every worker
has all of it in memory.

A write returns when this worker has applied it; another worker applies it within milliseconds, or
at once by `sync`. Changes of one name are made under a lock (`change`), so that they come one after
the other; what a worker writes that has lost the lock meanwhile does not count (`precedence.py`).
Longer than 250 lines: the records in memory and the right to change them are one thing to all who
use it.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import TypeVar

from engine.catalog.precedence import Precedence
from engine.errors import EngineError, LogUnavailable, QueueInUse, QueueNotFound, QueueRenewed, StoreUnavailable
from engine.log import MAX_RECORD_BYTES, Log, Record, TopicSpec
from engine.rules.queue import Queue
from engine.runtime.failpoints import reached
from engine.runtime.signals import Signal
from engine.settings import EngineSettings
from schemas.records import GenerationRecord, KeyRecord, ProducerGroupRecord, QueueRecord, TaskRecord, UserRecord
from schemas.records.watching import WatchRecord
from schemas.topics import METER_DAYS, METER_PARTITIONS, QUEUE_KEY, control_topic, journal_topic, meter_topic, snapshot_topic
from schemas.wire import UndecodableRecord, decode, encode
from state.background import Background
from state.cancel import cancel_all
from state.errors import StateError
from state.redis.connection import Connection
from state.redis.lock import Hold, LockBusy, lock

logger = logging.getLogger(__name__)

# Rebuilds need the journal since the last snapshots only; the rest of this time is for analytics.
JOURNAL_KEEP_MS = str(30 * 86_400_000)
METER_KEEP_MS = str(METER_DAYS * 86_400_000)

REMEMBER_DELETED_MS = 60_000
# A worker that stops is waited for so long before another may make the change that it was about to
# make.
HOLD_MS = 10_000
# Who wants to change what another is changing waits so long.
WAIT_S = 10.0
# Kafka must not compact a control record away before what came after it was found not to count, nor
# a snapshot under its reader.
CONTROL_LAG_MS = 86_400_000
SNAPSHOT_LAG_MS = 3_600_000
# How long a start waits for the leader of a topic.
LEADER_S = 20.0
# How soon a repair that failed is tried again.
REPAIR_S = 1.0
# Of a control record: the offset up to which its writer had read the topic when it decided.
SEEN = "lw-seen"

_T = TypeVar("_T")

ControlRecord = QueueRecord | KeyRecord | TaskRecord | UserRecord | ProducerGroupRecord | WatchRecord | GenerationRecord


class Change:
    """The right to change what is called `name`, from `Catalog.change`; for one task."""

    def __init__(self, catalog: Catalog, name: str, hold: Hold, seen: int) -> None:
        self._catalog = catalog
        self._name = name
        self._hold = hold
        self._seen = seen

    def check(self) -> None:
        """Before each step that no reader can refuse, as to delete a topic. Raises QueueInUse when
        the right is lost.
        """
        if not self._hold.is_valid:
            raise QueueInUse(
                f"the change of {self._name!r} took too long and was given up: another worker may be changing it",
                field="name", given=self._name,
            )  # fmt: skip

    async def write(self, key: str, record: ControlRecord | None) -> None:
        """Writes a record (None: a tombstone) and returns when it is applied here.

        Raises LogUnavailable (the outcome is unknown), QueueInUse (another change came before:
        nothing was changed).
        """
        reached("change.before_write")
        self.check()
        offset = await self._catalog.append(key, None if record is None else encode(record), self._seen)
        if offset is None:
            raise QueueInUse(f"{self._name!r} was changed by another worker meanwhile", field="name", given=self._name)
        self._seen = max(self._seen, offset + 1)


class Catalog:
    """All control records, and the way to change them. `queue_gone` tells of each queue whose life
    is over.
    """

    def __init__(self, settings: EngineSettings, log: Log, connection: Connection, queue_gone: Signal[[Queue]]) -> None:
        self._settings = settings
        self._log = log
        self._connection = connection
        self.topic = control_topic(settings.topic_prefix)
        self.journal_topic = journal_topic(settings.topic_prefix)
        self.snapshot_topic = snapshot_topic(settings.topic_prefix)
        self.queues: dict[str, Queue] = {}
        self.names: list[str] = []
        self.by_incarnation: dict[str, Queue] = {}
        self.keys: dict[str, KeyRecord] = {}
        self.tasks: dict[str, TaskRecord] = {}
        self.users: dict[str, UserRecord] = {}
        self.producer_groups: dict[str, ProducerGroupRecord] = {}
        self.watches: dict[str, WatchRecord] = {}  # by the name of the queue, which may have another life by now
        self.sources: dict[str, set[str]] = {}
        self.unfinished: dict[str, QueueRecord] = {}
        self.deleted: dict[str, int] = {}  # when (epoch ms), oldest first; at least those of the last minute
        self.journal_partitions = settings.journal_partitions
        self.generation, self.redis_run_id, self.changes = 0, "", 0  # `changes`: how many records were applied
        self._queue_gone = queue_gone
        self.rights_changed: Signal[[str]] = Signal()  # perhaps lost: with the queue of an incarnation, "" = with any
        self._applied = 0
        self._precedence = Precedence()
        self._moved = asyncio.Condition()
        self._background = Background()
        self._tail: asyncio.Task[None] | None = None
        self._repair: asyncio.Task[None] | None = None
        self._refused = asyncio.Event()
        self._syncing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Makes the topics, reads all records, and follows. Raises LogUnavailable."""
        await self._make_topics()
        # What the topic has counts, not what a setting says: entries of a unit must stay in one
        # partition.
        self.journal_partitions = await self._log.partition_count(self.journal_topic) or self._settings.journal_partitions
        await self._read_all()
        self._tail = self._background.keep(self._follow, "follow")
        self._repair = self._background.keep(self._repair_all, "repair")
        if self.generation == 0:
            async with self.change("generation") as change:
                if self.generation == 0:
                    await change.write("generation", GenerationRecord(1, self._connection.run_id, 0))

    async def _read_all(self) -> None:
        """Reads to the end. A topic that was made a moment ago, also by another worker, has no
        leader yet: that is waited for.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + LEADER_S
        while True:
            try:
                last = await self._end()
                while self._applied < last:
                    await self._read(wait_ms=200)
                return
            except LogUnavailable:
                if loop.time() > until:
                    raise
                await asyncio.sleep(0.1)

    async def _end(self) -> int:
        part = (self.topic, 0)
        found = (await self._log.end_offsets([part])).get(part)
        if found is None:
            raise LogUnavailable(f"the end of {self.topic} can't be read")
        return found

    async def stop(self) -> None:
        await cancel_all(self._tail, self._repair, self._syncing)
        self._tail = self._repair = self._syncing = None

    async def _make_topics(self) -> None:
        s = self._settings
        replicas = {"min.insync.replicas": "2"} if s.replication_factor >= 3 else {}
        flush = {"flush.messages": str(s.flush_messages)} if s.flush_messages else {}
        common = {"message.timestamp.type": "LogAppendTime", "retention.bytes": "-1", **replicas, **flush}
        lag = {self.topic: str(CONTROL_LAG_MS), self.snapshot_topic: str(SNAPSHOT_LAG_MS)}
        compact = {"cleanup.policy": "compact", "segment.ms": "3600000", **common}
        made = await self._log.create_topics(
            [
                TopicSpec(self.topic, 1, s.replication_factor, {**compact, "min.compaction.lag.ms": lag[self.topic]}),
                TopicSpec(self.journal_topic, s.journal_partitions, s.replication_factor, {"retention.ms": JOURNAL_KEEP_MS, **common}),
                TopicSpec(meter_topic(s.topic_prefix), METER_PARTITIONS, s.replication_factor, {"retention.ms": METER_KEEP_MS, **common}),
                TopicSpec(
                    self.snapshot_topic,
                    s.journal_partitions,
                    s.replication_factor,
                    {
                        "max.message.bytes": str(MAX_RECORD_BYTES),
                        **compact,
                        "min.compaction.lag.ms": lag[self.snapshot_topic],
                    },
                ),
            ]
        )
        for topic, lag_ms in lag.items():
            if made.get(topic) == "exists":
                # Made by a version that did not ask for it, or by an administrator, who may not let
                # us change it.
                try:
                    await self._log.set_topic_config(topic, {"min.compaction.lag.ms": lag_ms})
                except LogUnavailable as error:
                    logger.warning("action=set_topic_config topic=%s error=%s", topic, error)

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
        seen = _seen_of(record)
        if not self._precedence.offer(key, record.offset, seen, deletes=not record.value, at_ms=record.timestamp_ms):
            logger.warning("action=refuse part=control offset=%d key=%s seen=%d", record.offset, key, seen)
            self._refused.set()
            return
        self.changes += 1
        kind, _, name = key.partition("/")
        try:
            value = decode(record.value) if record.value else None
        except UndecodableRecord as error:
            logger.error("action=apply part=control offset=%d key=%s error=%s", record.offset, key, error)
            return
        if kind == "queue" and (value is None or isinstance(value, QueueRecord)):
            was_there = name in self.queues
            self._apply_queue(name, value)
            if was_there and name not in self.queues:
                self._remember_deleted(name, record.timestamp_ms)
        elif kind == "key" and (value is None or isinstance(value, KeyRecord)):
            _put(self.keys, name, value)
            self.rights_changed("")
        elif kind == "task" and (value is None or isinstance(value, TaskRecord)):
            _put(self.tasks, name, value)
        elif kind == "user" and (value is None or isinstance(value, UserRecord)):
            _put(self.users, name, value)
        elif kind == "producers" and (value is None or isinstance(value, ProducerGroupRecord)):
            _put(self.producer_groups, name, value)
        elif kind == "watch" and (value is None or isinstance(value, WatchRecord)):
            _put(self.watches, name, value)
        elif kind == "generation" and isinstance(value, GenerationRecord):
            self.generation, self.redis_run_id = value.generation, value.redis_run_id

    def _apply_queue(self, name: str, record: QueueRecord | None) -> None:
        old = self.queues.pop(name, None)
        if old is not None:
            self.names.remove(name)
            self.by_incarnation.pop(old.incarnation, None)
            for target in old.dead_letter_queues:
                self.sources.get(target, set()).discard(name)
        self.unfinished.pop(name, None)
        if record is not None and record.deleting:
            self.unfinished[name] = record
        elif record is not None:
            queue = Queue(record, self._settings.topic_prefix)
            self.queues[name] = queue
            self.by_incarnation[record.incarnation] = queue
            bisect.insort(self.names, name)
            for target in queue.dead_letter_queues:
                self.sources.setdefault(target, set()).add(name)
        if old is not None and (record is None or record.deleting or record.incarnation != old.incarnation):
            self._queue_gone(old)
        elif old is not None and record is not None and (old.record.grants, old.record.owner) != (record.grants, record.owner):
            self.rights_changed(record.incarnation)

    def _remember_deleted(self, name: str, at_ms: int) -> None:
        self.deleted.pop(name, None)
        self.deleted[name] = at_ms
        while (oldest := next(iter(self.deleted))) != name and self.deleted[oldest] < at_ms - REMEMBER_DELETED_MS:
            del self.deleted[oldest]

    @contextlib.asynccontextmanager
    async def change(self, name: str) -> AsyncIterator[Change]:
        """Holds the right to change what is called `name`, with all records applied. Raises
        QueueInUse after WAIT_S.
        """
        try:
            async with lock(self._connection, self._settings.topic_prefix, f"control:{name}", hold_ms=HOLD_MS, wait_s=WAIT_S) as hold:
                await self.sync()
                yield Change(self, name, hold, self._applied)
        except LockBusy:
            raise QueueInUse(f"another change of {name!r} is under way", field="name", given=name) from None
        except StateError as error:
            raise StoreUnavailable(f"{name!r} can't be changed without Redis: {error}") from error

    async def append(self, key: str, value: bytes | None, seen: int) -> int | None:
        """Appends a record decided on when the topic was read up to `seen`; returns its offset when
        it is applied here.

        None: it does not count, for somebody else's came before it. Only `Change` calls it. Raises
        LogUnavailable.
        """
        appended = await self._log.append(self.topic, 0, value, key=key.encode(), headers=[(SEEN, str(seen).encode())])
        await self._reach(appended.offset + 1)
        return None if self._precedence.was_refused(appended.offset) else appended.offset

    async def _repair_all(self) -> None:
        """Writes again what counts where the last record of a key does not, until Kafka has it:
        compaction keeps the last one.
        """
        while True:
            await self._refused.wait()
            self._refused.clear()
            for key in list(self._precedence.overwritten):
                try:
                    await self._write_again(key)
                except (EngineError, StateError) as error:
                    logger.warning("action=write_again part=control key=%s error=%s", key, error)
                    self._refused.set()
            if self._refused.is_set():
                await asyncio.sleep(REPAIR_S)

    async def _write_again(self, key: str) -> None:
        async with self.change(key.removeprefix(QUEUE_KEY)):
            offset = self._precedence.overwritten.get(key)
            if offset is None:
                return
            chunk = await self._log.fetch(self.topic, 0, offset, 1, 4_000_000)
            if not chunk.records or chunk.records[0].offset != offset:
                logger.error("action=write_again part=control key=%s offset=%d reason=Kafka no longer has it", key, offset)
                return
            await self.append(key, chunk.records[0].value, self._applied)

    async def _reach(self, offset: int) -> None:
        async with self._moved:
            try:
                async with asyncio.timeout(10):
                    await self._moved.wait_for(lambda: self._applied >= offset)
            except TimeoutError:
                raise LogUnavailable(f"the control topic did not come to offset {offset} within 10 s") from None

    async def sync(self) -> None:
        """Returns when everything written before the call is applied. Concurrent calls share one
        look at Kafka.
        """
        if self._syncing is None or self._syncing.done():
            self._syncing = self._background.start(self._sync(), "sync", awaited=True)
            await asyncio.shield(self._syncing)
            return
        # The look under way may have begun before our caller's cause: wait for it, then look once
        # more.
        with contextlib.suppress(LogUnavailable):
            await asyncio.shield(self._syncing)
        if self._syncing is None or self._syncing.done():
            self._syncing = self._background.start(self._sync(), "sync", awaited=True)
        await asyncio.shield(self._syncing)

    async def _sync(self) -> None:
        await self._reach(await self._end())

    async def queue(self, name: str) -> Queue:
        """The queue of that name, looked up once more in Kafka when unknown here. Raises
        QueueNotFound.
        """
        queue = self.queues.get(name)
        if queue is None:
            await self.sync()
            queue = self.queues.get(name)
        if queue is None:
            raise QueueNotFound(f"there is no queue {name!r}", field="queue", given=name)
        return queue

    def ended(self, queue: Queue) -> EngineError:
        """Why a life of a queue is not in the catalog: QueueNotFound, or QueueRenewed when there is
        a later one, which a verb that is repeated finds.
        """
        if queue.name in self.queues:
            return QueueRenewed(f"queue {queue.name!r} began a new life meanwhile: ask again")
        return QueueNotFound(f"queue {queue.name!r} was deleted", field="queue", given=queue.name)


def _seen_of(record: Record) -> int | None:
    """What the writer of a record had seen; None = it does not say. What can't be read is as if it
    had seen nothing.
    """
    found = next((value for name, value in record.headers or () if name == SEEN), None)
    if found is None:
        return None
    return int(found) if found.isdigit() and len(found) < 20 else 0


def _put(table: dict[str, _T], name: str, value: _T | None) -> None:
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value
