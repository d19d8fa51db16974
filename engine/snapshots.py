"""Snapshots of the journal, so that a rebuild reads its last seconds and not its days.

Partition p of the snapshot topic belongs to partition p of the journal. One worker at a time (a lease in Redis) folds a journal
partition in memory and writes a snapshot of each unit that changed, then the position up to which all snapshots hold.
A crash in between repeats work: entries that a snapshot has already are known by their seq.
Neighbours: `history.py` folds; `rebuild.py` asks `read`. Must not know verbs.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence

from engine.core import Core, now_ms
from engine.errors import EngineError, MessageTooLarge
from engine.history import UnitHistory
from engine.log import Record
from schemas.records import JournalRecord, PositionRecord, SnapshotRecord
from schemas.wire import AnyRecord, UndecodableRecord, decode, encode
from state.ending import end
from state.errors import StateError
from state.keys import Unit
from state.lock import keep

logger = logging.getLogger(__name__)

ROUND_S = 10.0
# Snapshots of a journal partition are due when half as many messages changed as they hold, as Redis rewrites its file: a rebuild then reads
# half as much again at most, and who holds a million leases does not encode them all every round. Few, or old ones, are always due.
FEW = 10_000
OLD_MS = 600_000
HOLD_MS = 30_000
POSITION = b"position"


class Folded:
    """A journal partition folded up to `offset`. Since the last snapshots, of `at_ms`: units `changed`, by entries of `noted` messages."""

    def __init__(self) -> None:
        self.units: dict[Unit, UnitHistory] = {}
        self.changed: set[Unit] = set()
        self.offset = 0
        self.noted = 0
        self.at_ms = 0

    def due(self) -> bool:
        """Whether snapshots of what changed are worth their cost."""
        size = sum(self.units[unit].size() for unit in self.changed)
        return size <= FEW or 2 * self.noted >= size or now_ms() - self.at_ms >= OLD_MS


class Snapshots:
    """Folds journal partitions. `run_once` may be called by tests; the loop calls it every 10 s."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._token = secrets.token_hex(8)
        self._folded: dict[int, Folded] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._loop())

    async def stop(self) -> None:
        await end(self._task)
        self._task = None

    async def _loop(self) -> None:
        while True:
            await asyncio.sleep(ROUND_S)
            try:
                await self.run_once()
            except (EngineError, StateError) as error:
                logger.debug("action=snapshot error=%s", error)
            except Exception:
                logger.exception("action=snapshot")

    async def run_once(self) -> None:
        """One round over the partitions that this worker holds. Raises LogUnavailable, StateUnavailable."""
        core = self._core
        for partition in range(core.control.journal_partitions):
            name = f"snapshot:{partition}"
            if not await keep(core.connection, core.settings.topic_prefix, name, self._token, hold_ms=HOLD_MS):
                self._folded.pop(partition, None)
                continue
            folded = self._folded.get(partition)
            if folded is None:
                folded = self._folded[partition] = await self.read(partition)
            else:
                await self._fold(partition, folded)
            if folded.due():
                await self._write(partition, folded)

    async def read(self, partition: int) -> Folded:
        """A journal partition folded to its end: snapshots first, then what came after them. Raises LogUnavailable."""
        newest: dict[bytes, Record] = {}

        def keep_newest(record: Record) -> None:
            newest[record.key or b""] = record

        # Decoded once they are all seen: until Kafka compacts the topic, it has every snapshot of the last hour.
        await self._fetch_all(self._core.control.snapshot_topic, partition, 0, keep_newest)
        folded = await asyncio.to_thread(self._of, newest)
        await self._fold(partition, folded)
        return folded

    def _of(self, newest: dict[bytes, Record]) -> Folded:
        folded = Folded()
        unreadable = False
        for record in newest.values():
            value = self._decode(record)
            if isinstance(value, SnapshotRecord):
                folded.units[Unit(value.incarnation, value.partition)] = UnitHistory.of(value)
            elif isinstance(value, PositionRecord):
                folded.offset, folded.at_ms = value.journal_offset, value.at_ms
            unreadable = unreadable or (value is None and bool(record.value))
        if unreadable:
            # The position counts on every snapshot: without one of them, the journal is read from its beginning.
            folded.offset = 0
        return folded

    async def _fold(self, partition: int, folded: Folded) -> None:
        def apply(record: Record, value: AnyRecord | None) -> None:
            if isinstance(value, JournalRecord):
                self._core.count("journal_entries_read_total", len(value.entries))
                unit = Unit(value.incarnation, value.partition)
                if folded.units.setdefault(unit, UnitHistory()).apply(value):
                    folded.changed.add(unit)
                    folded.noted += sum(len(entry.offsets) for entry in value.entries)

        await self._check_gap(partition, folded.offset)
        folded.offset = await self.scan(self._core.control.journal_topic, partition, folded.offset, apply)

    async def _check_gap(self, partition: int, offset: int) -> None:
        """Tells when the journal no longer has what comes after the snapshots: acks in the gap would be forgotten by a rebuild."""
        topic = self._core.control.journal_topic
        start = (await self._core.log.start_offsets([(topic, partition)])).get((topic, partition), 0)
        if offset < start:
            self._core.count("journal_gaps_total")
            self._core.alarms["journal_gap", f"{topic}/{partition}"] = start - offset
            logger.error(
                "action=fold topic=%s partition=%d from=%d start=%d reason=records after the snapshots were deleted",
                topic, partition, offset, start,
            )  # fmt: skip

    async def scan(self, topic: str, partition: int, offset: int, apply: Callable[[Record, AnyRecord | None], None]) -> int:
        """Applies every record up to the end as it is now; returns where to go on. Unreadable ones are counted and passed."""

        def decoded(record: Record) -> None:
            if (value := self._decode(record)) is not None or not record.value:
                apply(record, value)

        return await self._fetch_all(topic, partition, offset, decoded)

    async def _fetch_all(self, topic: str, partition: int, offset: int, apply: Callable[[Record], None]) -> int:
        log, part = self._core.log, (topic, partition)
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
            self._core.count("undecodable_records_total")
            logger.error("action=park topic=%s partition=%d offset=%d error=%s", record.topic, record.partition, record.offset, error)
            return None

    async def _write(self, partition: int, folded: Folded) -> None:
        core, topic = self._core, self._core.control.snapshot_topic
        if not folded.changed:
            return
        await core.control.sync()
        whole = True
        for unit in list(folded.units):
            key = f"{unit.incarnation}/{unit.partition}".encode()
            if unit.incarnation not in core.control.by_incarnation:
                await core.log.append(topic, partition, None, key=key)
                del folded.units[unit]
            elif unit in folded.changed:
                # In a thread: a quarter of a million open deliveries take half a second.
                value = await asyncio.to_thread(_encoded, folded.units[unit], unit)
                try:
                    await core.log.append(topic, partition, value, key=key)
                    core.count("snapshots_total")
                except MessageTooLarge:
                    # The one before it stays good, and the position stays with it.
                    logger.warning("action=snapshot unit=%s bytes=%d outcome=too large", key.decode(), len(value))
                    whole = False
        folded.changed.clear()
        folded.noted, folded.at_ms = 0, now_ms()
        if whole:
            await core.log.append(topic, partition, encode(PositionRecord(folded.offset, folded.at_ms)), key=POSITION)


def _encoded(history: UnitHistory, unit: Unit) -> bytes:
    return encode(history.snapshot(unit.incarnation, unit.partition, now_ms()))


def _apply_all(records: Sequence[Record], apply: Callable[[Record], None]) -> None:
    for record in records:
        apply(record)
