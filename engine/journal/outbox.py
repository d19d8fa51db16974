"""What happened to messages goes from the outbox of a unit, in Redis, to the journal, in Kafka.

A script that changes a unit puts an entry into its outbox in the same step; the owner of the unit
drains it. Neighbours: `loading` drains what it owns, `recovery` what nobody owns.
"""

from __future__ import annotations

import asyncio
import zlib

from engine.catalog.catalog import Catalog
from engine.log import Log
from engine.runtime.counters import Counters
from engine.runtime.failpoints import reached
from schemas.records import JournalEntry, JournalRecord
from schemas.wire import encode
from state.background import Background
from state.keys import Unit
from state.replies import Entry
from state.store import Store

# How long a unit is owned unless its owner renews that.
LEASE_MS = 3_000
# A rebuild is not done again because Redis or the disk was slow for some seconds.
REBUILD_LEASE_MS = 10_000
DRAIN_ENTRIES = 500
# Entries of one journal record hold at most so many offsets together, so that a record stays small.
DRAIN_OFFSETS = 50_000


class Journal:
    """The journal topic: each unit has its entries in one partition, in the order of their seqs."""

    def __init__(self, log: Log, store: Store, catalog: Catalog, counters: Counters) -> None:
        self.store = store
        self._log = log
        self._catalog = catalog
        self._counters = counters
        self.background = Background()

    def partition_of(self, unit: Unit) -> int:
        """Which partition has the entries of a unit."""
        return zlib.crc32(journal_key(unit)) % self._catalog.journal_partitions

    async def append(self, queue: str, unit: Unit, entries: list[JournalEntry]) -> None:
        """Appends one record. Raises LogUnavailable: the outcome is unknown."""
        value = encode(JournalRecord(queue, unit.incarnation, unit.partition, entries))
        await self._log.append(self._catalog.journal_topic, self.partition_of(unit), value, key=journal_key(unit))
        self._counters.count("journal_entries_total", len(entries))


def journal_key(unit: Unit) -> bytes:
    """The key of a unit's records in the journal."""
    return f"{unit.incarnation}/{unit.partition}".encode()


class Outbox:
    """The outbox of a unit, for its owner of `epoch`. Tasks that drain at once take turns."""

    def __init__(self, journal: Journal, queue: str, unit: Unit, epoch: int) -> None:
        self._journal = journal
        self._queue = queue
        self._unit = unit
        self._epoch = epoch
        # When the oldest entry that the journal is known to lack was made (ms), 0 = it lacked none
        # at the last look.
        self.waiting_since_ms = 0
        self._done_seq = 0
        self._draining = asyncio.Lock()
        self._next: asyncio.Task[int] | None = None

    async def drained(self) -> None:
        """Returns when a drain has ended that began after the call. All who call before it begins
        share it, and it goes on without who does not wait any more. Raises what `drain` does.
        """
        if self._next is None or self._next.done():
            self._next = self._journal.background.start(self.drain(), "drain", awaited=True)
        await asyncio.shield(self._next)

    async def drain(self) -> int:
        """Moves what the outbox has now to the journal, in order; returns how many entries. Raises
        Fenced, LogUnavailable.

        What comes meanwhile is left for the next time unless there is much of it: under load there
        would be no end of small writes.
        """
        async with self._draining:
            if self._next is asyncio.current_task():
                self._next = None
            moved = 0
            while True:
                entries = await self._journal.store.drain(self._unit, self._epoch, done_seq=self._done_seq, max=DRAIN_ENTRIES)
                self._done_seq = 0
                self.waiting_since_ms = entries[0].at_ms if entries else 0
                if not entries or (moved > 0 and len(entries) < DRAIN_ENTRIES):
                    return moved
                reached("drain.before_append")
                for piece in _pieces(entries):
                    rows = [JournalEntry(e.seq, e.at_ms, e.kind, e.tag, e.offsets, e.times, e.reason) for e in piece]
                    await self._journal.append(self._queue, self._unit, rows)
                    reached("drain.appended")
                moved += len(entries)
                self._done_seq = entries[-1].seq
                reached("drain.before_done")


def _pieces(entries: list[Entry]) -> list[list[Entry]]:
    """Splits entries so that no journal record has much more than DRAIN_OFFSETS offsets."""
    pieces: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        if size > DRAIN_OFFSETS:
            pieces.append([])
            size = 0
        pieces[-1].append(entry)
        size += len(entry.offsets)
    return pieces
