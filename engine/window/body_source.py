"""Where the body of a leased message comes from: the window, this worker's cache, else Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from engine.log import Log, Record, value_bytes
from engine.rules.placement import with_priority
from engine.rules.queue import Queue
from engine.window.body_cache import BodyCache, CachedBody
from engine.window.retention import Retention
from schemas.records import Message, TagRecord
from schemas.wire import decode_message
from state.packed import HEADER_BYTES

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

    def bodies_of(self, queue: Queue, partition: int, wanted: Sequence[Located], records: Mapping[int, Record]) -> list[Found | None]:
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
        records = await self._log.read_at(queue.topic, partition, [offset for offset, _ in missing], max_bytes=max_bytes)
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
    return [one and Found(with_priority(queue.record, partition, one.message), one.sent_at_ms, one.digest) for one in found]
