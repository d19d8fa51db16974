"""Messages that a receive has lent: with their bodies to the caller, or back when the caller has gone.

Neighbours: `receiver.py` lends. Must not know who waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from engine.core import Core
from engine.errors import EngineError
from engine.fifo import sequence_number
from engine.queue import Queue
from engine.retention import expire, gone
from engine.verbs import Delivery
from schemas.identity import Handle
from schemas.records import TagRecord
from schemas.wire import decode_message
from state.replies import Leased, Received
from state.store import HEADER_BYTES


class Deliveries:
    """Makes deliveries of leases, and releases them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def of(self, queue: Queue, tag: TagRecord, partition: int, received: Received, lease_ms: int | None) -> list[Delivery]:
        """What a receive has lent for `lease_ms`, with bodies (from Kafka where the window had none). Raises Unavailable."""
        bodies = {m.offset: m.packed for m in received.leased}
        missing = [offset for offset, packed in bodies.items() if not packed]
        values: dict[int, tuple[int, bytes | None, Any]] = {
            o: (int.from_bytes(b[:8]), b[HEADER_BYTES:], None) for o, b in bodies.items() if b
        }
        if missing:
            records = await self._core.read_offsets(queue, partition, missing)
            values.update({o: (r.timestamp_ms, r.value, r.headers) for o, r in records.items()})
        absent = [offset for offset in bodies if offset not in values]
        if absent:
            # What the log still should have stays leased and comes again: better late than called lost.
            over = await gone(self._core, queue, partition, absent)
            await expire(self._core, queue, tag, partition, [(offset, received.nonce) for offset in absent if offset in over])
        lent = [
            self._delivery(queue, tag, partition, received, leased, *values[leased.offset])
            for leased in received.leased
            if leased.offset in values
        ]
        return lent if lease_ms is not None or not missing else await self._own_leases(queue, tag, partition, received, lent, set(missing))

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

    def _delivery(
        self,
        queue: Queue,
        tag: TagRecord,
        partition: int,
        received: Received,
        leased: Leased,
        sent_at_ms: int,
        value: bytes | None,
        headers: Any,
    ) -> Delivery:
        return Delivery(
            id=self._core.message_id(queue, partition, leased.offset),
            handle=Handle(queue.incarnation, partition, tag.id, leased.offset, received.nonce, received.now_ms).text(self._core.secret),
            message=decode_message(value, headers),
            sent_at_ms=sent_at_ms,
            receive_count=leased.count,
            first_received_at_ms=leased.first_received_at_ms,
            next_visible_at_ms=leased.deadline_ms,
            partition=partition,
            offset=leased.offset,
            sequence_number=sequence_number(leased.offset) if queue.record.fifo else "",
        )

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
