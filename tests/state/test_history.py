"""What the numbers of queues were: noted by one worker and another, shown by any. That Kafka has it
too is a test of the integration.
"""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from engine.errors import InvalidValue
from engine.queues.overview.overview import History
from engine.queues.overview.rings import SPANS
from engine.queues.overview.sampler import Sampler
from engine.shapes import QueueHistory
from schemas.records import TagRecord
from state.redis.connection import Connection
from state.shared.history import HistoryStore
from state.shared.overview import Counted, Done

HOUR = SPANS["hour"]
# The beginning of a chunk of both spans.
BEGIN = 1_795_305_600_000 // 14_400_000 * 14_400_000


def row(ready: int, acked: int = 0) -> Counted:
    return Counted(ready, 0, 0, 0, 0, 0, 0, ready, {0: Done(acked=acked)})


class Unsaved:
    """Redis has lost nothing, and nothing is saved."""

    async def save(self) -> None:
        """Nothing."""

    async def restore(self) -> bool:
        return False


class Case:
    """Queues by incarnation, whose clock stands where it was set."""

    def __init__(self, connection: Connection, made_ms: int) -> None:
        self.prefix = f"h{secrets.token_hex(3)}"
        self.store = HistoryStore(connection, self.prefix)
        self.begin()
        self.now = BEGIN
        clock: Any = self
        self.history = History(self.store, clock)
        self.made_ms = made_ms

    def begin(self) -> None:
        """Another worker counts from now on."""
        unsaved: Any = Unsaved()
        self.sampler = Sampler(self.store, unsaved)

    def now_ms(self) -> int:
        return self.now

    async def count(self, at_ms: int, **queues: Counted) -> None:
        """A round in which these queues were counted."""
        self.now = at_ms
        self.sampler.note(queues)
        await self.sampler.sample(at_ms)

    async def look(self, incarnation: str, span: str = "hour") -> QueueHistory:
        queue: Any = Queue(incarnation, self.made_ms)
        return await self.history.of(queue, span)

    async def last(self, steps: int, incarnation: str = "a", span: str = "hour") -> list[int | None]:
        return (await self.look(incarnation, span)).numbers["ready"][-steps:]


class Queue:
    def __init__(self, incarnation: str, created_at_ms: int) -> None:
        self.name = incarnation
        self.incarnation = incarnation
        self.tags = [TagRecord(0, "default", 0, 0, [0]), TagRecord(4, "new", 0, 0, [0])]
        self.record = self
        self.created_at_ms = created_at_ms


@pytest.fixture
def case(connection: Connection) -> Case:
    return Case(connection, BEGIN - 10**9)


async def test_each_step_has_what_was_counted_and_a_gap_is_none(case: Case) -> None:
    await case.count(BEGIN, a=row(1), b=row(9))
    await case.count(BEGIN + 1_000, a=row(50))
    await case.count(BEGIN + 10_000, a=row(2, acked=7))
    await case.count(BEGIN + 20_000)
    await case.count(BEGIN + 50_000, a=row(5, acked=8))
    assert await case.last(8) == [None, None, 1, 2, 2, None, None, 5]
    assert await case.last(6, "b") == [9, 9, 9, None, None, 9]
    found = await case.look("a")
    assert found.at_ms == [BEGIN + 50_000 - 10_000 * n for n in reversed(range(360))]
    assert (found.step_ms, found.as_of_ms) == (10_000, BEGIN + 50_000)
    assert found.done["default"]["acked"][-6:] == [0, 7, 7, None, None, 8]
    assert found.done["new"]["acked"][-1] == 0
    assert await case.last(3, span="day") == [None, None, 1]
    case.now += 15_000
    assert await case.last(2) == [5, None], "nobody has noted this step yet"
    assert (await case.look("a")).as_of_ms == BEGIN + 50_000


async def test_a_queue_that_was_not_there_has_no_numbers_before(connection: Connection) -> None:
    case = Case(connection, BEGIN + 10_000)
    await case.count(BEGIN, b=row(1))
    await case.count(BEGIN + 10_000, a=row(0))
    await case.count(BEGIN + 20_000)
    assert await case.last(4) == [None, None, 0, 0]


async def test_what_has_not_changed_goes_on_over_chunks_and_what_is_old_goes(case: Case) -> None:
    steps = HOUR.length * (HOUR.kept + 2)
    for n in range(steps):
        changed = {"a": row(n)} if n in (0, 70, 415) else {}
        await case.count(BEGIN + n * 10_000, **changed, b=row(n))
    assert await case.last(360) == [70] * 235 + [415] * 125
    assert await case.last(360, "b") == [*range(steps - 360, steps)]
    keys = await case.store._ask("HKEYS", f"{case.prefix}:history:b")
    assert len([key for key in keys if key.startswith(b"hour:")]) <= HOUR.kept
    noted = await case.store._ask("HKEYS", f"{case.prefix}:history")
    assert len([key for key in noted if key.startswith(b"hour:")]) <= HOUR.kept
    # For longer than the span nothing has changed.
    case.now += HOUR.steps * HOUR.step_ms
    case.begin()
    await case.count(case.now)
    assert await case.last(2) == [None, 415]
    await case.count(case.now + 10_000)
    case.sampler.note({"a": row(7)})
    await case.sampler.sample(case.now + 3_000)
    assert await case.last(2) == [415, 415], "what is counted before a step is not of the time before it"
    await case.count(case.now + 10_000)
    assert await case.last(3) == [415, 415, 7]


async def test_a_queue_that_seldom_changes_leaves_no_chunks_behind(case: Case) -> None:
    # Never at the step that begins a chunk.
    for number in range(3 * HOUR.kept):
        for place in (0, 7):
            at_ms = BEGIN + (number * HOUR.length + place) * 10_000
            await case.count(at_ms, a=row(number if place else max(0, number - 1)))
    fields = await case.store._ask("HKEYS", f"{case.prefix}:history:a")
    assert len([field for field in fields if field.startswith(b"hour:")]) <= HOUR.kept


async def test_what_changed_between_two_workers_is_noted_by_the_second(case: Case) -> None:
    await case.count(BEGIN, a=row(1))
    case.sampler.note({"a": row(2)})
    case.begin()
    case.now += HOUR.length * HOUR.step_ms
    await case.count(case.now, a=row(2))
    assert await case.last(1) == [2]


async def test_another_worker_goes_on(case: Case) -> None:
    await case.count(BEGIN, a=row(1), b=row(1))
    await case.count(BEGIN + 10_000, a=row(2))
    case.begin()
    await case.count(BEGIN + 30_000, a=row(3), b=row(1))
    await case.count(BEGIN + 40_000, a=row(4), c=row(6))
    assert await case.last(5) == [1, 2, None, 3, 4]
    assert await case.last(5, "b") == [1, 1, None, 1, 1]
    # Its first chunk is this worker's, and before that nothing is known of it.
    assert (await case.last(2, "c"))[-1] == 6


async def test_a_queue_that_is_gone_leaves_nothing(case: Case) -> None:
    await case.count(BEGIN, a=row(1))
    await case.sampler.drop(["a"])
    await case.count(BEGIN + 10_000)
    assert await case.store._ask("EXISTS", f"{case.prefix}:history:a") == 0


async def test_a_span_that_there_is_not_is_refused_by_name(case: Case) -> None:
    with pytest.raises(InvalidValue, match="hour, day, given 'week'"):
        await case.look("a", "week")
