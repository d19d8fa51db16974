"""A step that fails by a bug (`raise`), at each failpoint: the next round finishes the work, each
message is there once.

The same points with a killed process: tests/acceptance/test_failpoints.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.errors import QueueNotFound
from engine.settings import BadSetting, Settings
from engine.shapes import Delivery
from runtime import failpoints
from runtime.failpoints import POINTS, FailpointReached, arm, disarm, reached
from schemas.records.settings import DAY_MS, QueueSettings, RedrivePolicy
from schemas.vocabulary import TaskStatus
from tests.clock import ScriptClock
from tests.integration.drive import BY, ack, drain, eventually, receive, send, wait_less_for_movers
from tests.integration.test_far import a_step
from tests.integration.test_keeping import kept_ms
from tests.integration.test_rebuild import drained, wipe
from tests.integration.test_transactions import GROUP, prepare
from tests.services import Services

MOVE_MS = 800


@pytest.fixture(autouse=True)
def disarmed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is armed before and after; a lost mover is waited for 0.8 s, not 30."""
    wait_less_for_movers(monkeypatch, MOVE_MS)
    monkeypatch.setattr("engine.transactions.finisher.TAKE_UP_MS", MOVE_MS)
    monkeypatch.setattr("engine.move.tasks.outcomes.PAGE", 4)
    yield
    disarm()


def seen(name: str) -> int:
    """How often an armed point was reached."""
    return failpoints._armed[name].seen


async def with_letters(engine: Engine, count: int) -> None:
    """Queue q with a dead-letter queue, and `count` letters in that."""
    await engine.queues.create_queue(BY, "dlq", QueueSettings(partitions=1))
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2, redrive_policy=RedrivePolicy("dlq", 5)))
    await send(engine, "q", *map(str, range(count)))
    got = await receive(engine, "q", max=100)
    if count:
        await engine.messages.kill(BY, "q", [d.handle for d in got])


async def at_rest(engine: Engine, queue: str) -> bool:
    tag = (await engine.queues.get_queue(BY, queue)).tags[0]
    return tag.backlog == 0


async def a_move(engine: Engine, stack: Services, point: str) -> None:
    await with_letters(engine, 0)
    await send(engine, "q", "m")
    (got,) = await receive(engine, "q")
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await engine.messages.kill(BY, "q", [got.handle])

    async def moved() -> bool:
        assert await receive(engine, "q") == [], "a dying message was leased"
        return await at_rest(engine, "q")

    await eventually(moved)
    assert await drain(engine, "dlq", expect=1) == ["m"]


async def a_redrive(engine: Engine, stack: Services, point: str) -> None:
    await with_letters(engine, 6)
    arm(f"{point}=raise*1")
    task = await engine.tasks.redrive(BY, "dlq", None, None, 0)

    async def completed() -> bool:
        return (await engine.tasks.get_task(BY, task.id)).status == TaskStatus.COMPLETED

    await eventually(completed)
    assert sorted(await drain(engine, "q", expect=6)) == list("012345")
    assert await drain(engine, "dlq", patience_ms=100) == []


