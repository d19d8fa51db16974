"""What a chunk of a queue's topic means for the window: decoding, passing over what can't be read,
holding back unfinished batches.

Rule of atomic batches (docs/decisions/0002): the records of a batch are shown only when all of them
are there and the last was appended at most 30 s after the first. It depends on the log alone, so
every reader (and Spark) decides alike. A chunk may begin or end inside a batch: what it lacks is
read around it. Neighbours: `loader.py` and `verify.py` call `assemble`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from engine.log import Chunk, Record
from engine.rules.queue import Queue
from engine.runtime.clock import now_ms
from engine.runtime.counters import Counters
from engine.window.commits import is_late
from engine.window.entry import load_entry
from schemas.records import BatchMark, Message
from schemas.vocabulary import BATCH_CLOCK_MARGIN_MS, BATCH_SPAN_MS, Reason
from schemas.wire import UndecodableRecord, decode_message, encode
from state.replies import LoadEntry

logger = logging.getLogger(__name__)

# How much is loaded together with a batch that is not whole yet, and so how far its rest is looked
# for while it may still come.
LOOK_AHEAD = 8_000
LOOK_AHEAD_BYTES = 16_000_000
# What is read at a time: small enough that decoding it does not hold up the requests of this
# worker.
CHUNK_RECORDS = 1_000
CHUNK_BYTES = 2_000_000
# A batch that others' records lie in has begun before its place tells: it is looked for so many
# times as far back, and again. The first time no further back than LOOK_BACK: a place may be
# forged.
WIDER = 8
LOOK_BACK = 1_000

# Reads records from an offset on: at least one, if there is one.
Fetch: TypeAlias = Callable[[int], Awaitable[Chunk]]


class _Batch(msgspec.Struct):
    """What has been seen of a batch."""

    size: int
    first_ms: int
    last_ms: int
    seen: set[int]


class BatchView:
    """The batches that a chunk has records of, and how far the log was looked through for them."""

    def __init__(self) -> None:
        self._of: dict[str, _Batch] = {}
        self._log_ms = 0
        self._at_end = False

    def see(self, mark: BatchMark, at_ms: int, *, known: bool = False) -> None:
        """Takes in a record; `known`: only if others of its batch have been seen."""
        batch = self._of.get(mark.id)
        if batch is None:
            if known:
                return
            batch = self._of[mark.id] = _Batch(mark.size, at_ms, at_ms, set())
        batch.seen.add(mark.index)
        batch.first_ms, batch.last_ms = min(batch.first_ms, at_ms), max(batch.last_ms, at_ms)

    def passed(self, chunk: Chunk) -> None:
        """All records up to the end of `chunk` have been seen."""
        self._log_ms = max(self._log_ms, chunk.records[-1].timestamp_ms if chunk.records else 0)
        self._at_end = chunk.at_end

    def headless(self) -> tuple[int, int]:
        """What is before the chunk of batches that it has records of: how many records, about, and
        since when (ms). (0, 0) = nothing.
        """
        headless = [batch for batch in self._of.values() if 0 not in batch.seen]
        heads = [(min(max(1, min(batch.seen)), LOOK_BACK), batch.last_ms - BATCH_SPAN_MS) for batch in headless]
        return (max(lacks for lacks, _ in heads), min(since for _, since in heads)) if heads else (0, 0)

    def whole(self, mark: BatchMark) -> bool | None:
        """Whether a batch is to be shown; None = its rest may come, or lie where nobody has
        looked.
        """
        batch = self._of[mark.id]
        if len(batch.seen) == batch.size:
            return batch.last_ms - batch.first_ms <= BATCH_SPAN_MS
        if 0 not in batch.seen or self._log_ms - batch.first_ms > BATCH_SPAN_MS:
            return False
        return False if self._at_end and not self.young(mark) else None

    def young(self, mark: BatchMark) -> bool:
        """Whether the rest of a batch may still be appended."""
        return now_ms() - self._of[mark.id].first_ms <= BATCH_SPAN_MS + BATCH_CLOCK_MARGIN_MS


async def assemble(counters: Counters, queue: Queue, chunk: Chunk, fetch: Fetch) -> tuple[list[LoadEntry], list[LoadEntry], int]:
    """(entries in log order, entries after an unfinished batch, next offset the cursors may come
    to).

    Records of an unfinished batch are in neither list; cursors stop at its first record. When the
    chunk begins with one, it is read on from with `fetch`, so there may be entries from beyond it.
    Raises LogUnavailable.
    """
    batches = BatchView()
    messages = _noted(counters, queue, batches, chunk)
    await _look_back(batches, chunk, fetch)
    mark = messages[0].batch if messages and messages[0] is not None else None
    grown = False
    while mark is not None and batches.whole(mark) is None and not chunk.at_end and _may_grow(chunk):
        more = await fetch(chunk.next_offset)
        messages += _noted(counters, queue, batches, more)
        chunk = Chunk([*chunk.records, *more.records], more.next_offset, more.at_end)
        grown = True
    if grown:  # it may have records now of batches that began before it
        await _look_back(batches, chunk, fetch)
    if mark is not None and not batches.young(mark):
        await _look_ahead(batches, mark, chunk, fetch)
    held = -1
    ordered: list[LoadEntry] = []
    early: list[LoadEntry] = []
    for record, message in zip(chunk.records, messages, strict=True):
        whole = batches.whole(message.batch) if message is not None and message.batch is not None else True
        if whole is not None:
            (ordered if held < 0 else early).append(_entry(queue, record, message, torn=not whole))
        elif held < 0:
            held = record.offset
    return ordered, early, chunk.next_offset if held < 0 else held


def _noted(counters: Counters, queue: Queue, batches: BatchView, chunk: Chunk) -> list[Message | None]:
    """The messages of a chunk, None for what can't be read; their batches are seen."""
    messages = [_decode(counters, queue, record) for record in chunk.records]
    for record, message in zip(chunk.records, messages, strict=True):
        if message is not None and message.batch is not None:
            batches.see(message.batch, record.timestamp_ms)
    batches.passed(chunk)
    return messages


