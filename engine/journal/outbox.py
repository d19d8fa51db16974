"""What happened to messages goes from the outbox of a unit, in Redis, to the journal, in Kafka.

A script that changes a unit puts an entry into its outbox in the same step; the owner of the unit
drains it, or asks a `Drainer` to do so.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable
from typing import Final, Protocol

from msgspec import Struct

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.log import Log
from runtime.background import Background
from runtime.clock import elapsed_s
from runtime.counters import Counters
from runtime.failpoints import is_armed, reached
from schemas.records import JournalEntry, JournalRecord
from schemas.wire import encode
from state.errors import Fenced
from state.keys import Unit
from state.replies import Entry
from state.upkeep import UpkeepScripts


class DrainRequest(Struct, frozen=True):
    """A drain for the owner of `epoch`. `topic`, `place` and `key` say where the journal has the
    entries of the unit. The drain first confirms the entries up to `done_seq` (0 = none). Each call
    of the script shows `most` entries. It ends after `rounds` appends (0 = before the first), or
    when entries were moved, by it or by the `moved` before, and fewer than `most` are left.
    """

    queue: str
    unit: Unit
    epoch: int
    topic: str
    place: int
    key: bytes
    done_seq: int
    most: int
    rounds: int
    moved: int


class DrainResult(Struct, frozen=True):
    """How a drain has ended: the journal got `moved` entries by it. The outbox may still hold those
    up to `done_seq` (0 = none). The oldest entry of the last look was made at `since_ms` (0 = there
    was none). `has_more`: the owner is to go on, by itself if `is_passed`. `error`: why the journal
    may lack what was appended last.
    """

    moved: int
    has_more: bool
    done_seq: int = 0
    since_ms: int = 0
    is_fenced: bool = False
    is_passed: bool = False
    error: str = ""


class Drainer(Protocol):
    """Drains outboxes for their owners."""

    def drain(self, request: DrainRequest) -> Awaitable[DrainResult] | None:
        """Begins a drain; returns None when the owner has to do it by itself."""


# How long a unit is owned unless its owner renews that.
LEASE_MS = 3_000
# A rebuild is not done again because Redis or the disk was slow for some seconds.
REBUILD_LEASE_MS = 10_000
DRAIN_ENTRIES = 500
# Entries of one journal record hold at most so many offsets together, so that a record stays small.
DRAIN_OFFSETS = 50_000
# A drainer does so many appends at a call, so that what it has done is counted meanwhile.
ROUNDS: Final = 100
# After a failed append of the drainer, its owner drains an outbox by itself for so long.
PAUSE_S: Final = 30.0


class Journal:
    """The journal topic: each unit has its entries in one partition, in the order of their seqs."""

    def __init__(self, log: Log, upkeep: UpkeepScripts, catalog: Catalog, counters: Counters, drainer: Drainer) -> None:
        self.upkeep = upkeep
        self.drainer = drainer
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
        self.count(len(entries))

    def count(self, entries: int) -> None:
        """Counts entries that the journal has got."""
        self._counters.count("journal_entries_total", entries)

    def request(self, queue: str, unit: Unit, epoch: int, done_seq: int, rounds: int, moved: int) -> DrainRequest:
        """Returns what a drainer needs to know for a drain of a unit."""
        topic, place = self._catalog.journal_topic, self.partition_of(unit)
        return DrainRequest(queue, unit, epoch, topic, place, journal_key(unit), done_seq, DRAIN_ENTRIES, rounds, moved)


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
        self._paused_until = 0.0
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
            moved, may_ask = 0, elapsed_s() >= self._paused_until
            while True:
                result = await self._drain_by_drainer(moved) if may_ask else None
                may_ask = result is not None and not result.is_passed
                result = result or await self._drain_once(moved)
                moved += result.moved
                if not result.has_more:
                    return moved

    async def _drain_once(self, moved: int) -> DrainResult:
        """Moves what one call shows; `moved` entries went before. Raises as `drain`."""
        entries = await self._journal.upkeep.drain(self._unit, self._epoch, done_seq=self._done_seq, max=DRAIN_ENTRIES)
        self._done_seq = 0
        self.waiting_since_ms = entries[0].at_ms if entries else 0
        if not entries or (moved > 0 and len(entries) < DRAIN_ENTRIES):
            return DrainResult(0, has_more=False)
        reached("drain.before_append")
        for piece in _pieces(entries):
            rows = [JournalEntry(e.seq, e.at_ms, e.kind, e.tag, e.offsets, e.times, e.reason) for e in piece]
            await self._journal.append(self._queue, self._unit, rows)
            reached("drain.appended")
        self._done_seq = entries[-1].seq
        reached("drain.before_done")
        return DrainResult(len(entries), has_more=True)

    async def _drain_by_drainer(self, moved: int) -> DrainResult | None:
        """Has the drainer move what there is; None = it can't now. Raises as `drain`."""
        if not is_armed("drain."):
            return await self._ask(moved, ROUNDS)
        result = await self._ask(moved, 0)
        if result is not None and result.has_more and not result.is_passed:
            reached("drain.before_append")
            result = await self._ask(moved, 1)
            reached("drain.appended")
            reached("drain.before_done")
        return result

    async def _ask(self, moved: int, rounds: int) -> DrainResult | None:
        journal = self._journal
        begun = journal.drainer.drain(
            journal.request(self._queue, self._unit, self._epoch, self._done_seq, rounds, moved)
        )
        if begun is None:
            return None
        # Until the answer tells, the oldest entry is taken to be as old as the question.
        known_ms = self.waiting_since_ms
        self.waiting_since_ms = known_ms or journal.upkeep.units.now_ms()
        result = await begun
        self._done_seq, self.waiting_since_ms = result.done_seq, known_ms if result.is_passed else result.since_ms
        if result.moved:
            journal.count(result.moved)
        if result.is_fenced:
            raise Fenced("drain")
        if result.error:
            self._paused_until = elapsed_s() + PAUSE_S
            raise LogUnavailable(result.error)
        return result


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
