"""The count of a redrive task is exact, whatever kills its runner, and however often."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.rules.queue import Queue
from engine.runtime import failpoints
from engine.runtime.failpoints import arm, disarm
from engine.shapes import QueueSettings, SendEntry, TaskInfo
from schemas.records import RedrivePolicy, TaskRecord
from schemas.vocabulary import TaskStatus
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

LETTERS = 600


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lost mover is waited for 1 s, not 30."""
    for module in ("window.window", "move.mover", "receive.poll", "receive.handles.leases", "move.redrive"):
        monkeypatch.setattr(f"engine.{module}.MOVER_LEASE_MS", 1000)
    yield
    disarm()


async def with_letters(engine: Engine) -> None:
    await engine.create_queue(BY, "dlq", QueueSettings(partitions=2))
    await engine.create_queue(BY, "q", QueueSettings(partitions=2, redrive_policy=RedrivePolicy("dlq", 5)))
    for at in range(0, LETTERS, 100):
        await engine.send(BY, "q", [SendEntry(b"%d" % n) for n in range(at, at + 100)])
    killed = 0
    while killed < LETTERS:
        got = await receive(engine, "q", max=100, wait_ms=2000)
        assert {r.status for r in await engine.kill(BY, "q", [d.handle for d in got])} == {"ok"}
        killed += len(got)


async def ended(engine: Engine, id: str, within_s: float = 60) -> TaskInfo:
    async def over() -> bool:
        return (await engine.get_task(BY, id)).status != TaskStatus.RUNNING

    await eventually(over, within_s)
    return await engine.get_task(BY, id)


@pytest.mark.long
@pytest.mark.parametrize(
    ("point", "times"),
    [("redrive.claimed", 3), ("redrive.saved", 1), ("move.held", 40), ("move.loaded", 40), ("move.after_settle", 40)],
)
async def test_a_runner_that_dies_again_and_again_counts_each_letter_once(own_engine: Engine, point: str, times: int) -> None:
    async def died() -> bool:
        return failpoints._armed[point].seen >= times

    await with_letters(own_engine)
    # So slowly that it writes three times how far it got.
    task = await own_engine.redrive(BY, "dlq", None, None, 200)
    for _ in range(3):
        # The runner begins anew; what it had not written down is not in the record.
        arm(f"{point}=raise*{times}")
        await eventually(died, within_s=30)
    disarm()
    found = await ended(own_engine, task.id)
    assert (found.status, found.moved, found.failed, found.total) == ("completed", LETTERS, 0, LETTERS)
    assert len(await drain(own_engine, "q", expect=LETTERS)) == LETTERS


async def test_what_others_settled_is_not_counted(own_engine: Engine) -> None:
    await with_letters(own_engine)
    got = await receive(own_engine, "dlq", max=50, wait_ms=1000)
    await ack(own_engine, "dlq", got)
    arm("redrive.saved=raise*1")
    found = await ended(own_engine, (await own_engine.redrive(BY, "dlq", None, None, 0)).id)
    assert (found.moved, found.failed) == (LETTERS - len(got), 0)


