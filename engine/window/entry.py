"""Records as the window takes them; those that Kafka has just taken go into it at once.

Messages of this worker's own senders are kept here where they may be (`body_source.py`), and those
of them that are alike but for their offsets are one entry: a batch of a hundred sends is then some
ten arguments for the script, not seven hundred.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.log import Appended, Log
from engine.rules.fifo import dedup_digest, group_digest
from engine.rules.queue import Queue
from engine.window.body_source import OVERHEAD_BYTES, BodyCache, CachedBody
from runtime.counters import Counters
from runtime.signals import Signal
from schemas.filters import matches
from schemas.identity import address_of
from schemas.records import Message
from schemas.records.settings import MAX_DELAY_MS
from schemas.vocabulary import FAR_DELAY_MS
from state.errors import StateError
from state.keys import Unit
from state.packed import pack_body
from state.replies import LoadEntry
from state.store import Store

# Where it is in Kafka, the message, its record, and the hex MD5 of its body.
Row: TypeAlias = tuple[Appended, Message, bytes, str]


def entries_of(bodies: BodyCache, queue: Queue, partition: int, rows: Sequence[Row], size: int) -> list[LoadEntry]:
    """Entries for records of a partition, in the order of `rows`, `size` bytes in all.

    The bodies of some are in `bodies` from now on.
    """
    now = asyncio.get_running_loop().time()
    if not bodies.have_room(queue, size, len(rows), now):
        return [load_entry(queue, at.offset, at.timestamp_ms, message, value) for at, message, value, _ in rows]
    entries, kept = _without_bodies(queue, rows, now)
    if kept:
        bodies.keep(queue.units[partition], kept)
    return entries


def _without_bodies(queue: Queue, rows: Sequence[Row], now: float) -> tuple[list[LoadEntry], list[CachedBody]]:
    """Entries without bodies, but for messages with leases of their own, which the window must
    know; and what is kept of them.
    """
    entries: list[LoadEntry] = []
    counts: list[int] = []
    kept: list[CachedBody] = []
    plain = queue.tag_mask is not None and not queue.record.fifo
    # Where, when and for how long delayed a message is that goes with the last entry.
    fits: tuple[int, int, int] | None = None
    for at, message, value, digest in rows:
        own, grouped = message.lease_ms is not None, message.group is not None
        if fits == (at.offset, at.timestamp_ms, message.delay_ms) and not own and not grouped:
            counts[-1] += 1
        else:
            entries.append(load_entry(queue, at.offset, at.timestamp_ms, message, value if own else b""))
            counts.append(1)
        fits = (at.offset + 1, at.timestamp_ms, message.delay_ms) if plain and not own and not grouped else None
        tags = entries[-1].mask.count("1")
        if tags and not own and message.delay_ms < FAR_DELAY_MS:
            kept.append(CachedBody(at.offset, message, at.timestamp_ms, digest, len(value) + OVERHEAD_BYTES, tags, now))
    runs = zip(entries, counts, strict=True)
    return [entry if count == 1 else msgspec.structs.replace(entry, count=count) for entry, count in runs], kept


def load_entry(queue: Queue, offset: int, sent_at_ms: int, message: Message, value: bytes) -> LoadEntry:
    """A record as the window takes it: due time, and which tags want it (in the order of
    `queue.tags`).

    `value` may be b"": the window is to have it without its body.
    """
    record = queue.record
    mask = queue.tag_mask
    if mask is None:
        mask = "".join("1" if matches(tag.filter, message.attributes) else "0" for tag in queue.tags)
    due_ms = sent_at_ms + delay_of(queue, message)
    if not message.sender and due_ms - sent_at_ms >= FAR_DELAY_MS:
        # It is never deferred: the queue's delay may be another at the next load. Nothing that is
        # due so late has a body in the window, so nobody sees this time.
        sent_at_ms = due_ms
    packed = pack_body(sent_at_ms, due_ms, message.lease_ms, value)
    origin, group = message.origin, message.group
    move_key = "" if origin is None else move_key_of(origin.from_id, origin.from_tag)
    if record.fifo:
        return LoadEntry(offset, packed, mask, move_key, "", group_digest(group), dedup_digest(record, message))
    return LoadEntry(offset, packed, mask, move_key, "", group_digest(group) if group else b"")


def delay_of(queue: Queue, message: Message) -> int:
    """How long after it was sent a message is due, in ms. Without a sender it is Kafka-native: the
    queue's own delay holds. A native producer may have written any number: it counts as the nearest
    that a send may have.
    """
    return min(max(message.delay_ms, 0), MAX_DELAY_MS) if message.sender else queue.record.delay_ms


def far_due_ms(queue: Queue, sent_at_ms: int, message: Message) -> int:
    """When a message is due that is deferred until then, as include/far.lua has it; 0 = it is not
    far.
    """
    far = not queue.record.fifo and message.sender and message.delay_ms >= FAR_DELAY_MS
    return sent_at_ms + delay_of(queue, message) if far else 0


def far_dues(queue: Queue, sent_at_ms: int, message: Message) -> list[int]:
    """For each tag when a message is due, if it is far and the tag wants it; else 0."""
    due_ms = far_due_ms(queue, sent_at_ms, message)
    return [due_ms if due_ms and matches(tag.filter, message.attributes) else 0 for tag in queue.tags]


def move_key_of(from_id: str, from_tag: str) -> str:
    """24 hex digits that stand for one move: of this message, whichever secret made its id, from
    under this tag.
    """
    return hashlib.blake2b(f"{address_of(from_id)}/{from_tag}".encode(), digest_size=12).hexdigest()


class WriteThrough:
    """`used` tells of every write, `receivable` of what may now be received, `suspect` of a window
    that is ahead of its topic.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        catalog: Catalog,
        bodies: BodyCache,
        counters: Counters,
        receivable: Signal[[str, int, int]],
        suspect: Signal[[Queue]],
    ) -> None:
        self._log = log
        self._store = store
        self._catalog = catalog
        self._bodies = bodies
        self._counters = counters
        self.used: Signal[[Queue, int]] = Signal()
        self._receivable = receivable
        self.suspect = suspect

    async def write(self, queue: Queue, partition: int, entries: Sequence[LoadEntry]) -> dict[int, int]:
        """Puts records that Kafka has into the window. Where that fails the loader brings them
        later.

        FIFO: gives the offset of the earlier message for each offset of one that repeats it, as far
        as known. Raises LogUnavailable when the window belongs to another life of the topic, so
        that it takes none of them.
        """
        unit, store = queue.units[partition], self._store
        self.used(queue, partition)
        try:
            loaded = await store.units.scripts.soon(
                lambda: store.leases.load(unit, self._catalog.generation, queue.tag_ids, entries)
            )
        except StateError:
            self._counters.count("write_through_failed_total")
            self._forget(unit, entries)
            return {}
        self._receivable(queue.incarnation, partition, loaded.head_ms)
        last = entries[-1].offset + entries[-1].count
        if not loaded.taken:
            self._forget(unit, entries)
            if max(loaded.cursors, default=0) > last:
                await self.check_length(queue, partition, max(loaded.cursors))
        if queue.record.fifo and loaded.taken < len(queue.tag_ids) * (len(entries) - len(loaded.repeats)):
            return {**loaded.repeats, **await self._repeats(unit, entries)}
        return loaded.repeats

    def note_failed(self) -> None:
        """The plane could not put into the window what Kafka has."""
        self._counters.count("write_through_failed_total")

    def _forget(self, unit: Unit, entries: Sequence[LoadEntry]) -> None:
        """The window has not taken these: the loader will bring them, with their bodies."""
        for entry in entries:
            self._bodies.forget(unit, range(entry.offset, entry.offset + entry.count))

    async def _repeats(self, unit: Unit, entries: Sequence[LoadEntry]) -> dict[int, int]:
        """FIFO: what repeats what among records that were early, or came by the loader before;
        waits a second for those before them.
        """
        store, known = self._store, [entry for entry in entries if entry.dedup]
        for _ in range(50 if known else 0):
            with contextlib.suppress(StateError):
                seen, firsts = await store.units.scripts.soon(
                    lambda: store.upkeep.dedup_firsts(unit, [entry.dedup for entry in known])
                )
                if seen > entries[-1].offset:
                    rows = zip(known, firsts, strict=True)
                    return {entry.offset: first for entry, first in rows if first is not None and first < entry.offset}
            await asyncio.sleep(0.02)
        return {}

    async def check_length(self, queue: Queue, partition: int, cursor: int) -> None:
        """Looks at a window that is beyond what was just appended: the loader was faster, or it is
        the window of a topic that was deleted.
        """
        part = (queue.topic, partition)
        if (await self._log.end_offsets([part])).get(part, cursor) < cursor:
            self.suspect(queue)
            raise LogUnavailable(f"topic {queue.topic} was made anew behind queue {queue.name!r}; try again")
