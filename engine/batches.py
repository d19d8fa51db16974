"""What a chunk of a queue's topic means for the window: decoding, parking what can't be read, holding back unfinished batches.

Rule of atomic batches (docs/decisions/0002): the records of a batch are shown only when all of them are there and the last was
appended at most 30 s after the first. It depends on the log alone, so every reader (and Spark) decides alike.
Neighbours: `loader.py` calls `gather`. Must not know Redis.
"""

from __future__ import annotations

import logging

from engine.core import BATCH_SPAN_MS, Core, now_ms
from engine.log import Chunk, Record
from engine.queue import Queue
from schemas.records import Message
from schemas.vocabulary import Reason
from schemas.wire import UndecodableRecord, decode_message, encode
from state.replies import LoadEntry

logger = logging.getLogger(__name__)

# Clocks of facade and broker may differ by this much when we judge that the rest of a batch will not come.
CLOCK_MARGIN_MS = 10_000


def begins_inside_a_batch(chunk: Chunk) -> bool:
    """Whether the first record continues a batch that began before the chunk: then it can't be judged from here."""
    if not chunk.records:
        return False
    try:
        mark = decode_message(chunk.records[0].value, chunk.records[0].headers).batch
    except UndecodableRecord:
        return False
    return mark is not None and mark.index > 0


def gather(core: Core, queue: Queue, chunk: Chunk) -> tuple[list[LoadEntry], list[LoadEntry], int]:
    """(entries in log order, entries after an unfinished batch, next offset the cursors may come to).

    Records of an unfinished batch are in neither list; cursors stop at its first record.
    """
    messages = [_decode(core, queue, record) for record in chunk.records]
    whole, unfinished = _judge(chunk, messages)
    held = min((chunk.records[i].offset for i in unfinished), default=None)
    ordered: list[LoadEntry] = []
    early: list[LoadEntry] = []
    for index, (record, message) in enumerate(zip(chunk.records, messages, strict=True)):
        if index in unfinished:
            continue
        entry = _entry(core, queue, record, message, torn=message is not None and message.batch is not None and index not in whole)
        (ordered if held is None or record.offset < held else early).append(entry)
    return ordered, early, chunk.next_offset if held is None else held


def _decode(core: Core, queue: Queue, record: Record) -> Message | None:
    try:
        return decode_message(record.value, record.headers)
    except UndecodableRecord as error:
        core.count("undecodable_records_total")
        logger.error("action=park queue=%s partition=%d offset=%d error=%s", queue.name, record.partition, record.offset, error)
        return None


def _judge(chunk: Chunk, messages: list[Message | None]) -> tuple[set[int], set[int]]:
    """Indexes of records of whole batches, and of batches that may still become whole."""
    batches: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        if message is not None and message.batch is not None:
            batches.setdefault(message.batch.id, []).append(index)
    whole: set[int] = set()
    unfinished: set[int] = set()
    last_ms = chunk.records[-1].timestamp_ms if chunk.records else 0
    for indexes in batches.values():
        first = messages[indexes[0]]
        assert first is not None and first.batch is not None
        seen = {m.batch.index for i in indexes if (m := messages[i]) is not None and m.batch is not None}
        first_ms = chunk.records[indexes[0]].timestamp_ms
        if len(seen) == first.batch.size:
            if chunk.records[indexes[-1]].timestamp_ms - first_ms <= BATCH_SPAN_MS:
                whole.update(indexes)
        elif 0 not in seen or last_ms - first_ms > BATCH_SPAN_MS:
            continue
        elif not chunk.at_end or now_ms() - first_ms <= BATCH_SPAN_MS + CLOCK_MARGIN_MS:
            unfinished.update(indexes)
    return whole, unfinished


def _entry(core: Core, queue: Queue, record: Record, message: Message | None, *, torn: bool) -> LoadEntry:
    if message is None or torn:
        reason = Reason.UNDECODABLE if message is None else Reason.TORN_BATCH
        return LoadEntry(record.offset, b"", "0" * len(queue.tags), "", reason)
    # A native record keeps its headers only in our own form.
    value = encode(message) if not message.sender else record.value or b""
    return core.load_entry(queue, record.offset, record.timestamp_ms, message, value)
