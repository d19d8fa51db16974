"""The control topic, materialised: queues, keys, tasks, users, watches, generation. Every worker
has all of it in memory.

A write returns when this worker has applied it; another worker applies it within milliseconds, or
at once by `sync`. Changes of one name are made under a lock (`change`), so that they come one after
the other; what a worker writes that has lost the lock meanwhile does not count (`candidates.py`),
nor does what no worker of this installation has sealed (`seal.py`).
Longer than 250 lines: the records in memory and the right to change them are one thing to all who
use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from engine.catalog.candidates import Candidates, Precedence
from engine.catalog.control_topics import KEPT, topics_of
from engine.catalog.repairs import Repairs
from engine.catalog.seal import Broken, Reason, Seal
from engine.catalog.tables import ControlRecord, Tables
from engine.errors import LogUnavailable, NotOurs, QueueInUse, QueueNotFound, StoreUnavailable
from engine.log import Log, Record
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from runtime import deadline
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import kafka_ms
from runtime.counters import Alarms, Counters
from runtime.failpoints import reached
from runtime.signals import Signal
from schemas.records import ClaimRecord, GenerationRecord
from schemas.topics import QUEUE_KEY, control_topic, journal_topic, snapshot_topic
from schemas.wire import UndecodableRecord, decode, encode
from state.errors import StateError
from state.redis.connection import Connection
from state.redis.lock import Hold, LockBusy, lock

logger = logging.getLogger(__name__)

# A worker that stops is waited for so long before another may make the change that it was about to
# make.
HOLD_MS = 10_000
# Who wants to change what another is changing waits so long.
WAIT_S = 10.0
# What an event has seen: it depends on nothing.
_ALL_SEEN = 2**62
# Of the records that do not count so many get a line in the log each, then one in a thousand.
LOGGED = 100


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


class Catalog(Tables):
    """All control records, and the way to change them. `queue_gone` tells of each queue whose life
    is over.
    """

    def __init__(
        self,
        settings: EngineSettings,
        log: Log,
        connection: Connection,
        queue_gone: Signal[[Queue]],
        counters: Counters,
        alarms: Alarms,
        *,
        candidates: Candidates | None = None,
    ) -> None:
        """`candidates` hear of every record, for an operator to look at; then a start writes
        nothing, and a topic of another secret is opened too.
        """
        super().__init__(settings.topic_prefix, queue_gone)
        # Tells that a change of what has this name begins (True) or has ended, here.
        self.held: Signal[[str, bool]] = Signal()
        self._settings = settings
        self._log = log
        self._connection = connection
        self.topic = control_topic(settings.topic_prefix)
        self.journal_topic = journal_topic(settings.topic_prefix)
        self.snapshot_topic = snapshot_topic(settings.topic_prefix)
        self.journal_partitions = settings.journal_partitions
        # Keys whose last record does not count, with why; keys whose record the old secret sealed.
        self.refused: dict[str, Reason] = {}
        self.old_sealed: set[str] = set()
        self._counters = counters
        self._alarms = alarms
        self._candidates = candidates
        self._seal = Seal(self.topic, settings.secret, settings.secret_old)
        self._has_read = False
        self._sealed_since: int | None = None  # the offset of the first record that was sealed
        self._applied = 0
        self._precedence = Precedence()
        self._moved = asyncio.Condition()
        self._background = Background()
        self._tail: asyncio.Task[None] | None = None
        self._repairs = Repairs(lambda: self._precedence.overwritten, self._write_again)
        self._syncing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Makes the topics, reads all records, follows; may be repeated. Raises LogUnavailable,
        StoreUnavailable, QueueInUse, NotOurs.
        """
        if self._tail is None:
            await self._open()
        if self._candidates is None and self.generation == 0:
            server = self._connection.server
            await self.name_life(GenerationRecord(1, server.run_id, 0, server.promotion, server.evicted))
            self.check_ours()

    async def _open(self) -> None:
        await self._make_topics()
        # What the topic has counts, not what a setting says: entries of a unit must stay in one
        # partition.
        self.journal_partitions = (
            await self._log.partition_count(self.journal_topic) or self._settings.journal_partitions
        )
        await self._read_all()
        if self._candidates is None:
            self.check_ours()
        self._has_read = True
        for key, reason in self.refused.items():
            self._tell(key, reason)
        self._repairs.ask()
        self._tail = self._background.keep(self._follow, "follow")
        if self._candidates is None:
            self._repairs.start()

    async def _read_all(self) -> None:
        """Reads to the end. Raises LogUnavailable, also of a topic that was made a moment ago and
        has no leader yet: what was read until then is not read again.
        """
        last = await self._end()
        while self._applied < last:
            await self._read(wait_ms=200)

    async def _end(self) -> int:
        part = (self.topic, 0)
        found = (await self._log.end_offsets([part])).get(part)
        if found is None:
            raise LogUnavailable(f"the end of {self.topic} can't be read", soon=True)
        return found

    async def stop(self) -> None:
        await self._repairs.stop()
        await cancel_all(self._tail, self._syncing)
        self._tail = self._syncing = None

    def check_ours(self) -> None:
        """A worker with another secret than the others would take all that they write for forged.
        Raises NotOurs.
        """
        if self.refused and self._sealed_since is None:
            reasons = sorted(set(self.refused.values()))
            raise NotOurs(
                f"none of the {len(self.refused)} records of {self.topic} counts "
                f"({'; '.join(reason.about for reason in reasons)}): start with the LEASEWAY_SECRET that they were "
                "written with, or let `leaseway seal` say what is there"
            )

    async def _make_topics(self) -> None:
        specs = topics_of(self._settings)
        made = await self._log.create_topics(specs)
        for spec in specs:
            # Made by a version that did not ask for it, or by an administrator, who may not let us
            # change it.
            if (
                made.get(spec.name) == "exists"
                and (kept := {name: spec.config[name] for name in KEPT if name in spec.config}).keys() == KEPT
            ):
                try:
                    await self._log.set_topic_config(spec.name, kept)
                except LogUnavailable as error:
                    logger.warning("action=set_topic_config topic=%s error=%s", spec.name, error)

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
        try:
            opened = self._seal.open(key, record)
        except Broken as broken:
            if self._candidates is not None:
                self._candidates.refused(key, record, broken)
            self._precedence.refuse(key, record.offset)
            self._refuse(key, broken.reason)
            return
        since = record.offset if opened.since is None else opened.since
        self._sealed_since = since if self._sealed_since is None else min(since, self._sealed_since)
        if self._candidates is not None:
            self._candidates.sealed(key, since)
        known = self._seal.was_known(opened.nonce, record.timestamp_ms) if opened.nonce else False
        if not self._precedence.offer(
            key, record.offset, opened.seen, deletes=opened.value is None, at_ms=record.timestamp_ms
        ):
            logger.warning("action=refuse part=control offset=%d key=%s seen=%s", record.offset, key, opened.seen)
            if known:
                self._refuse(key, Reason.REPLAYED)
            self._repairs.ask()
            return
        self.refused.pop(key, None)
        (self.old_sealed.discard if opened.current else self.old_sealed.add)(key)
        kind, _, name = key.partition("/")
        try:
            value = decode(opened.value) if opened.value else None
        except UndecodableRecord as error:
            logger.error("action=apply part=control offset=%d key=%s error=%s", record.offset, key, error)
            return
        self.put(kind, name, value, record.timestamp_ms)

    def _refuse(self, key: str, reason: Reason) -> None:
        """Notes that the last record of a key does not count because of its seal. At the start it
        is told when all is read: what was written over meanwhile is of the past.
        """
        self.refused[key] = reason
        if self._has_read:
            self._tell(key, reason)
            self._repairs.ask()

    def _tell(self, key: str, reason: Reason) -> None:
        self._counters.count("control_refused_total")
        number = self._counters.get("control_refused_total")
        if number <= LOGGED or number % 1000 == 0:
            logger.error("action=alarm kind=control_refused key=%r: %s", key[:100], reason.about)
        self._alarms.set("control_refused", reason, self._alarms.values.get(("control_refused", reason), 0) + 1)

    @contextlib.asynccontextmanager
    async def change(self, name: str) -> AsyncIterator[Change]:
        """Holds the right to change what is called `name`, with all records applied. Raises
        QueueInUse after WAIT_S.
        """
        of = self._connection, self._settings.topic_prefix, f"control:{name}"
        try:
            async with lock(*of, hold_ms=HOLD_MS, wait_s=WAIT_S, lost_s=deadline.STATE_S) as hold:
                await self.sync()
                self.held(name, True)
                try:
                    reached("change.closed")
                    yield Change(self, name, hold, self._applied)
                finally:
                    self.held(name, False)
        except LockBusy:
            raise QueueInUse(f"another change of {name!r} is under way", field="name", given=name) from None
        except StateError as error:
            raise StoreUnavailable(f"{name!r} can't be changed without Redis: {error}") from error

    async def append(self, key: str, value: bytes | None, seen: int) -> int | None:
        """Appends a record decided on when the topic was read up to `seen`; returns its offset when
        it is applied here.

        None: it does not count, for somebody else's came before it. `value` is what it says; it is
        sealed here. Only `Change` and this module call it. Raises LogUnavailable.
        """
        content, headers = self._seal.close(key, value, seen, kafka_ms(), self._sealed_since)
        appended = await self._log.append(self.topic, 0, content, key=key.encode(), headers=headers)
        await self._reach(appended.offset + 1)
        if not self._precedence.was_refused(appended.offset):
            return appended.offset
        if self.refused.get(key) == Reason.STALE:
            raise LogUnavailable(
                "the clocks of this worker and of Kafka differ by more than an hour, so what it writes does not count"
            )
        return None

    async def name_life(self, record: GenerationRecord) -> bool:
        """Names a life of Redis, by what is applied here; False = another worker did meanwhile.
        Needs no Redis. Raises LogUnavailable.
        """
        return await self.append("generation", encode(record), self._applied) is not None

    async def claim(self, record: ClaimRecord) -> None:
        """Writes a claim. It is an event, not a setting: it counts whatever came before it. Raises
        LogUnavailable.
        """
        await self.append("claim", encode(record), _ALL_SEEN)

    async def _write_again(self, key: str) -> None:
        """Of a key that nothing counts of, what does not count is left for people to look at."""
        if self._precedence.overwritten.get(key, -1) >= 0:
            await self.write_again(key)

    async def write_again(self, key: str) -> None:
        """Writes what counts of a key as its last record, sealed with the secret of now. Raises
        QueueInUse, LogUnavailable, StoreUnavailable.
        """
        async with self.change(key.removeprefix(QUEUE_KEY)):
            offset = self._precedence.counts(key)
            if offset is None:
                return
            chunk = await self._log.fetch(self.topic, 0, offset, 1, 4_000_000)
            try:
                if not chunk.records or chunk.records[0].offset != offset:
                    raise LookupError("Kafka no longer has it")
                opened = self._seal.open(key, chunk.records[0])
            except (LookupError, Broken) as error:
                logger.error("action=write_again part=control key=%s offset=%d reason=%s", key, offset, error)
            else:
                await self.append(key, opened.value, self._applied)

    async def adopt(self, key: str, value: bytes | None) -> bool:
        """Seals `value` (None: deletes) where nothing of the key counts; whether it did. Raises
        QueueInUse, LogUnavailable, StoreUnavailable.
        """
        async with self.change(key.removeprefix(QUEUE_KEY)):
            if self._precedence.counts(key) is not None:
                return False
            return await self.append(key, value, self._applied) is not None

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
