"""A unit's loader: while a worker owns a unit it drains the outbox into the journal and loads from
Kafka what the window lacks.

One owner per unit at a time: the lease is in Redis, its epoch fences the owner before (a stopped
process that wakes up). Neighbours: `owner.py` decides which units this worker owns and when to run;
`rebuild.py` comes before, when state is lost. Must not know verbs.
"""

from __future__ import annotations

import asyncio
import zlib

import msgspec

from engine.core import CLOCK_MARGIN_MS, Core, now_ms
from engine.errors import LogUnavailable
from engine.loading.atomic_batches import gather
from engine.log import Chunk
from engine.rules.fifo import DEDUP_MS
from engine.rules.queue import Queue
from engine.runtime.failpoints import reached
from engine.window.retention import expire_unloaded
from engine.window.topic_retention import LEAST_DELAY_MS
from schemas.records import JournalEntry, JournalRecord
from schemas.wire import encode
from state.keys import Unit
from state.replies import MAX_OPEN, Entry, LoadEntry, Probed
from state.store import delay_of_body

LEASE_MS = 3_000
# A rebuild is not done again because Redis or the disk was slow for some seconds.
REBUILD_LEASE_MS = 10_000
# Small enough that decoding a chunk does not hold up the requests of this worker.
CHUNK_RECORDS = 1_000
CHUNK_BYTES = 2_000_000
DRAIN_ENTRIES = 500
# Entries of one journal record hold at most so many offsets together, so that a record stays small.
DRAIN_OFFSETS = 50_000


def journal_partition(unit: Unit, partitions: int) -> int:
    """Which partition of the journal has the entries of a unit."""
    return zlib.crc32(f"{unit.incarnation}/{unit.partition}".encode()) % partitions


def journal_key(unit: Unit) -> bytes:
    return f"{unit.incarnation}/{unit.partition}".encode()


