"""Messages that a receive has lent: with their bodies to the caller, or back when the caller has gone.

Neighbours: `receiver.py` lends. Must not know who waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import msgspec

from engine.bodies import Kept
from engine.core import Core, delay_of
from engine.errors import EngineError
from engine.fifo import sequence_number
from engine.log import Record
from engine.queue import Queue
from engine.retention import expire, gone
from engine.verbs import Delivery
from schemas.identity import Handle, handles_of, ids_of
from schemas.records import TagRecord
from schemas.vocabulary import EventKind
from schemas.wire import decode_message
from state.replies import Received
from state.store import HEADER_BYTES

_NOTHING: Mapping[int, Kept] = {}


class Deliveries:
    """Makes deliveries of leases, and releases them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def at_hand(self, queue: Queue, tag: TagRecord, lent: Sequence[tuple[int, Received]]) -> list[Delivery] | None:
        """What receives of partitions have lent, if its bodies are in the window or kept here; None = ask `of`, for each."""
        for partition, received in lent:
            kept = self._core.bodies.of.get(queue.units[partition], _NOTHING)
            for leased in received.leased:
                if not leased.packed and (leased.offset not in kept or leased.count > 1):
                    return None
        return [delivery for partition, received in lent for delivery in self._made(queue, tag, partition, received, {})]

    async def of(self, queue: Queue, tag: TagRecord, partition: int, received: Received, lease_ms: int | None) -> list[Delivery]:
        """What a receive has lent for `lease_ms`, with bodies (from Kafka where neither window nor worker has them). Raises Unavailable."""
        kept = self._core.bodies.of.get(queue.units[partition], _NOTHING)
        missing = [leased.offset for leased in received.leased if not leased.packed and leased.offset not in kept]
        records = await self._read(queue, tag, partition, received, missing) if missing else {}
        lent = await self._in_time(queue, tag, partition, received, self._made(queue, tag, partition, received, records))
        return lent if lease_ms is not None or not missing else await self._own_leases(queue, tag, partition, received, lent, set(missing))

    def _made(self, queue: Queue, tag: TagRecord, partition: int, received: Received, records: Mapping[int, Record]) -> list[Delivery]:
        """Deliveries of what was lent, with bodies from the window, else of `records`; what neither has is left out."""
        secret, incarnation, fifo = self._core.secret, queue.incarnation, queue.record.fifo
        id_of = ids_of(secret, incarnation, partition)
        handle_of = handles_of(secret, incarnation, partition, tag.id, received.nonce, received.now_ms)
        kept = self._core.bodies.of.get(queue.units[partition], _NOTHING)
        made = []
        for leased in received.leased:
            offset, packed, digest = leased.offset, leased.packed, ""
            if packed:
                message, sent_at_ms = decode_message(packed[HEADER_BYTES:], None), int.from_bytes(packed[:8])
            elif (own := kept.get(offset)) is not None:
                message, sent_at_ms, digest = own.message, own.sent_at_ms, own.digest
            elif offset in records:
                record = records[offset]
                message, sent_at_ms = decode_message(record.value, record.headers), record.timestamp_ms
            else:
                continue
            made.append(
                Delivery(
                    id_of(offset),
                    handle_of(offset),
                    message,
                    sent_at_ms,
                    leased.count,
                    leased.first_received_at_ms,
                    leased.deadline_ms,
                    partition,
                    offset,
                    sequence_number(offset) if fifo else "",
                    digest,
                )
            )
        return made

    async def _read(self, queue: Queue, tag: TagRecord, partition: int, received: Received, missing: list[int]) -> dict[int, Record]:
        """The records that the window had no bodies of; one that is gone for good is expired."""
        records = await self._core.read_offsets(queue, partition, missing)
        absent = [offset for offset in missing if offset not in records]
        if absent:
            # What the log still should have stays leased and comes again: better late than called lost.
            over = await gone(self._core, queue, partition, absent)
            await expire(self._core, queue, tag, partition, [(offset, received.nonce) for offset in absent if offset in over])
        return records

    async def _in_time(self, queue: Queue, tag: TagRecord, partition: int, received: Received, lent: list[Delivery]) -> list[Delivery]:
        """Those within their retention; the others are expired. Without a body the window knows this only of a first delivery."""
        since = received.now_ms - queue.record.retention_ms
        again = {leased.offset for leased in received.leased if leased.count > 1 and not leased.packed}
        late = {d.offset for d in lent if d.offset in again and d.sent_at_ms + delay_of(queue, d.message) <= since}
        if not late:
            return lent
        unit, kind, pairs = queue.units[partition], EventKind.EXPIRED.value, [(offset, received.nonce) for offset in late]
        await self._core.on_state(queue, lambda g: self._core.store.settle(unit, g, tag.id, kind, pairs))
        return [d for d in lent if d.offset not in late]

    async def _own_leases(
        self, queue: Queue, tag: TagRecord, partition: int, received: Received, lent: list[Delivery], missing: set[int]
    ) -> list[Delivery]:
        """A message's own lease is in its record: the window lent for the queue's where it had none."""
        own = {d.offset: d.message.lease_ms for d in lent if d.offset in missing and d.message.lease_ms is not None}
        if not own:
            return lent
        entries = [(offset, received.nonce, ms) for offset, ms in own.items()]
        extended = await self._core.on_state(queue, lambda g: self._core.store.extend(queue.units[partition], g, tag.id, entries))
        until = {offset: e.time_ms for offset, e in zip(own, extended, strict=True) if e.status == "ok"}
        return [msgspec.structs.replace(d, next_visible_at_ms=until.get(d.offset, d.next_visible_at_ms)) for d in lent]

    async def give_back(self, queue: Queue, tag: TagRecord, lent: Sequence[Delivery]) -> None:
        """Releases what was lent to a receiver that has gone."""
        for delivery in lent:
            handle = Handle.parse(delivery.handle, self._core.secret)
            with contextlib.suppress(EngineError):
                await self._core.on_state(
                    queue,
                    lambda g, h=handle: self._core.store.release(queue.units[h.partition], g, tag.id, [(h.offset, h.nonce)]),  # type: ignore[misc]
                )
                self._core.woken(queue.incarnation, handle.partition)
