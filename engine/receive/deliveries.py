"""Messages that a receive has leased: with their bodies to the caller, or back when no answer
carries them.

A delivery that no answer carried is no delivery: it is uncounted, and its message is again where it
was. A body that can't be read makes its message rest for a second, so that a receive goes on to
others.
"""

from __future__ import annotations

import asyncio
import logging
import operator
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.errors import EngineError, LogUnavailable
from engine.log import Record
from engine.receive.returns import Returns
from engine.rules.fifo import sequence_number
from engine.rules.limits import MAX_RECEIVE_BYTES, message_bytes
from engine.rules.queue import Ids, Queue
from engine.shapes import Delivery
from engine.window.body_source import BodySource, CachedBody, Found
from engine.window.entry import delay_of
from engine.window.window import Window
from schemas.identity import handles_of, ids_of
from schemas.records import TagRecord
from schemas.vocabulary import EventKind
from state.leases import LeaseScripts
from state.replies import Extended, Leased, Received

_NO_RECORDS: Mapping[int, Record] = {}

logger = logging.getLogger(__name__)

_sent_at = operator.attrgetter("sent_at_ms")
_partition = operator.attrgetter("partition")
# A body that has not come from Kafka by then does not come.
READ_S = 6.0
# Meanwhile no lease of that receive must end: the message would be leased again, or die, before
# anybody had it.
HOLD_MS = 10_000
# An answer waits so long at most for what is given back before it.
ANSWER_S = 1.0


def as_sent(queue: Queue, deliveries: list[Delivery]) -> list[Delivery]:
    """What several partitions of a standard queue have leased, in the order in which it was sent,
    or by priority; each one's is in its order already.
    """
    if queue.record.priority:
        deliveries.sort(key=_partition)
    elif not queue.record.fifo:
        deliveries.sort(key=_sent_at)
    return deliveries


@dataclass
class _Part:
    """What one partition has leased of a receive, and what became of it: `made`, or `ended`
    (expired), or left, for there is a `fault`. `cut`: of what the answer has no room for, since
    when it was visible or due (ms).
    """

    partition: int
    received: Received
    missing: list[int]
    made: list[Delivery] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)
    held: set[int] = field(default_factory=set)
    cut: dict[int, int] = field(default_factory=dict)
    fault: Exception | None = None


