"""Atomic batches are judged by the log alone: wherever a reader begins, it decides alike."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.log import Chunk, Record
from engine.rules.queue import Queue
from engine.window.batches import message_log as module
from engine.window.batches.atomic_batches import Assembled, assemble
from engine.window.batches.message_log import Unfinished
from schemas.records import BatchMark, Message
from schemas.wire import encode
from tests.unit.records import queue_record

QUEUE = Queue(
    queue_record(),
    "lw",
)
THEN_MS = 1_000_000


class Patient(Unfinished):
    """Has known each batch for long: what is not whole by now never will be."""

    def is_over(self, key: module.BatchKey) -> bool:
        return True


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The steady clock of the reader, to be set."""
    times = [1000.0]
    monkeypatch.setattr(module, "boot_s", lambda: times[0])
    return times


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
        found = await assemble(Patient(), QUEUE, await log.fetch(at), log.fetch)
        shown.update(entry.offset for entry in (*found.ordered, *found.early) if entry.packed)
        assert found.next_offset > at, "a log of long ago never holds a reader up"
        at = found.next_offset
    raise AssertionError("the reader does not come to the end")


@given(logs(), st.integers(1, 7), st.data())
@settings(max_examples=300, deadline=None)
def test_a_reader_decides_alike_wherever_it_begins(
    given_log: tuple[list[Mark], set[int]], chunk: int, data: st.DataObject
) -> None:
    marks, expected = given_log
    start = data.draw(st.integers(0, len(marks) - 1))
    shown = asyncio.run(shown_from(ALog(marks, chunk), start))
    assert shown == {offset for offset in expected if offset >= start}


async def looked_at(unfinished: Unfinished, log: ALog, start: int = 0) -> Assembled:
    return await assemble(unfinished, QUEUE, await log.fetch(start), log.fetch)


def rows(found: Assembled) -> tuple[list[int], list[int], int]:
    """Offsets of messages in order, those of early ones, and where the cursors may come to."""
    return [e.offset for e in found.ordered if e.packed], [e.offset for e in found.early if e.packed], found.next_offset


async def test_a_young_batch_holds_the_cursor_until_it_is_whole() -> None:
    assert rows(await looked_at(Unfinished(), ALog([None, ("b", 0, 3), None, ("b", 1, 3)], 10))) == ([0], [2], 1)
    log = ALog([None, ("b", 0, 3), None, ("b", 1, 3), ("b", 2, 3)], 10)
    assert rows(await looked_at(Unfinished(), log)) == ([0, 1, 2, 3, 4], [], 5)


async def test_a_reader_waits_for_a_batch_from_when_it_met_it(at: list[float]) -> None:
    """Not from when its first record was appended: these records are 50 years old."""
    unfinished, log = Unfinished(), ALog([("b", 0, 2), None], 10)
    for waited_s in (0, 39, 40):
        at[0] = 1000.0 + waited_s
        assert rows(await looked_at(unfinished, log)) == ([], [1], 0)
    at[0] += 0.1
    found = await looked_at(unfinished, log)
    assert rows(found) == ([1], [], 2)
    assert [(e.offset, e.reason) for e in found.ordered if not e.packed] == [(0, "torn_batch")]
    assert [(s.offset, s.reason, s.about) for s in found.skipped] == [(0, "torn_batch", "batch=b records=1 of=2")]


async def test_the_end_of_the_log_is_read_once_more_before_a_batch_is_given_up(at: list[float]) -> None:
    """A process stood still between its fetch and what it made of it: the rest came meanwhile."""
    unfinished, log = Unfinished(), ALog([("b", 0, 2)], 10)
    await looked_at(unfinished, log)
    chunk = await log.fetch(0)
    at[0] += 3600
    log.records.append(record(1, ("b", 1, 2)))
    found = await assemble(unfinished, QUEUE, chunk, log.fetch)
    assert not found.skipped and [e.offset for e in found.ordered if e.packed] == [0]


async def test_a_later_record_decides_at_once() -> None:
    log = ALog([("b", 0, 2), None], 10)
    log.records[1] = Record("lw.q.orders", 0, 1, THEN_MS + 30_001, None, log.records[1].value, None)
    assert rows(await looked_at(Unfinished(), log)) == ([1], [], 2)


async def test_what_can_not_be_read_is_skipped_and_named() -> None:
    log = ALog([None, None], 10)
    log.records[0] = Record("lw.q.orders", 0, 0, THEN_MS, None, encode(Message(b"m", sender="a"))[:7], None)
    found = await looked_at(Unfinished(), log)
    assert [(e.offset, bool(e.packed), e.reason) for e in found.ordered] == [(0, False, "undecodable"), (1, True, "")]
    assert found.next_offset == 2 and [(s.offset, s.reason) for s in found.skipped] == [(0, "undecodable")]