def _may_grow(chunk: Chunk) -> bool:
    return len(chunk.records) < LOOK_AHEAD and sum(len(record.value or b"") for record in chunk.records) < LOOK_AHEAD_BYTES


async def _look_back(batches: BatchView, chunk: Chunk, fetch: Fetch) -> None:
    """Sees what is before the chunk of its batches: the window took that, and stopped inside a
    batch.
    """
    lacks, since_ms = batches.headless()
    back = lacks
    while lacks:
        begin = chunk.records[0].offset
        at = first = max(0, begin - back)
        enough = first == 0
        while at < begin:
            more = await fetch(at)
            enough = enough or more.truncated or not more.records or (at == first and more.records[0].timestamp_ms < since_ms)
            _see_known(batches, [record for record in more.records if record.offset < begin])
            at = more.next_offset if more.records else begin
        lacks = 0 if enough else batches.headless()[0]
        back *= WIDER


async def _look_ahead(batches: BatchView, mark: BatchMark, chunk: Chunk, fetch: Fetch) -> None:
    """Sees what is after the chunk of its batches, until it is known whether one of them is
    whole.
    """
    while batches.whole(mark) is None and not chunk.at_end:
        chunk = await fetch(chunk.next_offset)
        _see_known(batches, chunk.records)
        batches.passed(chunk)


def _see_known(batches: BatchView, records: Sequence[Record]) -> None:
    for record in records:
        try:
            mark = decode_message(record.value, record.headers).batch
        except UndecodableRecord:
            continue  # it is told of when its turn comes
        if mark is not None:
            batches.see(mark, record.timestamp_ms, known=True)


def _decode(counters: Counters, queue: Queue, record: Record) -> Message | None:
    try:
        return decode_message(record.value, record.headers)
    except UndecodableRecord as error:
        counters.count("undecodable_records_total")
        logger.error("action=skip queue=%s partition=%d offset=%d error=%s", queue.name, record.partition, record.offset, error)
        return None


def _entry(queue: Queue, record: Record, message: Message | None, *, torn: bool) -> LoadEntry:
    if message is None or torn:
        reason = Reason.UNDECODABLE if message is None else Reason.TORN_BATCH
        return LoadEntry(record.offset, b"", "0" * len(queue.tags), "", reason)
    if is_late(message, record.timestamp_ms):
        return LoadEntry(record.offset, b"", "0" * len(queue.tags), "", Reason.LATE_COMMIT)
    # A native record keeps its headers only in our own form.
    value = encode(message) if not message.sender else record.value or b""
    return load_entry(queue, record.offset, record.timestamp_ms, message, value)
