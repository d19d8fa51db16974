"""What a chunk of a queue's topic means for the window: decoding, passing over what can't be read,
holding back unfinished batches.

Rule of atomic batches (docs/decisions/0002): the records of a batch are shown only when all of them
are there and the last was appended at most 30 s after the first. It depends on the log alone, so
every reader (and Spark) decides alike. A chunk may begin or end inside a batch: what it lacks is
read around it. A batch that lacks records at the end of the log is given up when this worker has
known it for so long that no sender answers for it any more (`message_log.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from engine.log import Chunk, Record
from engine.rules.queue import Queue
from engine.window.batches.message_log import Unfinished, is_late
from engine.window.batches.skips import Skip
from engine.window.entry import load_entry
from schemas.records import BatchMark, Message
from schemas.vocabulary import BATCH_SPAN_MS, Reason
from schemas.wire import UndecodableRecord, decode_message, encode
from state.replies import LoadEntry

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


class Assembled(msgspec.Struct):
    """`ordered` are entries in log order, `early` those after an unfinished batch or beyond an open
    transaction of Kafka, `next_offset` is where the cursors may come to; `skipped` are those of
    both that are no messages. All before `decided` is in one of them.

    Records of an unfinished batch are in neither list; cursors stop at its first record. When the
    chunk begins with one, it was read on from, so there may be entries from beyond it.
    """

    ordered: list[LoadEntry]
    early: list[LoadEntry]
    next_offset: int
    skipped: list[Skip]
    decided: int


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
        self._given_up: set[str] = set()

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

    def give_up(self, mark: BatchMark) -> None:
        """All that can count of a batch has been seen."""
        self._given_up.add(mark.id)

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
        if 0 not in batch.seen or self._log_ms - batch.first_ms > BATCH_SPAN_MS or mark.id in self._given_up:
            return False
        return None

    def about(self, mark: BatchMark) -> str:
        """How much of a batch has been seen, for people."""
        return f"batch={mark.id} records={len(self._of[mark.id].seen)} of={self._of[mark.id].size}"

    def remember(self, unfinished: Unfinished, incarnation: str, partition: int) -> None:
        """Keeps since when the batches of a partition are known that are not whole."""
        for name, batch in self._of.items():
            key = (incarnation, partition, name)
            if self.whole(BatchMark(name, 0, batch.size)) is None:
                unfinished.note(key)
            else:
                unfinished.forget(key)


async def assemble(unfinished: Unfinished, queue: Queue, chunk: Chunk, fetch: Fetch) -> Assembled:
    """Returns what the window is to have of a chunk, and of what is read on with `fetch`. Raises
    LogUnavailable.
    """
    batches = BatchView()
    messages = _noted(batches, chunk)
    await _look_back(batches, chunk, fetch)
    first = messages[0] if messages else None
    mark = first.batch if isinstance(first, Message) else None
    grown = False
    while mark is not None and batches.whole(mark) is None and not chunk.at_end and _may_grow(chunk):
        more = await fetch(chunk.next_offset)
        messages += _noted(batches, more)
        open_from = more.open_from if chunk.open_from is None else chunk.open_from
        chunk = Chunk([*chunk.records, *more.records], more.next_offset, more.at_end, open_from=open_from)
        grown = True
    if grown:  # it may have records now of batches that began before it
        await _look_back(batches, chunk, fetch)
    partition = chunk.records[0].partition if chunk.records else 0
    if mark is not None:
        await _look_ahead(
            batches, mark, chunk, fetch, lambda: unfinished.is_over((queue.incarnation, partition, mark.id))
        )
    batches.remember(unfinished, queue.incarnation, partition)
    held, open_from = -1, chunk.open_from
    found = Assembled(
        [], [], chunk.next_offset if open_from is None else min(chunk.next_offset, open_from), [], chunk.next_offset
    )
    for record, message in zip(chunk.records, messages, strict=True):
        if open_from is not None and record.offset >= open_from and held < 0:
            held = open_from
        batch = message.batch if isinstance(message, Message) else None
        whole = True if batch is None else batches.whole(batch)
        if whole is not None:
            skip = _skip(record, message, batches, torn=not whole)
            entry = _entry(queue, record, message, skip)
            (found.ordered if held < 0 else found.early).append(entry)
            if skip is not None:
                found.skipped.append(skip)
        else:
            found.decided = min(found.decided, record.offset)
            if held < 0:
                held = found.next_offset = record.offset
    return found


def _noted(batches: BatchView, chunk: Chunk) -> list[Message | UndecodableRecord]:
    """The messages of a chunk, or why they can't be read; their batches are seen."""
    messages = [_decode(record) for record in chunk.records]
    for record, message in zip(chunk.records, messages, strict=True):
        if isinstance(message, Message) and message.batch is not None:
            batches.see(message.batch, record.timestamp_ms)
    batches.passed(chunk)
    return messages


