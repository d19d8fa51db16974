"""Snapshots of the journal, so that a rebuild reads its last seconds and not its days.

Partition p of the snapshot topic belongs to partition p of the journal. One worker at a time (a
lock in Redis) folds a journal partition in memory and writes a snapshot of each unit that changed,
then the position up to which all snapshots hold. A crash in between repeats work: entries that a
snapshot has already are known by their seq.

A worker that takes the lock begins an **epoch**: it appends a mark, whose offset is the number of
the epoch, and writes under keys of that epoch, each unit once before its first position. Readers
take the highest epoch that has a position, whole, and nothing else. So a holder that was stopped
and goes on after its successor replaces nothing, also not by Kafka's compaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, MessageTooLarge
from engine.journal.fold import UnitState
from engine.log import Log, Record
from engine.runtime.clock import now_ms
from engine.runtime.counters import Alarms, Counters
from engine.runtime.failpoints import reached
from engine.runtime.service import Periodic
from schemas.records import JournalRecord, PositionRecord, SnapshotRecord
from schemas.wire import AnyRecord, UndecodableRecord, decode, encode
from state.background import Background
from state.cancel import cancel_all
from state.errors import StateError
from state.keys import Unit
from state.redis.connection import Connection
from state.redis.lock import Hold

logger = logging.getLogger(__name__)

ROUND_S = 10.0
# Snapshots of a journal partition are due when half as many messages changed as they hold, as Redis
# rewrites its file: a rebuild then reads half as much again at most, and who holds a million leases
# does not encode them all every round. Few, or old ones, are always due.
ALWAYS_BELOW = 10_000
MAX_AGE_MS = 600_000
HOLD_MS = 20_000
# Appends on their way at a time: a snapshot may have 16 MiB.
SIDE_BY_SIDE = 16
POSITION = b"position"
# The key of the mark that begins an epoch; it has no value.
EPOCH = b"epoch"
# Of snapshots that were written before there were epochs.
NO_EPOCH = -1


def _nothing(_unit: Unit, _record: JournalRecord) -> None:
    """Notes nothing."""


class FoldedJournal:
    """A journal partition folded up to `offset`. Since the last snapshots, of `at_ms`: units
    `changed`, by entries of `noted` messages.

    `epoch`: of the snapshots that it began from. `replaced`: keys of earlier epochs, which nobody
    needs after the next position.
    """

    def __init__(self) -> None:
        self.units: dict[Unit, UnitState] = {}
        self.changed: set[Unit] = set()
        self.offset = 0
        self.noted = 0
        self.at_ms = 0
        self.epoch = NO_EPOCH
        self.replaced: set[bytes] = set()

    def begin(self, epoch: int) -> None:
        """Everything is to be written again, under the keys of an epoch of our own."""
        self.epoch, self.at_ms = epoch, 0
        self.changed = set(self.units)
        # A successor may have begun while we read.
        self.replaced = {key for key in self.replaced if epoch_of(key) < epoch}

    def is_due(self) -> bool:
        """Whether snapshots of what changed are worth their cost."""
        size = sum(self.units[unit].size() for unit in self.changed)
        return size <= ALWAYS_BELOW or 2 * self.noted >= size or now_ms() - self.at_ms >= MAX_AGE_MS


class _Held:
    """A journal partition that this worker writes the snapshots of: the lock, who renews it, and
    what is folded.
    """

    def __init__(self, hold: Hold, keeper: asyncio.Task[None]) -> None:
        self.hold = hold
        self.keeper = keeper
        self.folded = FoldedJournal()

    async def stop(self) -> None:
        await cancel_all(self.keeper)
        await self.hold.give_up()


class Snapshots:
    """Folds journal partitions. `run_once` may be called by tests; the loop calls it every 10 s."""

    def __init__(self, prefix: str, log: Log, connection: Connection, catalog: Catalog, counters: Counters, alarms: Alarms) -> None:
        self._prefix = prefix
        self._log = log
        self._connection = connection
        self._catalog = catalog
        self._counters = counters
        self._alarms = alarms
        self._held: dict[int, _Held] = {}
        self._background = Background()
        self._service = Periodic("snapshot", self.run_once, ROUND_S, quiet=(EngineError, StateError))

    async def start(self) -> None:
        await self._service.start()

    async def stop(self) -> None:
        """Ends the loop, and lets another worker go on at once."""
        await self._service.stop()
        held, self._held = self._held, {}
        await asyncio.gather(*(each.stop() for each in held.values()))

    async def run_once(self) -> None:
        """One round over the partitions that this worker holds. Raises LogUnavailable,
        StateUnavailable.
        """
        for partition in range(self._catalog.journal_partitions):
            held = self._held.get(partition)
            if held is not None and not held.hold.is_valid:
                await self._held.pop(partition).stop()
                held = None
            if held is None:
                held = await self._take(partition)
            else:
                await self._fold(partition, held.folded)
            if held is not None and held.folded.is_due():
                await self._write(partition, held)

    async def _take(self, partition: int) -> _Held | None:
        """The partition, if nobody else has it: folded, and an epoch of its own begun. Another
        worker's later one ends ours.
        """
        hold = Hold(self._connection, self._prefix, f"snapshot:{partition}", HOLD_MS)
        if not await hold.take():
            return None
        held = self._held[partition] = _Held(hold, self._background.start(hold.keep(), "keep snapshot"))
        try:
            mark = await self._log.append(self._catalog.snapshot_topic, partition, None, key=EPOCH)
            held.folded = await self.read(partition)
        except BaseException:
            await self._held.pop(partition).stop()
            raise
        held.folded.begin(mark.offset)
        return held

    async def read(self, partition: int) -> FoldedJournal:
        """A journal partition folded to its end: snapshots first, then what came after them. Raises
        LogUnavailable.
        """
        newest: dict[bytes, Record] = {}

        def keep_newest(record: Record) -> None:
            newest[record.key or b""] = record

        # Decoded once they are all seen: until Kafka compacts the topic, it has every snapshot of
        # the last hour.
        await self._fetch_all(self._catalog.snapshot_topic, partition, 0, keep_newest)
        folded = await asyncio.to_thread(self._from_snapshots, newest)
        await self._fold(partition, folded)
        return folded

    def _from_snapshots(self, newest: dict[bytes, Record]) -> FoldedJournal:
        folded = FoldedJournal()
        epochs = [epoch_of(key) for key, record in newest.items() if record.value and key.startswith(POSITION)]
        folded.epoch = max(epochs, default=NO_EPOCH)
        unreadable = False
        for key, record in newest.items():
            if not record.value:
                continue
            folded.replaced.add(key)
            if epoch_of(key) != folded.epoch:
                continue
            value = self._decode(record)
            if isinstance(value, SnapshotRecord):
                folded.units[Unit(value.incarnation, value.partition)] = UnitState.from_snapshot(value)
            elif isinstance(value, PositionRecord):
                folded.offset, folded.at_ms = value.journal_offset, value.at_ms
            unreadable = unreadable or value is None
        if unreadable:
            # The position counts on every snapshot: without one of them, the journal is read from
            # its beginning.
            folded.offset = 0
        return folded

    async def _fold(self, partition: int, folded: FoldedJournal) -> None:
        await self._check_gap(partition, folded.offset)
        await self.follow(partition, folded)

    async def follow(self, partition: int, folded: FoldedJournal, note: Callable[[Unit, JournalRecord], None] = _nothing) -> None:
        """Folds what has come since; `note` sees each record of a unit before it is applied. Raises
        LogUnavailable: what was applied by then is known by its seq.
        """

        def apply(record: Record, value: AnyRecord | None) -> None:
            if isinstance(value, JournalRecord):
                self._counters.count("journal_entries_read_total", len(value.entries))
                unit = Unit(value.incarnation, value.partition)
                note(unit, value)
                if folded.units.setdefault(unit, UnitState()).apply(value):
                    folded.changed.add(unit)
                    folded.noted += sum(len(entry.offsets) for entry in value.entries)

        folded.offset = await self.scan(self._catalog.journal_topic, partition, folded.offset, apply)

    async def _check_gap(self, partition: int, offset: int) -> None:
        """Tells when the journal no longer has what comes after the snapshots: acks in the gap
        would be forgotten by a rebuild.
        """
        topic = self._catalog.journal_topic
        start = (await self._log.start_offsets([(topic, partition)])).get((topic, partition), 0)
        if offset < start:
            self._counters.count("journal_gaps_total")
            self._alarms.set("journal_gap", f"{topic}/{partition}", start - offset)
            logger.error(
                "action=fold topic=%s partition=%d from=%d start=%d reason=records after the snapshots were deleted",
                topic, partition, offset, start,
            )  # fmt: skip

    async def scan(self, topic: str, partition: int, offset: int, apply: Callable[[Record, AnyRecord | None], None]) -> int:
        """Applies every record up to the end as it is now; returns where to go on. Unreadable ones
        are counted and passed.
        """

        def decoded(record: Record) -> None:
            if (value := self._decode(record)) is not None or not record.value:
                apply(record, value)

        return await self._fetch_all(topic, partition, offset, decoded)

    async def _fetch_all(self, topic: str, partition: int, offset: int, apply: Callable[[Record], None]) -> int:
        log, part = self._log, (topic, partition)
        offset = max(offset, (await log.start_offsets([part])).get(part, 0))
        end_offset = (await log.end_offsets([part])).get(part, 0)
        while offset < end_offset:
            chunk = await log.fetch(topic, partition, offset, 1000, 4_000_000, wait_ms=200)
            # In a thread: a day of journal must not hold up the requests of this worker.
            await asyncio.to_thread(_apply_all, chunk.records, apply)
            offset = chunk.next_offset
        return offset

    def _decode(self, record: Record) -> AnyRecord | None:
        """None for a tombstone, and for what can't be read: that is counted."""
        try:
            return decode(record.value) if record.value else None
        except UndecodableRecord as error:
            self._counters.count("undecodable_records_total")
            logger.error("action=skip topic=%s partition=%d offset=%d error=%s", record.topic, record.partition, record.offset, error)
            return None

    async def _write(self, partition: int, held: _Held) -> None:
        """Snapshots of what changed, then the position. Stops where the lock is lost: what is
        written then, nobody reads.
        """
        topic, folded = self._catalog.snapshot_topic, held.folded
        if not folded.changed:
            return
        await self._catalog.sync()
        gone = [unit for unit in folded.units if unit.incarnation not in self._catalog.by_incarnation]
        for unit in gone:
            folded.changed.discard(unit)
            del folded.units[unit]
            folded.replaced.add(snapshot_key(unit, folded.epoch))
        changed = list(folded.changed)
        for at in range(0, len(changed), SIDE_BY_SIDE):
            if not held.hold.is_valid:
                return
            await asyncio.gather(*(self._write_unit(partition, folded, unit) for unit in changed[at : at + SIDE_BY_SIDE]))
        folded.noted, folded.at_ms = 0, now_ms()
        if not folded.changed and held.hold.is_valid:
            reached("snapshot.before_position")
            await self._log.append(topic, partition, encode(PositionRecord(folded.offset, folded.at_ms)), key=position_key(folded.epoch))
            await self._drop_replaced(partition, folded)

    async def _write_unit(self, partition: int, folded: FoldedJournal, unit: Unit) -> None:
        # In a thread: a quarter of a million open deliveries take half a second.
        value = await asyncio.to_thread(_encoded, folded.units[unit], unit)
        key = snapshot_key(unit, folded.epoch)
        reached("snapshot.before_append")
        try:
            await self._log.append(self._catalog.snapshot_topic, partition, value, key=key)
        except MessageTooLarge:
            # The one before it stays good, and the position stays with it.
            logger.warning("action=snapshot unit=%s bytes=%d outcome=too large", key.decode(), len(value))
        else:
            self._counters.count("snapshots_total")
            folded.changed.discard(unit)

    async def _drop_replaced(self, partition: int, folded: FoldedJournal) -> None:
        """Deletes what earlier epochs wrote, and snapshots of queues that are gone: a later epoch's
        keys are none of ours.
        """
        keys = list(folded.replaced)
        for at in range(0, len(keys), SIDE_BY_SIDE):
            some = keys[at : at + SIDE_BY_SIDE]
            await asyncio.gather(*(self._log.append(self._catalog.snapshot_topic, partition, None, key=key) for key in some))
            folded.replaced.difference_update(some)


def snapshot_key(unit: Unit, epoch: int) -> bytes:
    return f"{unit.incarnation}/{unit.partition}/{epoch}".encode()


def position_key(epoch: int) -> bytes:
    return POSITION + f"/{epoch}".encode()


def epoch_of(key: bytes) -> int:
    """The epoch in the key of a snapshot or a position; NO_EPOCH of what was written before there
    were any.
    """
    parts = key.split(b"/")
    named = len(parts) == 3 or (len(parts) == 2 and parts[0] == POSITION)
    return int(parts[-1]) if named and parts[-1].isdigit() else NO_EPOCH


def _encoded(history: UnitState, unit: Unit) -> bytes:
    return encode(history.snapshot(unit.incarnation, unit.partition, now_ms()))


def _apply_all(records: Sequence[Record], apply: Callable[[Record], None]) -> None:
    for record in records:
        apply(record)
