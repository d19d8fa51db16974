"""Where the body of a leased message comes from: the window, this worker's cache, else Kafka.

The cache has messages that this worker has just sent, until they are acked, so that their bodies
need not go to Redis and back. Only while no other worker listens for wake-ups: the window then has
such a message without its body, and whoever finds none, there or here, reads it from Kafka. So what
is kept may be forgotten at any time: it is a matter of speed alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from engine.log import Log, Record, value_bytes
from engine.rules.placement import with_priority
from engine.rules.queue import Queue
from engine.window.retention import Retention
from schemas.records import Message, TagRecord
from schemas.wire import decode_message
from state.keys import Unit
from state.packed import HEADER_BYTES

# Of a message that is kept, besides its record: about.
OVERHEAD_BYTES = 500
# What was not acked for so long gives way to what is sent now.
OLD_S = 30.0
# How often what is old is looked for, at most.
LOOK_S = 1.0


class CachedBody(Struct):
    """A message: its offset, when it was sent, hex MD5 of its body, bytes that it takes, and how
    many tags have not acked it.

    `at`: since when it is kept (loop time).
    """

    offset: int
    message: Message
    sent_at_ms: int
    digest: str
    size: int
    tags: int
    at: float


class BodyCache:
    """What is kept `of` each unit, by offset, `most_bytes` at most.

    `is_only_worker`: whether this worker is the only one, as of the last look; else nothing more is
    kept.
    """

    def __init__(self, most_bytes: int, kept_elsewhere: Callable[[Queue], bool] = lambda queue: False) -> None:
        """`kept_elsewhere`: whether the plane may receive from a queue; it finds no bodies here."""
        self._kept_elsewhere = kept_elsewhere
        self.is_only_worker = False
        self.bytes = 0
        self.of: dict[Unit, dict[int, CachedBody]] = {}
        self._most_bytes = most_bytes
        self._look_at = 0.0

    def count(self, workers: int) -> None:
        """So many workers are there, this one included. What is old is forgotten when there are
        others: they may have acked it.
        """
        self.is_only_worker = workers == 1
        if not self.is_only_worker:
            self._forget_old(asyncio.get_running_loop().time())

    def have_room(self, queue: Queue, size: int, messages: int, now: float) -> bool:
        """Whether so many messages of a queue, `size` bytes together, may be kept; what is old is
        forgotten for them. `now`: loop time.
        """
        if not self.is_only_worker or self._kept_elsewhere(queue):
            return False
        most = self._most_bytes - size - messages * OVERHEAD_BYTES
        if self.bytes > most and now >= self._look_at:
            self._look_at = now + LOOK_S
            self._forget_old(now)
        return self.bytes <= most

    def _forget_old(self, now: float) -> None:
        for unit, kept in self.of.items():
            old = []
            for offset, one in kept.items():
                if one.at > now - OLD_S:
                    break  # they are in the order in which they came
                old.append(offset)
            self.forget(unit, old)

    def keep(self, unit: Unit, messages: Sequence[CachedBody]) -> None:
        """Keeps messages of a unit that some tag wants."""
        kept = self.of.setdefault(unit, {})
        for one in messages:
            if one.offset in kept:
                self.forget(unit, (one.offset,))
            kept[one.offset] = one
            self.bytes += one.size

    def settle(self, unit: Unit, handles: Iterable[tuple[int, ...]]) -> None:
        """A tag has done with these, offset first."""
        kept = self.of.get(unit, {})
        for handle in handles:
            one = kept.get(offset := handle[0])
            if one is not None:
                one.tags -= 1
                if one.tags <= 0:
                    del kept[offset]
                    self.bytes -= one.size

    def forget_queue(self, queue: Queue) -> None:
        """A queue is no more: nothing of it is kept."""
        for unit in queue.units:
            self.forget(unit, list(self.of.get(unit, ())))
            self.of.pop(unit, None)

    def forget(self, unit: Unit, offsets: Iterable[int]) -> None:
        """Keeps these no longer, if it did."""
        kept = self.of.get(unit, {})
        for offset in offsets:
            one = kept.pop(offset, None)
            if one is not None:
                self.bytes -= one.size


_NONE: Mapping[int, CachedBody] = {}


class Located(Protocol):
    """A message that Redis names: `packed` is its body, empty when the window has none."""

    @property
    def offset(self) -> int: ...
    @property
    def packed(self) -> bytes: ...


class Found(Struct, frozen=True):
    """A message, when it was sent, and the hex MD5 of its body where that is known already."""

    message: Message
    sent_at_ms: int
    digest: str = ""


class BodySource:
    """Finds messages with their bodies. Any number of tasks may ask."""

    def __init__(self, log: Log, bodies: BodyCache, retention: Retention) -> None:
        self._log = log
        self._bodies = bodies
        self._retention = retention

    def cached(self, queue: Queue, partition: int) -> Mapping[int, CachedBody]:
        """What this worker's cache has of a partition, by offset."""
        return self._bodies.of.get(queue.units[partition], _NONE)

    def missing(self, queue: Queue, partition: int, wanted: Sequence[Located]) -> list[int]:
        """Offsets of those whose bodies only Kafka has."""
        cached = self.cached(queue, partition)
        return [one.offset for one in wanted if not one.packed and one.offset not in cached]

    def bodies_of(
        self, queue: Queue, partition: int, wanted: Sequence[Located], records: Mapping[int, Record]
    ) -> list[Found | None]:
        """Each message, in order; None where neither window nor cache nor `records` have it.

        Raises UndecodableRecord.
        """
        cached = self._bodies.of.get(queue.units[partition], _NONE)
        found: list[Found | None] = []
        for one in wanted:
            packed = one.packed
            if packed:
                found.append(Found(decode_message(packed[HEADER_BYTES:], None), int.from_bytes(packed[:8])))
            elif (own := cached.get(one.offset)) is not None:
                found.append(Found(own.message, own.sent_at_ms, own.digest))
            elif (record := records.get(one.offset)) is not None:
                found.append(Found(decode_message(record.value, record.headers), record.timestamp_ms))
            else:
                found.append(None)
        return _with_priorities(queue, partition, found) if queue.record.priority else found

    async def read(
        self, queue: Queue, tag: TagRecord, partition: int, missing: Sequence[tuple[int, int]], max_bytes: int
    ) -> tuple[Mapping[int, Record], set[int], list[int]]:
        """The records of `missing` (offset, nonce) from Kafka, about `max_bytes` of them, and the
        offsets that it no longer has: those messages are expired. Last, the offsets that were not
        read, for there were as many bytes before them. Raises Unavailable.
        """
        records = await self._log.read_at(
            queue.topic, partition, [offset for offset, _ in missing], max_bytes=max_bytes
        )
        absent, unread = [offset for offset, _ in missing if offset not in records], list[int]()
        if records and absent and value_bytes(records.values()) >= max_bytes:
            last = max(records)
            absent, unread = [at for at in absent if at < last], [at for at in absent if at > last]
        if not absent:
            return records, set(), unread
        over = await self._retention.gone(queue, partition, absent)
        await self._retention.expire(queue, tag, partition, [pair for pair in missing if pair[0] in over])
        return records, over, unread


def _with_priorities(queue: Queue, partition: int, found: Sequence[Found | None]) -> list[Found | None]:
    return [
        one and Found(with_priority(queue.record, partition, one.message), one.sent_at_ms, one.digest) for one in found
    ]
