"""Atomic batches are judged by the log alone: wherever a reader begins, it decides alike."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.log import Chunk, Record
from engine.rules.queue import Queue
from engine.runtime.counters import Counters
from engine.window.atomic_batches import assemble
from schemas.records import BatchMark, Message, QueueRecord, TagRecord
from schemas.wire import encode
from tests.clock import Clock

QUEUE = Queue(
    QueueRecord("orders", "0123456789ab", "alice", 1, 2, 1, 0, 30_000, 7, 8, 9, 10, [TagRecord(0, "default", 1, 0, [0])], 1), "lw"
)
# Long ago: what is not whole by now never will be.
THEN_MS = 1_000_000


Mark = tuple[str, int, int] | None


def record(offset: int, mark: Mark) -> Record:
    value = encode(Message(b"m", sender="a", batch=BatchMark(*mark) if mark else None))
    return Record("lw.q.orders", 0, offset, THEN_MS + offset, None, value, None)


class ALog:
    """Records at offsets 0, 1, ...; a mark is (batch, index, size), None for a single message."""

    def __init__(self, marks: list[Mark], chunk: int) -> None:
        self.chunk = chunk
        self.records = [record(offset, mark) for offset, mark in enumerate(marks)]

    async def fetch(self, start: int) -> Chunk:
        some = self.records[start : start + self.chunk]
        return Chunk(some, start + len(some), start + len(some) >= len(self.records))


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Mark], set[int]]:
    """Marks of a log in which batches lie among each other, and the offsets that are shown."""
    rows: list[list[Mark]] = []
    for number in range(draw(st.integers(1, 6))):
        size = draw(st.integers(1, 6))
        if size == 1:
            rows.append([None])
            continue
        sent = size if draw(st.booleans()) else draw(st.integers(1, size - 1))  # the sender died
        rows.append([(f"b{number}", index, size) for index in range(sent)])
    marks: list[Mark] = []
    while rows:
        row = draw(st.sampled_from(rows))
        marks.append(row.pop(0))
        rows = [left for left in rows if left]
    seen: dict[str, int] = {}
    for mark in marks:
        if mark is not None:
            seen[mark[0]] = seen.get(mark[0], 0) + 1
    return marks, {offset for offset, mark in enumerate(marks) if mark is None or seen[mark[0]] == mark[2]}


async def shown_from(log: ALog, start: int) -> set[int]:
    """The offsets that a loader which begins at `start` shows, chunk by chunk."""
    shown: set[int] = set()
    at = start
    for _ in range(100):
        if at >= len(log.records):
            return shown
        ordered, early, at_next = await assemble(Counters(), QUEUE, await log.fetch(at), log.fetch)
        shown.update(entry.offset for entry in (*ordered, *early) if entry.packed)
        assert at_next > at, "a log of long ago never holds a reader up"
        at = at_next
    raise AssertionError("the reader does not come to the end")


@given(logs(), st.integers(1, 7), st.data())
@settings(max_examples=300, deadline=None)
def test_a_reader_decides_alike_wherever_it_begins(given_log: tuple[list[Mark], set[int]], chunk: int, data: st.DataObject) -> None:
    marks, expected = given_log
    start = data.draw(st.integers(0, len(marks) - 1))
    shown = asyncio.run(shown_from(ALog(marks, chunk), start))
    assert shown == {offset for offset in expected if offset >= start}


async def test_a_young_batch_holds_the_cursor_until_it_is_whole(clock: Clock) -> None:
    clock.set(THEN_MS + 100)
    log = ALog([None, ("b", 0, 3), None, ("b", 1, 3)], 10)
    ordered, early, at = await assemble(Counters(), QUEUE, await log.fetch(0), log.fetch)
    assert ([e.offset for e in ordered], [e.offset for e in early], at) == ([0], [2], 1)
    log = ALog([None, ("b", 0, 3), None, ("b", 1, 3), ("b", 2, 3)], 10)
    ordered, early, at = await assemble(Counters(), QUEUE, await log.fetch(0), log.fetch)
    assert ([e.offset for e in ordered if e.packed], early, at) == ([0, 1, 2, 3, 4], [], 5)


async def test_what_can_not_be_read_is_skipped_and_counted() -> None:
    log, counters = ALog([None, None], 10), Counters()
    log.records[0] = Record("lw.q.orders", 0, 0, THEN_MS, None, encode(Message(b"m", sender="a"))[:7], None)
    ordered, _, at = await assemble(counters, QUEUE, await log.fetch(0), log.fetch)
    assert [(e.offset, bool(e.packed), e.reason) for e in ordered] == [(0, False, "undecodable"), (1, True, "")] and at == 2
    assert counters.get("undecodable_records_total") == 1
