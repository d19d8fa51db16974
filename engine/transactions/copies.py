"""What a queue's topic has of committed transactions, for who takes up what another began."""

from __future__ import annotations

from collections.abc import Set

from msgspec import Struct

from engine.errors import LogUnavailable
from engine.log import Log, Record
from engine.window.batches.message_log import is_late
from schemas.records import Message
from schemas.vocabulary import BATCH_SPAN_MS, Reason
from schemas.wire import UndecodableRecord, decode_message

CHUNK_RECORDS = 2_000
CHUNK_BYTES = 8_000_000


class Place(Struct, frozen=True):
    """Where a message is in its queue's topic."""

    partition: int
    offset: int


class _Batch:
    """An attempt at one partition: how many records it has, and those that were seen."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.seen: dict[int, tuple[int, Place]] = {}  # place in the batch -> place in the transaction, place in the log
        self.times: list[int] = []

    def is_whole(self) -> bool:
        return len(self.seen) == self.size and max(self.times) - min(self.times) <= BATCH_SPAN_MS


async def copies_in(log: Log, topic: str, partition: int, since_ms: int, ids: Set[str]) -> dict[str, dict[int, Place]]:
    """By transaction, the first copy that counts of each of its messages in a partition. Raises
    LogUnavailable.
    """
    part = (topic, partition)
    offset = (await log.offsets_at([part], since_ms)).get(part)
    if offset is None:
        raise LogUnavailable(f"the end of {topic} can't be read")
    batches: dict[tuple[str, str], _Batch] = {}
    while True:
        chunk = await log.fetch(topic, partition, offset, CHUNK_RECORDS, CHUNK_BYTES)
        for record in chunk.records:
            _note(batches, record, ids)
        if chunk.at_end:
            break
        offset = chunk.next_offset
    found: dict[str, dict[int, Place]] = {}
    for (of, _), batch in batches.items():
        for index, place in batch.seen.values() if batch.is_whole() else ():
            before = found.setdefault(of, {}).get(index)
            if before is None or place.offset < before.offset:
                found[of][index] = place
    return found


def _note(batches: dict[tuple[str, str], _Batch], record: Record, ids: Set[str]) -> None:
    try:
        message = decode_message(record.value, record.headers)
    except UndecodableRecord:
        return
    origin = message.origin
    if (
        origin is None
        or origin.reason != Reason.COMMITTED
        or origin.original_id not in ids
        or is_late(message, record.timestamp_ms)
    ):
        return
    of, _, index = origin.from_id.partition("/")
    if not index.isdecimal():
        return  # a native producer made it up
    name, place, size = _mark(message, record)
    batch = batches.setdefault((of, name), _Batch(size))
    batch.seen[place] = (int(index), Place(record.partition, record.offset))
    batch.times.append(record.timestamp_ms)


def _mark(message: Message, record: Record) -> tuple[str, int, int]:
    mark = message.batch
    return (f"single {record.offset}", 0, 1) if mark is None else (mark.id, mark.index, mark.size)