def _may_grow(chunk: Chunk) -> bool:
    return (
        len(chunk.records) < LOOK_AHEAD and sum(len(record.value or b"") for record in chunk.records) < LOOK_AHEAD_BYTES
    )


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
            enough = enough or more.truncated or more.next_offset <= at
            enough = enough or (at == first and bool(more.records) and more.records[0].timestamp_ms < since_ms)
            _see_known(batches, [record for record in more.records if record.offset < begin])
            at = more.next_offset if more.next_offset > at else begin
        lacks = 0 if enough else batches.headless()[0]
        back *= WIDER


async def _look_ahead(
    batches: BatchView, mark: BatchMark, chunk: Chunk, fetch: Fetch, is_over: Callable[[], bool]
) -> None:
    """Sees what is after the chunk of its batches, until it is known whether one of them is whole.

    At the end of the log nothing more may come only if that was found by a fetch that began when
    the time of the batch was over: what came before is seen by it.
    """
    while batches.whole(mark) is None:
        over = is_over()
        if chunk.at_end and not over:
            return
        asked, chunk = chunk.next_offset, await fetch(chunk.next_offset)
        _see_known(batches, chunk.records)
        batches.passed(chunk)
        if over and chunk.at_end and not chunk.records and chunk.next_offset <= asked:
            batches.give_up(mark)


def _see_known(batches: BatchView, records: Sequence[Record]) -> None:
    for record in records:
        try:
            mark = decode_message(record.value, record.headers).batch
        except UndecodableRecord:
            continue  # it is told of when its turn comes
        if mark is not None:
            batches.see(mark, record.timestamp_ms, known=True)


def _decode(record: Record) -> Message | UndecodableRecord:
    try:
        return decode_message(record.value, record.headers)
    except UndecodableRecord as error:
        return error


def _skip(record: Record, message: Message | UndecodableRecord, batches: BatchView, *, torn: bool) -> Skip | None:
    """Why a record is no message, if it is none."""
    if isinstance(message, UndecodableRecord):
        return Skip(record.offset, Reason.UNDECODABLE, record.offset, f"error={message}")
    if torn and message.batch is not None:
        return Skip(record.offset, Reason.TORN_BATCH, message.batch.id, batches.about(message.batch))
    if is_late(message, record.timestamp_ms) and message.origin is not None:
        origin = message.origin
        about = f"transaction={origin.original_id} late_ms={record.timestamp_ms - origin.moved_at_ms}"
        return Skip(record.offset, Reason.LATE_COMMIT, origin.original_id, about)
    return None


def _entry(queue: Queue, record: Record, message: Message | UndecodableRecord, skip: Skip | None) -> LoadEntry:
    if skip is not None or isinstance(message, UndecodableRecord):
        return LoadEntry(
            record.offset, b"", "0" * len(queue.tags), "", skip.reason if skip is not None else Reason.UNDECODABLE
        )
    # A native record keeps its headers only in our own form.
    value = encode(message) if not message.sender else record.value or b""
    return load_entry(queue, record.offset, record.timestamp_ms, message, value)