class Deliveries:
    """Makes deliveries of leases. `start` runs what nobody waits for."""

    def __init__(
        self,
        scripts: LeaseScripts,
        window: Window,
        ids: Ids,
        bodies: BodySource,
        returns: Returns,
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._scripts = scripts
        self._window = window
        self._ids = ids
        self._bodies = bodies
        self._returns = returns
        self._start = start

    def from_memory(
        self, queue: Queue, tag: TagRecord, leases: Sequence[tuple[int, Received]]
    ) -> list[Delivery] | None:
        """What receives of partitions have leased, if its bodies are in the window or kept here;
        None = ask `complete`, for each.
        """
        made: list[Delivery] = []
        try:
            for partition, received in leases:
                over_ms = self._over_ms(queue, received) if queue.expires_from_send else -1
                found = self._bodies.bodies_of(queue, partition, received.leased, _NO_RECORDS)
                for leased, one in zip(received.leased, found, strict=True):
                    if one is None or (leased.count > 1 and not leased.packed) or one.sent_at_ms <= over_ms:
                        return None
                made += self._build(queue, tag, partition, received, found)
        except Exception:
            return None  # `complete` says what is wrong
        return as_sent(queue, made) if len(leases) > 1 else made

    async def complete(
        self, queue: Queue, tag: TagRecord, leases: Sequence[tuple[int, Received]], lease_ms: int | None
    ) -> tuple[list[Delivery], dict[int, Exception]]:
        """What a receive has leased for `lease_ms`, with bodies (from Kafka where neither window
        nor worker has them).

        What can't be delivered is given back; of each partition that has such, the error says why.
        So is, without an error, what is beyond MAX_RECEIVE_BYTES. Raises nothing.
        """
        parts = [
            _Part(partition, received, self._bodies.missing(queue, partition, received.leased))
            for partition, received in leases
        ]
        reads = sum(1 for part in parts if part.missing)
        if reads:
            # All of them: none is delivered before the slowest read has ended.
            await self._each(queue, parts, lambda part: self._hold(queue, tag, part))
        await self._each(queue, parts, lambda part: self._make(queue, tag, part, MAX_RECEIVE_BYTES // max(reads, 1)))
        _cut(queue, parts)
        await self._each(queue, parts, lambda part: self._own_leases(queue, tag, part, lease_ms))
        left = [self._start(self._return(queue, tag, part)) for part in parts if part.fault is not None or part.cut]
        if left:
            await asyncio.wait(left, timeout=ANSWER_S)
        made = [d for part in parts for d in part.made]
        faults = {part.partition: part.fault for part in parts if part.fault is not None}
        return as_sent(queue, made) if len(parts) > 1 else made, faults

    async def _each(self, queue: Queue, parts: Sequence[_Part], step: Callable[[_Part], Awaitable[None]]) -> None:
        """Takes a step for each partition, unless one before has left nothing of it."""

        async def one(part: _Part) -> None:
            try:
                if part.fault is None or part.made:
                    await step(part)
            except Exception as error:
                if not isinstance(error, EngineError):
                    logger.exception("action=deliver queue=%s partition=%d", queue.name, part.partition)
                part.fault, part.made = error, []

        await asyncio.gather(*(one(part) for part in parts))

    async def _hold(self, queue: Queue, tag: TagRecord, part: _Part) -> None:
        """Makes leases longer that might end before the bodies have come."""
        received = part.received
        part.held = {one.offset for one in received.leased if one.deadline_ms - received.now_ms < HOLD_MS}
        if part.held:
            entries = [(offset, received.nonce, HOLD_MS) for offset in part.held]
            await self._window.call(queue, lambda g: self._extend(queue, tag, part, g, entries))

    def _extend(
        self, queue: Queue, tag: TagRecord, part: _Part, generation: int, entries: list[tuple[int, int, int]]
    ) -> Awaitable[list[Extended]]:
        """Moves deadlines; one that is over stays so where another message may have its place."""
        late = not queue.record.max_in_flight
        return self._scripts.extend(queue.units[part.partition], generation, tag.id, entries, late=late)

    async def _make(self, queue: Queue, tag: TagRecord, part: _Part, max_bytes: int) -> None:
        """Makes what can be delivered, with about `max_bytes` of bodies from Kafka at most, and
        says why not all can.
        """
        records: Mapping[int, Record] = {}
        if part.missing:
            try:
                async with asyncio.timeout(READ_S):
                    records = await self._read(queue, tag, part, max_bytes)
            except LogUnavailable as error:
                part.fault = error
            except TimeoutError:
                part.fault = LogUnavailable("Kafka does not answer a fetch")
        found = self._bodies.bodies_of(queue, part.partition, part.received.leased, records)
        part.made = self._build(queue, tag, part.partition, part.received, found)
        absent = [offset for offset in part.missing if offset not in records and offset not in part.ended]
        unread = [offset for offset in absent if offset not in part.cut]
        if unread and part.fault is None:
            part.fault = LogUnavailable(
                f"Kafka did not give message {unread[0]} of topic {queue.topic}, partition {part.partition}"
            )
        if absent and queue.record.fifo:
            # What stands behind it in its group has to wait for it.
            part.made = [d for d in part.made if d.offset < min(absent)]
        await self._drop_expired(queue, tag, part)

    def _build(
        self, queue: Queue, tag: TagRecord, partition: int, received: Received, found: Sequence[Found | None]
    ) -> list[Delivery]:
        """Deliveries of what was leased, as far as it was `found`."""
        secret, incarnation, fifo = self._ids.secret, queue.incarnation, queue.record.fifo
        id_of = ids_of(secret, incarnation, partition)
        handle_of = handles_of(secret, incarnation, partition, tag.id, received.nonce, received.now_ms)
        made = []
        for leased, one in zip(received.leased, found, strict=True):
            if one is not None:
                made.append(
                    Delivery(
                        id_of(leased.offset),
                        handle_of(leased.offset),
                        one.message,
                        one.sent_at_ms,
                        leased.count,
                        leased.first_received_at_ms,
                        leased.deadline_ms,
                        partition,
                        leased.offset,
                        sequence_number(leased.offset) if fifo else "",
                        one.digest,
                        received_at_ms=received.now_ms,
                    )
                )
        return made

    async def _read(self, queue: Queue, tag: TagRecord, part: _Part, max_bytes: int) -> Mapping[int, Record]:
        """The records that the window had no bodies of; those that are gone for good are expired,
        those behind the first `max_bytes` are cut. Raises Unavailable.
        """
        missing = [(offset, part.received.nonce) for offset in part.missing]
        records, over, unread = await self._bodies.read(queue, tag, part.partition, missing, max_bytes)
        part.ended |= over
        since = {leased.offset: leased.since_ms for leased in part.received.leased}
        part.cut = {offset: since.get(offset) or part.received.now_ms for offset in unread}
        return records

    async def _drop_expired(self, queue: Queue, tag: TagRecord, part: _Part) -> None:
        """Leaves what is within its retention; the others are expired. The window knows due times
        alone, and without a body only that of a first delivery.
        """
        received = part.received
        over_ms = self._over_ms(queue, received)
        if queue.expires_from_send:
            late = {d.offset for d in part.made if d.sent_at_ms <= over_ms}
        else:
            again = {leased.offset for leased in received.leased if leased.count > 1 and not leased.packed}
            late = {d.offset for d in part.made if d.offset in again and _due_at(queue, d) <= over_ms}
        if late:
            unit, kind, pairs = (
                queue.units[part.partition],
                EventKind.EXPIRED.value,
                [(offset, received.nonce) for offset in late],
            )
            await self._window.call(queue, lambda g: self._scripts.settle(unit, g, tag.id, kind, pairs))
            part.ended |= late
            part.made = [d for d in part.made if d.offset not in late]

    def _over_ms(self, queue: Queue, received: Received) -> int:
        """Returns since when at least (ms) a message's retention has counted that was over when it
        was leased.
        """
        return received.now_ms - self._scripts.units.keep_ms(queue.expires_ms)

    async def _own_leases(self, queue: Queue, tag: TagRecord, part: _Part, lease_ms: int | None) -> None:
        """A message's own lease is in its record: the window leased for the queue's where it had
        none. What was held gets its lease now.
        """
        lengths: dict[int, int] = {}
        for d in part.made:
            own = lease_ms if lease_ms is not None else d.message.lease_ms
            if d.offset in part.held or (d.offset in part.missing and lease_ms is None and own is not None):
                lengths[d.offset] = max(queue.record.lease_ms if own is None else own, 1)
        if lengths:
            entries = [(offset, part.received.nonce, ms) for offset, ms in lengths.items()]
            extended = await self._window.call(queue, lambda g: self._extend(queue, tag, part, g, entries))
            until = {offset: e.time_ms for offset, e in zip(lengths, extended, strict=True) if e.status == "ok"}
            part.made = [
                msgspec.structs.replace(d, next_visible_at_ms=until.get(d.offset, d.next_visible_at_ms))
                for d in part.made
            ]

    async def _return(self, queue: Queue, tag: TagRecord, part: _Part) -> None:
        """Gives back what is not delivered."""
        done = {d.offset for d in part.made} | part.ended
        cached = self._bodies.cached(queue, part.partition)
        left = [leased for leased in part.received.leased if leased.offset not in done]
        if left:
            dues = part.cut
            rows = [
                (one.offset, part.received.nonce, dues.get(one.offset) or _place(queue, one, cached)) for one in left
            ]
            await self._returns.rows(queue, tag.id, part.partition, rows)


def _cut(queue: Queue, parts: Sequence[_Part]) -> None:
    """Leaves of what was made the first MAX_RECEIVE_BYTES, in the order of the answer; one message
    at least.
    """
    size, cut = 0, dict[int, dict[int, int]]()
    for n, d in enumerate(as_sent(queue, [d for part in parts for d in part.made])):
        size += message_bytes(d.message)
        if n and size > MAX_RECEIVE_BYTES:
            cut.setdefault(d.partition, {})[d.offset] = d.sent_at_ms + delay_of(queue, d.message)
    for part in parts:
        if dues := cut.get(part.partition):
            part.made = [d for d in part.made if d.offset not in dues]
            part.cut.update(dues)


def _due_at(queue: Queue, delivery: Delivery) -> int:
    """When a message was due, or later: one that was delayed may have been rescheduled, but not
    beyond its first delivery.
    """
    delay_ms = delay_of(queue, delivery.message)
    due_ms = delivery.sent_at_ms + delay_ms
    return max(due_ms, delivery.first_received_at_ms or 0) if delay_ms else due_ms


def _place(queue: Queue, leased: Leased, cached: Mapping[int, CachedBody]) -> int:
    """Returns since when a message was visible, or when it is due (epoch ms); 0 = nobody here can
    tell without its record.
    """
    if leased.packed:
        return int.from_bytes(leased.packed[8:16])
    own = cached.get(leased.offset)
    return 0 if own is None else leased.since_ms or own.sent_at_ms + delay_of(queue, own.message)
