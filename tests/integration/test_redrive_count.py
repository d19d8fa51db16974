"""The count of a redrive task is exact, whatever kills its runner, and however often."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.log.shapes import Chunk
from engine.move import mover
from engine.move.tasks.progress import Moved
from engine.rules.queue import Queue
from engine.shapes import SendEntry
from runtime import failpoints
from runtime.deadline import state_until
from runtime.failpoints import arm, disarm
from schemas.records import Message, TaskRecord
from schemas.records.settings import QueueSettings, RedrivePolicy
from state.keys import Unit
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, ended, eventually, receive, wait_less_for_movers
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

LETTERS = 600


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lost mover is waited for 1 s, not 30."""
    wait_less_for_movers(monkeypatch, 1000)
    yield
    disarm()


async def with_letters(engine: Engine) -> None:
    await engine.queues.create_queue(BY, "dlq", QueueSettings(partitions=2))
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2, redrive_policy=RedrivePolicy("dlq", 5)))
    for at in range(0, LETTERS, 100):
        await engine.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(at, at + 100)])
    killed = 0
    while killed < LETTERS:
        got = await receive(engine, "q", max=100, wait_ms=2000)
        assert {r.status for r in await engine.messages.kill(BY, "q", [d.handle for d in got])} == {"ok"}
        killed += len(got)


@pytest.mark.long
@pytest.mark.parametrize(
    ("point", "times"),
    [("redrive.claimed", 3), ("redrive.saved", 1), ("move.held", 40), ("move.loaded", 40), ("move.after_settle", 40)],
)
async def test_a_runner_that_dies_again_and_again_counts_each_letter_once(
    own_engine: Engine, point: str, times: int
) -> None:
    async def died() -> bool:
        return failpoints._armed[point].seen >= times

    await with_letters(own_engine)
    # So slowly that it writes three times how far it got.
    task = await own_engine.tasks.redrive(BY, "dlq", None, None, 200)
    for _ in range(3):
        # The runner begins anew; what it had not written down is not in the record.
        arm(f"{point}=raise*{times}")
        await eventually(died, within_s=30)
    disarm()
    found = await ended(own_engine, task)
    assert (found.status, found.moved, found.failed, found.total) == ("completed", LETTERS, 0, LETTERS)
    assert len(await drain(own_engine, "q", expect=LETTERS)) == LETTERS


async def test_what_others_settled_is_not_counted(own_engine: Engine) -> None:
    await with_letters(own_engine)
    got = await receive(own_engine, "dlq", max=50, wait_ms=1000)
    await ack(own_engine, "dlq", got)
    arm("redrive.saved=raise*1")
    found = await ended(own_engine, await own_engine.tasks.redrive(BY, "dlq", None, None, 0))
    assert (found.moved, found.failed) == (LETTERS - len(got), 0)


