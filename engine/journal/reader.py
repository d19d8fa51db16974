"""Reads the journal: a partition is folded from its snapshots and from what came after them.

Readers take the highest epoch that has a position, whole, and nothing else (`snapshots.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from engine.catalog.catalog import Catalog
from engine.journal.fold import UnitState
from engine.log import Log, Record
from runtime.clock import now_ms
from runtime.counters import Alarms, Counters
from schemas.records import JournalRecord, PositionRecord, SnapshotRecord
from schemas.wire import AnyRecord, UndecodableRecord, decode
from state.keys import Unit

logger = logging.getLogger(__name__)

# Snapshots of a journal partition are due when half as many messages changed as they hold, as Redis
# rewrites its file: a rebuild then reads half as much again at most, and who holds a million leases
# does not encode them all every round. Few, or old ones, are always due.
ALWAYS_BELOW = 10_000
MAX_AGE_MS = 600_000
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

    def note_written(self) -> None:
        """Snapshots of what changed are written now."""
        self.noted, self.at_ms = 0, now_ms()

    def is_due(self) -> bool:
        """Whether snapshots of what changed are worth their cost."""
        size = sum(self.units[unit].size() for unit in self.changed)
        return size <= ALWAYS_BELOW or 2 * self.noted >= size or now_ms() - self.at_ms >= MAX_AGE_MS


class JournalReader:
    """Any number of tasks may read."""

    def __init__(self, log: Log, catalog: Catalog, counters: Counters, alarms: Alarms) -> None:
        self._log = log
        self._catalog = catalog
        self._counters = counters
        self._alarms = alarms

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
        await self.fold(partition, folded)
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

    async def fold(self, partition: int, folded: FoldedJournal) -> None:
        """Folds what has come since. Raises LogUnavailable."""
        await self._check_gap(partition, folded.offset)
        await self.follow(partition, folded)

    async def follow(
        self, partition: int, folded: FoldedJournal, note: Callable[[Unit, JournalRecord], None] = _nothing
    ) -> None:
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

    async def scan(
        self, topic: str, partition: int, offset: int, apply: Callable[[Record, AnyRecord | None], None]
    ) -> int:
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
            logger.error(
                "action=skip topic=%s partition=%d offset=%d error=%s",
                record.topic,
                record.partition,
                record.offset,
                error,
            )
            return None


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


def _apply_all(records: Sequence[Record], apply: Callable[[Record], None]) -> None:
    for record in records:
        apply(record)