async def a_drain(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(engine, "q", *map(str, range(10)))
    got = await receive(engine, "q", max=10, lease_ms=2000)
    await engine.messages.release(BY, "q", [d.handle for d in got[:4]], 0)
    await drained(engine)
    arm(f"{point}=raise*1")
    # Not the first ones: a floor that rises over them would tell of them too.
    await ack(engine, "q", got[4:])

    async def failed() -> bool:
        return seen(point) >= 1

    await eventually(failed)
    await drained(engine)
    wipe(stack, engine)
    assert sorted(await drain(engine, "q", patience_ms=2500)) == sorted(d.message.body.decode() for d in got[:4])


async def a_rebuild(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(engine, "q", *map(str, range(10)))
    await ack(engine, "q", await receive(engine, "q", max=6))
    await drained(engine)
    arm(f"{point}=raise*1")
    wipe(stack, engine)
    left: list[str] = []

    async def rebuilt() -> bool:
        with contextlib.suppress(Exception):
            left.extend(await drain(engine, "q", patience_ms=500))
        return len(left) >= 4

    await eventually(rebuilt)
    assert sorted(left) == list("6789")


async def a_send(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await send(engine, "q", "unknown")
    await send(engine, "q", "known")
    # No answer means that the outcome is unknown: here the log has it, so it is delivered, and
    # once.
    assert sorted(await drain(engine, "q", expect=2)) == ["known", "unknown"]


async def a_creation(engine: Engine, stack: Services, point: str) -> None:
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await send(engine, "q", "a", "b")
    assert sorted(await drain(engine, "q", expect=2)) == ["a", "b"]


async def a_deletion(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await send(engine, "q", "old")
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await engine.queues.delete_queue(BY, "q")
    with pytest.raises(QueueNotFound):
        await send(engine, "q", "nobody")
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await send(engine, "q", "new")
    assert await drain(engine, "q", expect=1) == ["new"]


async def a_change(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(delay_ms=0))
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await engine.queues.set_queue(BY, "q", QueueSettings(delay_ms=1))
    assert (await engine.queues.get_queue(BY, "q")).delay_ms == 0
    await engine.queues.set_queue(BY, "q", QueueSettings(delay_ms=2))
    assert (await engine.queues.get_queue(BY, "q")).delay_ms == 2


async def a_purge(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(engine, "q", *"abc")
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await engine.queues.purge(BY, "q")
    await engine.queues.purge(BY, "q")
    await send(engine, "q", "new")
    assert await drain(engine, "q", expect=1) == ["new"]
    part = (engine.catalog.queues["q"].topic, 0)
    assert await engine.log.start_offsets([part]) == {part: 3}


async def a_trim(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(engine, "q", *"abc")
    queue, kept = engine.catalog.queues["q"], engine.parts.units.window.topic_retention
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await kept._delete_below(queue, 0, 1)
    await kept._delete_below(queue, 0, 1)
    assert await engine.log.start_offsets([(queue.topic, 0)]) == {(queue.topic, 0): 1}


async def a_retention(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await engine.queues.set_queue(BY, "q", QueueSettings(retention_ms=10 * DAY_MS))
    assert (await engine.queues.get_queue(BY, "q")).retention_ms == 4 * DAY_MS
    await engine.queues.set_queue(BY, "q", QueueSettings(retention_ms=10 * DAY_MS))
    assert (await engine.queues.get_queue(BY, "q")).retention_ms == 10 * DAY_MS
    assert await kept_ms(engine, "q") > 10 * DAY_MS


async def a_snapshot(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=60_000))
    await send(engine, "q", *map(str, range(10)))
    await ack(engine, "q", await receive(engine, "q", max=6))
    await drained(engine)
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await engine.parts.base.snapshots.run_once()
    await engine.parts.base.snapshots.run_once()
    wipe(stack, engine)
    assert sorted(await drain(engine, "q", expect=4)) == list("6789")


async def a_transaction(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    if point in ("transaction.before_prepare", "transaction.prepared"):
        arm(f"{point}=raise*1")
        with pytest.raises(FailpointReached):
            await prepare(engine, "q", "nobody knows its id")
    half = await prepare(engine, "q", "m", "n", immunity_ms=0)
    if point == "transaction.before_check":
        arm(f"{point}=raise*1")
        assert [check.transaction.id for check in await engine.transactions.check(BY, GROUP, 10, 10_000)] == [half.id]
    elif point not in failpoints._armed:
        arm(f"{point}=raise*1")
        with pytest.raises(FailpointReached):
            await engine.transactions.commit(BY, half.id)
    if point in (
        "transaction.before_prepare",
        "transaction.prepared",
        "transaction.before_decide",
        "transaction.before_check",
    ):
        await engine.transactions.commit(BY, half.id)  # as a client that had no answer; else nobody asks again

    async def carried_out() -> bool:
        return len((await engine.transactions.get_transaction(BY, half.id)).message_ids) == 2

    await eventually(carried_out)
    assert await drain(engine, "q", expect=2, patience_ms=1_000) == ["m", "n"]
    assert len((await engine.transactions.commit(BY, half.id)).message_ids) == 2
    assert await drain(engine, "q", patience_ms=300) == []


async def a_delay(engine: Engine, stack: Services, point: str) -> None:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    with pytest.MonkeyPatch.context() as patch:
        await a_step(engine, ScriptClock(patch), point)


SCENARIOS: dict[str, Callable[[Engine, Services, str], Awaitable[None]]] = {
    "move": a_move,
    "redrive": a_redrive,
    "drain": a_drain,
    "rebuild": a_rebuild,
    "send": a_send,
    "change": a_change,
    "purge": a_purge,
    "trim": a_trim,
    "keep": a_retention,
    "snapshot": a_snapshot,
    "create": a_creation,
    "delete": a_deletion,
    "transaction": a_transaction,
    "file": a_delay,
    "bring": a_delay,
}


@pytest.mark.parametrize("point", POINTS)
async def test_a_step_that_fails_is_made_good_by_the_next_round(
    own_engine: Engine, stack: Services, point: str
) -> None:
    await SCENARIOS[point.partition(".")[0]](own_engine, stack, point)
    assert seen(point) >= 1, "the scenario never came to the point"


@pytest.mark.parametrize("lost", [False, True], ids=["", "and Redis loses everything"])
@pytest.mark.parametrize("point", ["move.appended", "move.before_settle"])
async def test_a_queue_that_is_its_own_dead_letter_queue_gets_a_letter_once(
    own_engine: Engine, stack: Services, point: str, lost: bool
) -> None:
    """The copy comes to the unit of its source, or to another one of the same queue."""
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await own_engine.queues.set_queue(BY, "q", QueueSettings(redrive_policy=RedrivePolicy("q", 5)))
    await send(own_engine, "q", *map(str, range(4)))
    dying = {d.id: d for d in await receive(own_engine, "q", max=4)}
    arm(f"{point}=raise*1")
    with pytest.raises(FailpointReached):
        await own_engine.messages.kill(BY, "q", [d.handle for d in dying.values()])
    assert seen(point) >= 1
    if lost:
        await drained(own_engine)
        wipe(stack, own_engine)
    letters: list[Delivery] = []

    async def settled() -> bool:
        letters.extend(await receive(own_engine, "q", max=10, wait_ms=200, lease_ms=60_000))
        tag = (await own_engine.queues.get_queue(BY, "q")).tags[0]
        return (tag.backlog, tag.leased) == (4, 4)

    await eventually(settled)
    origins = {d.message.origin.from_id: d for d in letters if d.message.origin is not None}
    assert len(letters) == len(origins) == 4, "a message came that was dying, or a copy twice"
    assert {key: d.message.body for key, d in origins.items()} == {key: d.message.body for key, d in dying.items()}
    await ack(own_engine, "q", letters)
    assert await drain(own_engine, "q", patience_ms=1_000) == []


def test_a_point_with_a_file_fires_once_and_only_while_the_file_is_there(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    arm(f"send.appended=raise@{mark}")
    reached("send.appended")
    mark.touch()
    with pytest.raises(FailpointReached):
        reached("send.appended")
    reached("send.appended")
    assert not mark.exists()


def test_a_point_with_a_number_fires_at_that_time_only() -> None:
    arm("send.appended=raise*2")
    reached("send.appended")
    with pytest.raises(FailpointReached):
        reached("send.appended")
    reached("send.appended")
    reached("move.held")


@pytest.mark.parametrize(
    "text", ["send.appended", "send.appended=explode", "no.such=kill", "send.appended=sleep", "send.appended=kill*x"]
)
def test_a_failpoint_that_can_not_be_read_stops_the_start(text: str) -> None:
    with pytest.raises(BadSetting, match="FAILPOINTS"):
        Settings.read({"LEASEWAY_FAILPOINTS": text})


async def test_a_failpoint_may_make_the_worker_stand_still(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings())
    arm("send.before_answer=sleep:150*1")
    began = asyncio.get_running_loop().time()
    await send(own_engine, "q", "m")
    assert asyncio.get_running_loop().time() - began >= 0.15