async def test_another_worker_takes_the_count_over_also_when_redis_was_lost(
    make_engine: MakeEngine, stack: Services
) -> None:
    engine, other = await make_engine(), await make_engine()
    await with_letters(engine)
    task = await engine.tasks.redrive(BY, "dlq", None, None, 300)

    async def some_moved() -> bool:
        return (await engine.queues.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    await eventually(some_moved)
    for worker in (engine, other):  # as a killed one: nothing is written down
        for running in worker.parts.administration.tasks._running.values():
            running.cancel()
    await drained(engine)
    wipe(stack, engine)
    found = await ended(other, task)
    assert (found.moved, found.failed) == (LETTERS, 0)


async def test_what_a_paused_runner_settles_after_its_successor_has_read_the_journal_counts(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_letters(own_engine)
    progress = own_engine.parts.administration.tasks._runner._progress
    read, reads, second = progress.moved_beyond, 0, 0.0

    async def too_early(queue: Queue, task: TaskRecord) -> Moved:
        nonlocal reads, second
        reads += 1
        second = asyncio.get_running_loop().time() if reads == 2 else second
        # The first runner settles what it was about to half a second after the second one reads.
        if second and asyncio.get_running_loop().time() < second + 0.5:
            return [{} for _ in task.next_offsets]
        return await read(queue, task)

    monkeypatch.setattr(progress, "moved_beyond", too_early)
    task = await own_engine.tasks.redrive(BY, "dlq", None, None, 300)
    arm("move.after_settle=raise*250")  # before it has written what it moved in this second
    found = await ended(own_engine, task)
    assert (found.moved, found.failed) == (LETTERS, 0) and reads >= 3


@pytest.mark.parametrize("fails", [False, True], ids=["killed", "failing"])
async def test_a_cancelled_task_counts_what_its_runner_had_not_written_down(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    await with_letters(own_engine)
    tasks = own_engine.parts.administration.tasks
    task = await own_engine.tasks.redrive(BY, "dlq", None, None, 200)

    async def some_moved() -> bool:
        return (await own_engine.queues.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    if fails:  # while it has moved more than its record says

        async def no_answer(*_: Any) -> Any:
            raise LogUnavailable("Kafka is away")

        monkeypatch.setattr(tasks._runner, "_save", no_answer)
        await eventually(some_moved)
    else:
        await eventually(some_moved)
        for running in tasks._running.values():
            running.cancel()
    found = await own_engine.tasks.cancel_task(BY, task.id)
    moved = LETTERS - (await own_engine.queues.get_queue(BY, "dlq")).tags[0].backlog
    assert (found.status, found.moved, found.total) == ("cancelled", moved, moved) and moved >= 100
    assert len(await drain(own_engine, "q")) >= moved  # what a killed runner was moving may be in both


async def test_a_task_that_fails_counts_what_a_dead_runner_had_not_written_down(make_engine: MakeEngine) -> None:
    engine, other = await make_engine(), await make_engine()
    await with_letters(engine)
    await engine.queues.create_queue(BY, "elsewhere", QueueSettings(partitions=1))
    task = await engine.tasks.redrive(BY, "dlq", "elsewhere", None, 200)

    async def some_moved() -> bool:
        return (await engine.queues.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    await eventually(some_moved)
    for worker in (engine, other):
        await worker.parts.administration.tasks.stop()
    copies = (await engine.queues.get_queue(BY, "elsewhere")).tags[0].backlog
    await engine.queues.delete_queue(BY, "elsewhere")
    await other.parts.administration.tasks.start()
    found = await ended(other, task)
    # A runner may be stopped between a copy and the end of the letter, which then is still there.
    moved = LETTERS - (await engine.queues.get_queue(BY, "dlq")).tags[0].backlog
    assert (found.status, found.moved) == ("failed", moved) and 100 <= moved <= copies


async def test_a_kafka_that_is_away_for_a_while_makes_no_letter_fail(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_letters(own_engine)
    log, append, refused = own_engine.log, own_engine.log.append, 0

    async def no_answer(topic: str, *rest: Any, **more: Any) -> Any:
        nonlocal refused
        if ".q.q" in topic and refused < 30:
            refused += 1
            raise LogUnavailable("Kafka is away")
        return await append(topic, *rest, **more)

    monkeypatch.setattr(log, "append", no_answer)
    found = await ended(own_engine, await own_engine.tasks.redrive(BY, "dlq", None, None, 0))
    assert refused == 30
    assert (found.status, found.moved, found.failed) == ("completed", LETTERS, 0)
    assert len(await drain(own_engine, "q", expect=LETTERS)) == LETTERS


@pytest.mark.parametrize("kind", ["dead", "moved"])
async def test_no_letter_is_left_out_because_its_claim_expired(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """A busy machine: when the last of a hundred have their turn, they are held no longer."""
    copy, slow = mover._moved, 0

    def slowly(*held: Any) -> Message:
        nonlocal slow
        if held[-1] == kind and slow < 200:
            slow += 1
            time.sleep(0.02)
        return copy(*held)

    monkeypatch.setattr(mover, "_moved", slowly)
    await with_letters(own_engine)
    found = await ended(own_engine, await own_engine.tasks.redrive(BY, "dlq", None, None, 0))
    assert "expired before it could be moved; it will be retried" in caplog.text
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
        return (await own_engine.queues.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    with monkeypatch.context() as until_lost:
        # The journal gets nothing of the letters until Redis is lost, as beside a slow disk.
        for loader in own_engine.parts.units.owner.owned.values():
            if loader.queue.name == "dlq":
                until_lost.setattr(loader.outbox, "drain", no_drain)
        task = await own_engine.tasks.redrive(BY, "dlq", None, None, 0)
        await eventually(some_moved)
        await asyncio.sleep(2)  # it writes after a second how far it got
        done = await receive(own_engine, "q", max=50, wait_ms=1000)
        await ack(own_engine, "q", done)
        await asyncio.sleep(1)  # the journal has these
        wipe(stack, own_engine)
    gate.set()
    found = await ended(own_engine, task)
    assert (found.status, found.moved, found.failed) == ("completed", LETTERS, 0)
    bodies = [d.message.body.decode() for d in done] + await drain(own_engine, "q", expect=LETTERS - len(done))
    assert sorted(bodies, key=int) == [str(n) for n in range(LETTERS)]
    assert not await receive(own_engine, "q", max=100, wait_ms=500)
    assert not await receive(own_engine, "dlq", max=100, wait_ms=500)


async def test_what_is_moved_is_not_in_the_journal_while_redis_is_empty(own_engine: Engine, stack: Services) -> None:
    await own_engine.queues.create_queue(BY, "dlq", QueueSettings(partitions=1))
    queue, progress = own_engine.catalog.queues["dlq"], own_engine.parts.administration.tasks._runner._progress
    lives = {0: await progress.life(queue, 0)}
    await progress.journaled(queue, lives)
    wipe(stack, own_engine)
    with pytest.raises(LogUnavailable, match="was lost before the journal had"):
        await progress.journaled(queue, lives)


async def test_no_consumer_gets_a_letter_whose_copy_a_lost_runner_has_made(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tasks.redrive_step", "copies"):
        monkeypatch.setattr(f"engine.move.{module}.MOVER_LEASE_MS", 4_000)
    await with_letters(own_engine)
    loop, tasks = asyncio.get_running_loop(), own_engine.parts.administration.tasks

    async def lost() -> bool:
        return failpoints._armed["move.before_settle"].seen >= 50

    arm("move.before_settle=raise*50")
    task = await own_engine.tasks.redrive(BY, "dlq", None, None, 0)
    await eventually(lost)
    held_since = loop.time()
    await tasks.stop()
    moved, seen = set(await drain(own_engine, "q", patience_ms=300)), dict[str, str]()
    while loop.time() < held_since + 5.5:  # a task may take it over from 4 s on, a consumer from 8 s on
        for got in await receive(own_engine, "dlq", max=100, wait_ms=200, lease_ms=60_000):
            seen[got.message.body.decode()] = got.handle
    assert moved and not moved & set(seen)
    handles = list(seen.values())
    for at in range(0, len(handles), 100):
        await own_engine.messages.release(BY, "dlq", handles[at : at + 100], 0)
    await tasks.start()
    found = await ended(own_engine, task)
    assert (found.status, found.moved, found.failed) == ("completed", LETTERS, 0)


async def test_a_broker_that_answers_with_an_older_end_ends_no_task(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_letters(own_engine)
    log, fetch, older = own_engine.log, own_engine.log.fetch, 0

    async def fetched(topic: str, partition: int, offset: int, *rest: Any, **more: Any) -> Chunk:
        nonlocal older
        if ".q.dlq" in topic and offset > 50 and older < 5:
            older += 1
            return Chunk([], offset, True)
        return await fetch(topic, partition, offset, *rest, **more)

    monkeypatch.setattr(log, "fetch", fetched)
    found = await ended(own_engine, await own_engine.tasks.redrive(BY, "dlq", None, None, 0))
    assert older == 5
    assert (found.status, found.moved, found.failed) == ("completed", LETTERS, 0)


async def test_a_letter_behind_more_than_a_window_takes_ends_the_task(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine(window_messages=10)
    await engine.queues.create_queue(BY, "dlq.fifo", QueueSettings(fifo=True, partitions=1))
    await engine.queues.create_queue(
        BY, "q.fifo", QueueSettings(fifo=True, partitions=1, redrive_policy=RedrivePolicy("dlq.fifo", 5))
    )
    for n in range(60):
        await engine.messages.send(BY, "q.fifo", [SendEntry(b"%d" % n, group=f"g{n}", dedup_id=f"d{n}")])
    killed = 0
    while killed < 60:
        got = await receive(engine, "q.fifo", max=10, wait_ms=2000)
        assert {r.status for r in await engine.messages.kill(BY, "q.fifo", [d.handle for d in got])} == {"ok"}
        killed += len(got)
    part = (engine.catalog.queues["dlq.fifo"].topic, 0)

    async def all_there() -> bool:
        return (await engine.log.end_offsets([part]))[part] == 60

    await eventually(all_there)
    incarnation = engine.catalog.queues["dlq.fifo"].incarnation
    with monkeypatch.context() as patch:
        patch.setattr("engine.move.tasks.redrive_step.WAIT_S", 2.0)
        found = await ended(
            engine, (await engine.tasks.redrive(BY, "dlq.fifo", None, None, 0, ids=[f"{incarnation}/0/59"])), 30
        )
    assert (found.status, found.moved) == ("failed", 0)
    assert "/0/59 lies behind more messages of queue 'dlq.fifo' than its window takes" in found.failure
    found = await ended(engine, await engine.tasks.redrive(BY, "dlq.fifo", None, None, 0))
    assert (found.status, found.moved) == ("completed", 60)


async def test_a_cancelled_task_is_counted_when_kafka_is_back(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.move.tasks.redrive.COUNT_AGAIN_S", 0.2)
    await with_letters(own_engine)
    tasks = own_engine.parts.administration.tasks
    task = await own_engine.tasks.redrive(BY, "dlq", None, None, 200)

    async def some_moved() -> bool:
        return (await own_engine.queues.get_queue(BY, "dlq")).tags[0].backlog < LETTERS - 100

    await eventually(some_moved)
    for running in tasks._running.values():
        running.cancel()
    read, away = tasks._runner._progress.moved_beyond, 2

    async def moved_beyond(queue: Queue, task: TaskRecord) -> Moved:
        nonlocal away
        away -= 1
        if away >= 0:
            raise LogUnavailable("Kafka is away")
        return await read(queue, task)

    monkeypatch.setattr(tasks._runner._progress, "moved_beyond", moved_beyond)
    await own_engine.tasks.cancel_task(BY, task.id)
    moved = LETTERS - (await own_engine.queues.get_queue(BY, "dlq")).tags[0].backlog

    async def counted() -> bool:
        found = await own_engine.tasks.get_task(BY, task.id)
        return (found.status, found.moved, found.total) == ("cancelled", moved, moved)

    await eventually(counted)
    assert moved >= 100


async def test_a_life_that_another_worker_begins_meanwhile_is_another(
    own_engine: Engine, stack: Services, monkeypatch: Any
) -> None:
    await own_engine.queues.create_queue(BY, "dlq", QueueSettings(partitions=1))
    queue, progress, store = (
        own_engine.catalog.queues["dlq"],
        own_engine.parts.administration.tasks._runner._progress,
        own_engine.store,
    )
    life, drained_seq = await progress.life(queue, 0), store.upkeep.drained_seq
    wipe(stack, own_engine)

    async def rebuilt_behind(unit: Unit) -> tuple[int, int]:
        found = await drained_seq(unit)
        await progress._window._recovery.recover(queue, state_until())
        return found

    with monkeypatch.context() as patch:
        patch.setattr(store.upkeep, "drained_seq", rebuilt_behind)
        assert await progress.life(queue, 0) != life