async def test_another_worker_takes_the_count_over_also_when_redis_was_lost(make_engine: MakeEngine, stack: Services) -> None:
    engine, other = await make_engine(), await make_engine()
    await with_letters(engine)
    task = await engine.redrive(BY, "dlq", None, None, 300)

    async def some_moved() -> bool:
        return (await engine.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    await eventually(some_moved)
    for worker in (engine, other):  # as a killed one: nothing is written down
        for running in worker.parts.administration.tasks._running.values():
            running.cancel()
    await drained(engine)
    wipe(stack, engine)
    found = await ended(other, task.id)
    assert (found.moved, found.failed) == (LETTERS, 0)


async def test_what_a_paused_runner_settles_after_its_successor_has_read_the_journal_counts(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_letters(own_engine)
    progress = own_engine.parts.administration.tasks._progress
    read, reads = progress.moved_beyond, 0

    async def too_early(queue: Queue, task: TaskRecord) -> list[set[int]]:
        nonlocal reads
        reads += 1
        # The second runner reads before the first one has settled what it was about to.
        return [set() for _ in task.next_offsets] if reads == 2 else await read(queue, task)

    monkeypatch.setattr(progress, "moved_beyond", too_early)
    arm("move.after_settle=raise*1")
    found = await ended(own_engine, (await own_engine.redrive(BY, "dlq", None, None, 300)).id)
    assert (found.moved, found.failed) == (LETTERS, 0) and reads >= 3


@pytest.mark.parametrize("fails", [False, True], ids=["killed", "failing"])
async def test_a_cancelled_task_counts_what_its_runner_had_not_written_down(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    await with_letters(own_engine)
    tasks = own_engine.parts.administration.tasks
    task = await own_engine.redrive(BY, "dlq", None, None, 200)

    async def some_moved() -> bool:
        return (await own_engine.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    if fails:  # while it has moved more than its record says

        async def no_answer(*_: Any) -> Any:
            raise LogUnavailable("Kafka is away")

        monkeypatch.setattr(tasks, "_save", no_answer)
        await eventually(some_moved)
    else:
        await eventually(some_moved)
        for running in tasks._running.values():
            running.cancel()
    found = await own_engine.cancel_task(BY, task.id)
    moved = LETTERS - (await own_engine.get_queue(BY, "dlq")).tags[0].backlog
    assert (found.status, found.moved, found.total) == ("cancelled", moved, moved) and moved >= 100
    assert len(await drain(own_engine, "q")) >= moved  # what a killed runner was moving may be in both


async def test_a_task_that_fails_counts_what_a_dead_runner_had_not_written_down(make_engine: MakeEngine) -> None:
    engine, other = await make_engine(), await make_engine()
    await with_letters(engine)
    await engine.create_queue(BY, "elsewhere", QueueSettings(partitions=1))
    task = await engine.redrive(BY, "dlq", "elsewhere", None, 200)

    async def some_moved() -> bool:
        return (await engine.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    await eventually(some_moved)
    for worker in (engine, other):
        await worker.parts.administration.tasks.stop()
    moved = (await engine.get_queue(BY, "elsewhere")).tags[0].backlog
    await engine.delete_queue(BY, "elsewhere")
    await other.parts.administration.tasks.start()
    found = await ended(other, task.id)
    assert (found.status, found.moved) == ("failed", moved) and moved >= 100


async def test_a_kafka_that_is_away_for_a_while_makes_no_letter_fail(own_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await with_letters(own_engine)
    log, append, refused = own_engine.log, own_engine.log.append, 0

    async def no_answer(topic: str, *rest: Any, **more: Any) -> Any:
        nonlocal refused
        if ".q.q" in topic and refused < 30:
            refused += 1
            raise LogUnavailable("Kafka is away")
        return await append(topic, *rest, **more)

    monkeypatch.setattr(log, "append", no_answer)
    found = await ended(own_engine, (await own_engine.redrive(BY, "dlq", None, None, 0)).id)
    assert refused == 30
    assert (found.status, found.moved, found.failed) == ("completed", LETTERS, 0)
    assert len(await drain(own_engine, "q", expect=LETTERS)) == LETTERS


async def test_no_letter_stays_behind_that_was_moved_just_before_redis_was_lost(
    own_engine: Engine, stack: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_letters(own_engine)
    await drained(own_engine)
    gate = asyncio.Event()

    async def no_drain(*_: Any) -> int:
        await gate.wait()
        return 0

    async def some_moved() -> bool:
        return (await own_engine.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    with monkeypatch.context() as until_lost:
        # The journal gets nothing of the letters until Redis is lost, as beside a slow disk.
        for loader in own_engine.parts.units.owner.owned.values():
            if loader.queue.name == "dlq":
                until_lost.setattr(loader.outbox, "drain", no_drain)
        task = await own_engine.redrive(BY, "dlq", None, None, 0)
        await eventually(some_moved)
        await asyncio.sleep(2)  # it writes after a second how far it got
        done = await receive(own_engine, "q", max=50, wait_ms=1000)
        await ack(own_engine, "q", done)
        await asyncio.sleep(1)  # the journal has these
        wipe(stack, own_engine)
    gate.set()
    found = await ended(own_engine, task.id)
    assert (found.status, found.moved, found.failed) == ("completed", LETTERS, 0)
    bodies = [d.message.body.decode() for d in done] + await drain(own_engine, "q", expect=LETTERS - len(done))
    assert sorted(bodies, key=int) == [str(n) for n in range(LETTERS)]
    assert not await receive(own_engine, "q", max=100, wait_ms=500)
    assert not await receive(own_engine, "dlq", max=100, wait_ms=500)


async def test_what_is_moved_is_not_in_the_journal_while_redis_is_empty(own_engine: Engine, stack: Services) -> None:
    await own_engine.create_queue(BY, "dlq", QueueSettings(partitions=1))
    queue, progress = own_engine.catalog.queues["dlq"], own_engine.parts.administration.tasks._progress
    lives = {0: await progress.life(queue, 0)}
    await progress.journaled(queue, lives)
    wipe(stack, own_engine)
    with pytest.raises(LogUnavailable, match="was lost before the journal had"):
        await progress.journaled(queue, lives)
