"""A unit's loader: while a worker owns a unit it drains the outbox into the journal and loads from
Kafka what the window lacks.

One owner per unit at a time: the lease is in Redis, its epoch fences the owner before (a stopped
process that wakes up).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.journal.outbox import Outbox
from engine.log import Chunk, Log
from engine.rules.queue import Queue
from engine.window.batches.atomic_batches import CHUNK_BYTES, CHUNK_RECORDS, assemble
from engine.window.batches.message_log import MessageLog, Unfinished
from engine.window.batches.skips import Skips
from engine.window.retention import Retention
from engine.window.topic_retention import LEAST_DELAY_MS, TopicRetention
from runtime.counters import Counters
from runtime.signals import Signal
from schemas.vocabulary import DEDUP_WINDOW_MS, EARLY_OFFSETS, LOG_TIME_MARGIN_MS
from state.keys import Unit
from state.packed import delay_of_body
from state.replies import MAX_OPEN, LoadEntry, Prime, Probed, Window
from state.store import Store

logger = logging.getLogger(__name__)

# A loader that a batch holds up reads on to what decides, up to 30 s of log: it rests so many times
# as long as that took, REST_S at most.
REST, REST_S = 9.0, 1.0
# A transaction of Kafka that is open for longer is told: what is behind it waits.
HUNG_S = 30.0
# So much of what is beyond it is looked through at a time.
BEYOND_RECORDS = 2_000


class Waiting(Protocol):
    """Who waits for messages here."""

    def waits(self, queue: Queue) -> bool:
        """Whether somebody waits for messages of a queue."""


class Rebuilding(Protocol):
    """What this worker is rebuilding."""

    def holds(self, unit: Unit) -> bool:
        """Whether a unit is being rebuilt here: its lease must not get shorter, nor end as idle."""

    def recover_soon(self, queue: Queue) -> None:
        """Rebuilds what a queue has lost, beside the caller."""


@dataclass(frozen=True)
class Loading:
    """What all loaders of a worker work with."""

    prefix: str
    bounds: Window
    log: Log
    store: Store
    catalog: Catalog
    retention: Retention
    topic_retention: TopicRetention
    counters: Counters
    receivable: Signal[[str, int, int]]
    skips: Skips
    unfinished: Unfinished = field(default_factory=Unfinished)


class Loader:
    """The loader of one owned unit, and its outbox. One task at a time may load."""

    def __init__(self, parts: Loading, queue: Queue, partition: int, epoch: int, outbox: Outbox) -> None:
        self._parts = parts
        self._messages = MessageLog(parts.log)
        self.outbox = outbox
        self.queue = queue
        self.partition = partition
        self.unit = queue.units[partition]
        self.epoch = epoch
        self.end = 0
        self.stalled = False
        # The offset that loading does not get beyond, and since when (loop time).
        self.stuck_at: tuple[int, float] | None = None
        # Of an open transaction of Kafka that holds the cursors: its first record, and since when;
        # which of them was logged; how far it was looked beyond it.
        self.held_at: tuple[int, float] | None = None
        self._told = -1
        self._beyond = 0
        # Not before (loop time): what holds it is read again and again.
        self.retry_after = 0.0
        # Of deferred messages (`deferrals.py`), in loop time: the next turn, and since when
        # pointers wait.
        self.turn_at = 0.0
        self.unfiled_since: float | None = None
        self.repaired_at: object = None
        self.turning = asyncio.Lock()
        self._room = CHUNK_BYTES
        self._loading = asyncio.Lock()
        self.cursors: dict[int, int] = {}
        self.ordered_until = -1
        self.full: set[int] = set()

    def note_end(self, queue: Queue, end: int) -> None:
        """The queue as it is now, and an end of its log that somebody saw."""
        self.queue = queue
        self.end = max(self.end, end)

    def forget_cursors(self) -> None:
        """They may have gone back: what was known of them holds no more."""
        self.cursors = {}
        self.ordered_until = -1

    def rest(self, took_s: float) -> None:
        """A batch holds this loader up, and to find that took so long: it is not read again at
        once.
        """
        self.retry_after = asyncio.get_running_loop().time() + min(REST * took_s, REST_S)

    async def refresh_cursors(self) -> None:
        """Learns the cursors again (they move by write-through too)."""
        tags, generation = self.queue.tag_ids, self._parts.catalog.generation
        looks = await asyncio.gather(*(self._parts.store.leases.probe(self.unit, generation, tag) for tag in tags))
        self.cursors = {tag: look.cursor for tag, look in zip(tags, looks, strict=True)}
        self.ordered_until = looks[0].seen if looks else -1
        self.stalled = False
        self.full = {tag for tag, look in zip(tags, looks, strict=True) if not self._has_room(look)}
        self._room = max(self._parts.bounds.bytes - looks[0].bytes, CHUNK_BYTES // 16) if looks else CHUNK_BYTES
        if any(look.hungry for look in looks):
            self._room = CHUNK_BYTES  # it takes more than bodies for

    def _has_room(self, look: Probed) -> bool:
        """Whether reading on is worth it: a full window would be read for, and refuse, the same
        records again and again.
        """
        bounds = self._parts.bounds
        kept = look.open - look.in_flight
        if kept >= MAX_OPEN:
            return False
        if look.hungry:
            return True
        low = look.bodies * 4 <= bounds.messages * 3 and look.bytes * 4 <= bounds.bytes * 3
        return low or kept < bounds.messages // 16

    async def load(self) -> bool:
        """Reads one chunk for the tags that are furthest behind and have room; True when there may
        be more to do at once.

        Raises StateLost, Fenced, LogUnavailable.
        """
        async with self._loading:
            queue = self.queue
            if set(self.cursors) != set(queue.tag_ids):
                await self.meet()
                await self.refresh_cursors()
            open_tags = [tag for tag in queue.tag_ids if tag not in self.full]
            start = min((self.cursors[tag] for tag in open_tags), default=self.end)
            prime = None
            if queue.record.fifo and open_tags:
                if self.ordered_until < 0:
                    start, prime = await self._before(start)
                else:
                    start = min(start, self.ordered_until)
            if start >= self.end and prime is None:
                self.stuck_at = self.held_at = None
                return False
            chunk = await self._fetch(start)
            if chunk.truncated:
                await self._parts.retention.expire_unloaded(
                    queue, self.partition, chunk.records[0].offset if chunk.records else chunk.next_offset
                )
            self.end = max(self.end, chunk.next_offset)
            found = await assemble(self._parts.unfinished, queue, chunk, self._fetch)
            ordered, early, scan_next = found.ordered, found.early, found.next_offset
            await self._keep_delays(queue, [*ordered, *early])
            tags = queue.tag_ids if queue.record.fifo else open_tags
            taken = await self._load(tags, self._masked(tags, ordered), (start, max(start, scan_next)), prime)
            passed = min((self.cursors[tag] for tag in tags), default=0)
            self._parts.skips.settled(queue, self.partition, [skip for skip in found.skipped if skip.offset < passed])
            taken += await self._load_early(tags, early) + await self._load_beyond(tags, chunk, found.decided)
            if taken:
                self._parts.receivable(queue.incarnation, self.partition, 0)
            # An unfinished batch, or an open transaction, holds the cursors: look again later.
            self._got_to(start, scan_next, chunk.open_from)
            if self.stalled and taken and chunk.open_from is not None:
                self._parts.counters.count("loaded_chunks_total")
            return not self.stalled

    async def _load_early(self, tags: list[int], early: list[LoadEntry]) -> int:
        """Loads single records behind what holds the cursors up; returns how many were taken."""
        if not early:
            return 0
        generation, entries = self._parts.catalog.generation, self._masked(tags, early)
        return (await self._parts.store.leases.load(self.unit, generation, tags, entries, epoch=self.epoch)).taken

    async def _load_beyond(self, tags: list[int], chunk: Chunk, decided: int) -> int:
        """Loads what lies further beyond an open transaction, some of it at a look, and from the
        first of it on again when there is no more.
        """
        open_from = chunk.open_from
        if open_from is None or chunk.at_end or self.queue.record.fifo:
            return 0

        async def fetch(start: int) -> Chunk:
            return await self._messages.fetch_own(
                self.queue.topic, self.partition, start, CHUNK_RECORDS, CHUNK_BYTES, open_from
            )

        at, taken, at_end = max(self._beyond, decided), 0, False
        until = at + BEYOND_RECORDS
        while at < until and not at_end:
            more = await fetch(at)
            found = await assemble(self._parts.unfinished, self.queue, more, fetch)
            taken += await self._load_early(tags, [*found.ordered, *found.early])
            # A batch at the end of what was read is read again, with its rest.
            at = found.decided if found.decided > at else more.next_offset
            at_end = more.at_end or more.next_offset - open_from > EARLY_OFFSETS
        self._beyond = 0 if at_end else at
        return taken

    def behind_transaction(self) -> int:
        """Returns how many records a transaction of Kafka holds up that is open since HUNG_S."""
        held = self.held_at
        if held is None or asyncio.get_running_loop().time() - held[1] < HUNG_S:
            return 0
        if self._told != held[0]:
            self._told = held[0]
            logger.error(
                "action=wait queue=%s partition=%d offset=%d records=%d reason=a transaction of Kafka is open there "
                "for more than %g s",
                self.queue.name, self.partition, held[0], self.end - held[0], HUNG_S,
            )  # fmt: skip
        return max(1, self.end - held[0])

    @property
    def unfinished(self) -> Unfinished:
        """The batches that this worker knows as not whole."""
        return self._parts.unfinished

    async def meet(self) -> None:
        """FIFO: whoever found the order before they heard of a new tag has kept no repeat from it.
        So it is found again, with the tag. To be called before the cursors are refreshed. Raises
        StateLost.
        """
        queue, known, partition = self.queue, self.cursors, self.partition
        new = [(tag.id, tag.start_offsets[partition]) for tag in queue.tags if known and tag.id not in known]
        if new and queue.record.fifo:
            await self._parts.store.upkeep.open(self.unit, self._parts.catalog.generation, new, fifo=True, again=True)

    async def _keep_delays(self, queue: Queue, entries: list[LoadEntry]) -> None:
        """A native producer's delay may be longer than the topic keeps messages for: nobody has
        asked before it was sent.
        """
        longest = max((delay_of_body(entry.packed) for entry in entries if entry.packed), default=0)
        if longest > LEAST_DELAY_MS:
            await self._parts.topic_retention.keep(queue, longest)

    def _got_to(self, start: int, scan_next: int, open_from: int | None) -> None:
        self.stalled = scan_next <= start
        if open_from is None:
            self.held_at = None
        elif self.held_at is None or self.held_at[0] != open_from:
            self.held_at = (open_from, asyncio.get_running_loop().time())
        if not self.stalled or open_from is not None:
            self.stuck_at = None
        elif self.stuck_at is None or self.stuck_at[0] != start:
            self.stuck_at = (start, asyncio.get_running_loop().time())

    async def _fetch(self, start: int) -> Chunk:
        return await self._messages.fetch(
            self.queue.topic, self.partition, start, CHUNK_RECORDS, min(CHUNK_BYTES, self._room)
        )

    def lags(self, end: int) -> bool:
        """Whether the window of some tag has not taken all records before `end` (FIFO: or not put
        them in order).
        """
        return min(self.cursors.values(), default=0) < end or (self.queue.record.fifo and self.ordered_until < end)

    async def _before(self, start: int) -> tuple[int, Prime]:
        """FIFO: the offset from which it can be known whether messages from `start` on repeat
        others: by two windows, for what seems to be the first of an id may be a repeat itself. Of
        an id that had no pause meanwhile that stays in doubt, unless nothing is before.
        """
        part, log = (self.queue.topic, self.partition), self._parts.log
        records = (await self._fetch(start)).records if start < self.end else []
        at = records[0].timestamp_ms if records else log.clock.earliest_ms()
        begin_ms = at - 2 * DEDUP_WINDOW_MS - LOG_TIME_MARGIN_MS
        ends = (log.offsets_at([part], begin_ms), log.start_offsets([part]), log.end_offsets([part]))
        found, oldest, end = (each.get(part) for each in await asyncio.gather(*ends))
        if found is None or oldest is None or end is None:
            raise LogUnavailable(f"{self.queue.topic} can't be read")
        begin = min(start, found)
        return begin, Prime(begin_ms + DEDUP_WINDOW_MS if begin > oldest else 0, max(end, self.end))

    def _masked(self, tags: list[int], entries: list[LoadEntry]) -> list[LoadEntry]:
        """The entries with masks for `tags`, a part of the queue's."""
        if tags == self.queue.tag_ids:
            return entries
        places = [self.queue.tag_ids.index(tag) for tag in tags]
        return [msgspec.structs.replace(e, mask="".join(e.mask[place] for place in places)) for e in entries]

    async def _load(self, tags: list[int], entries: list[LoadEntry], scan: tuple[int, int], prime: Prime | None) -> int:
        generation = self._parts.catalog.generation
        loaded = await self._parts.store.leases.load(
            self.unit, generation, tags, entries, epoch=self.epoch, scan=scan, prime=prime
        )
        self.ordered_until = loaded.seen
        for tag, cursor, full in zip(tags, loaded.cursors, loaded.full, strict=True):
            self.cursors[tag] = cursor
            if full:
                self.full.add(tag)
        return loaded.taken