class Loader:
    """The loader of one owned unit. One task at a time may load, one may drain."""

    def __init__(self, core: Core, queue: Queue, partition: int, epoch: int) -> None:
        self._core = core
        self.queue = queue
        self.partition = partition
        self.unit = queue.units[partition]
        self.epoch = epoch
        self.end = 0
        self.stalled = False
        # The offset that loading does not get beyond, and since when (loop time).
        self.held: tuple[int, float] | None = None
        # Not before (loop time): what holds it is read again and again.
        self.rest_until = 0.0
        self.drained_at = 0.0
        # When the oldest entry that the journal is known to lack was made (ms), 0 = it lacked none
        # at the last look.
        self.waiting_since_ms = 0
        self._done_seq = 0
        self._room = CHUNK_BYTES
        self._draining = asyncio.Lock()
        self._loading = asyncio.Lock()
        self.cursors: dict[int, int] = {}
        self.seen = -1
        self.full: set[int] = set()

    async def drain(self) -> int:
        """Moves what the outbox has now to the journal, in order; returns how many entries. Raises
        Fenced, LogUnavailable.

        What comes meanwhile is left for the next time unless there is much of it: under load there
        would be no end of small writes.
        """
        async with self._draining:
            moved = 0
            while True:
                entries = await self._core.store.drain(self.unit, self.epoch, done_seq=self._done_seq, max=DRAIN_ENTRIES)
                self._done_seq = 0
                self.waiting_since_ms = entries[0].at_ms if entries else 0
                if not entries or (moved > 0 and len(entries) < DRAIN_ENTRIES):
                    return moved
                reached("drain.before_append")
                for piece in _pieces(entries):
                    await self._append(piece)
                    reached("drain.appended")
                moved += len(entries)
                self._done_seq = entries[-1].seq
                reached("drain.before_done")

    async def _append(self, entries: list[Entry]) -> None:
        record = JournalRecord(
            self.queue.name,
            self.unit.incarnation,
            self.unit.partition,
            [JournalEntry(e.seq, e.at_ms, e.kind, e.tag, e.offsets, e.times, e.reason) for e in entries],
        )
        partition = journal_partition(self.unit, self._core.control.journal_partitions)
        await self._core.log.append(self._core.control.journal_topic, partition, encode(record), key=journal_key(self.unit))
        self._core.count("journal_entries_total", len(entries))

    async def look(self) -> None:
        """Learns the cursors again (they move by write-through too)."""
        tags, generation = self.queue.tag_ids, self._core.control.generation
        looks = await asyncio.gather(*(self._core.store.probe(self.unit, generation, tag) for tag in tags))
        self.cursors = {tag: look.cursor for tag, look in zip(tags, looks, strict=True)}
        self.seen = looks[0].seen if looks else -1
        self.stalled = False
        self.full = {tag for tag, look in zip(tags, looks, strict=True) if not self._has_room(look)}
        self._room = max(self._core.settings.window_bytes - looks[0].bytes, CHUNK_BYTES // 16) if looks else CHUNK_BYTES
        if any(look.hungry for look in looks):
            self._room = CHUNK_BYTES  # it takes more than bodies for

    def _has_room(self, look: Probed) -> bool:
        """Whether reading on is worth it: a full window would be read for, and refuse, the same
        records again and again.
        """
        s = self._core.settings
        kept = look.open - look.lent
        if kept >= MAX_OPEN:
            return False
        if look.hungry:
            return True
        low = look.bodies * 4 <= s.window_messages * 3 and look.bytes * 4 <= s.window_bytes * 3
        return low or kept < s.window_messages // 16

    async def load(self) -> bool:
        """Reads one chunk for the tags that are furthest behind and have room; True when there may
        be more to do at once.

        Raises StateLost, Fenced, LogUnavailable.
        """
        async with self._loading:
            queue = self.queue
            if set(self.cursors) != set(queue.tag_ids):
                await self.look()
            open_tags = [tag for tag in queue.tag_ids if tag not in self.full]
            start = min((self.cursors[tag] for tag in open_tags), default=self.end)
            prime = queue.record.fifo and self.seen < 0
            if queue.record.fifo and open_tags:
                start = await self._before(start) if prime else min(start, self.seen)
            if start >= self.end and not prime:
                self.held = None
                return False
            chunk = await self._fetch(start)
            if chunk.truncated:
                await expire_unloaded(self._core, queue, self.partition, chunk.records[0].offset if chunk.records else chunk.next_offset)
            self.end = max(self.end, chunk.next_offset)
            ordered, early, scan_next = await gather(self._core, queue, chunk, self._fetch)
            await self._kept(queue, [*ordered, *early])
            tags = queue.tag_ids if queue.record.fifo else open_tags
            taken = await self._load(tags, self._masked(tags, ordered), (start, max(start, scan_next)), prime)
            if early:
                generation, entries = self._core.control.generation, self._masked(tags, early)
                taken += (await self._core.store.load(self.unit, generation, tags, entries, epoch=self.epoch)).taken
            if taken:
                self._core.woken(queue.incarnation, self.partition, 0)
            # A torn or unfinished batch holds the cursors: look again later, not at once.
            self._got_to(start, scan_next)
            return not self.stalled

    async def _kept(self, queue: Queue, entries: list[LoadEntry]) -> None:
        """A native producer's delay may be longer than the topic keeps messages for: nobody has
        asked before it was sent.
        """
        longest = max((delay_of_body(entry.packed) for entry in entries if entry.packed), default=0)
        if longest > LEAST_DELAY_MS:
            await self._core.keep(queue, longest)

    def _got_to(self, start: int, scan_next: int) -> None:
        self.stalled = scan_next <= start
        if not self.stalled:
            self.held = None
        elif self.held is None or self.held[0] != start:
            self.held = (start, asyncio.get_running_loop().time())

    async def _fetch(self, start: int) -> Chunk:
        return await self._core.log.fetch(self.queue.topic, self.partition, start, CHUNK_RECORDS, min(CHUNK_BYTES, self._room))

    def behind(self, end: int) -> bool:
        """Whether the window of some tag has not taken all records before `end` (FIFO: or not put
        them in order).
        """
        return min(self.cursors.values(), default=0) < end or (self.queue.record.fifo and self.seen < end)

    async def _before(self, start: int) -> int:
        """FIFO: the offset from which it can be known whether messages from `start` on repeat
        others.
        """
        part = (self.queue.topic, self.partition)
        records = (await self._fetch(start)).records if start < self.end else []
        at = records[0].timestamp_ms if records else now_ms()
        found = (await self._core.log.offsets_at([part], at - DEDUP_MS - CLOCK_MARGIN_MS)).get(part)
        if found is None:
            raise LogUnavailable(f"{self.queue.topic} can't be read")
        return min(start, found)

    def _masked(self, tags: list[int], entries: list[LoadEntry]) -> list[LoadEntry]:
        """The entries with masks for `tags`, a part of the queue's."""
        if tags == self.queue.tag_ids:
            return entries
        places = [self.queue.tag_ids.index(tag) for tag in tags]
        return [msgspec.structs.replace(e, mask="".join(e.mask[place] for place in places)) for e in entries]

    async def _load(self, tags: list[int], entries: list[LoadEntry], scan: tuple[int, int], prime: bool) -> int:
        generation = self._core.control.generation
        loaded = await self._core.store.load(self.unit, generation, tags, entries, epoch=self.epoch, scan=scan, prime=prime)
        self.seen = loaded.seen
        for tag, cursor, full in zip(tags, loaded.cursors, loaded.full, strict=True):
            self.cursors[tag] = cursor
            if full:
                self.full.add(tag)
        return loaded.taken


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
