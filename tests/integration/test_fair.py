"""Groups on standard queues: a noisy one does not starve the quiet ones. Real Kafka and Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from engine.engine import Engine
from engine.shapes import SendEntry
from schemas.records.settings import QueueSettings
from tests.busy import Turns
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

LEASE = QueueSettings(lease_ms=60_000)
ONE = QueueSettings(lease_ms=60_000, partitions=1)


async def put(engine: Engine, queue: str, group: str | None, bodies: Sequence[str]) -> None:
    for at in range(0, len(bodies), 100):
        await engine.messages.send(BY, queue, [SendEntry(body.encode(), group=group) for body in bodies[at : at + 100]])


async def flood(engine: Engine, queue: str, group: str, count: int) -> None:
    """Sends `count` messages of a group, twenty batches at a time."""
    for at in range(0, count, 2_000):
        await asyncio.gather(*(put(engine, queue, group, [group] * 100) for _ in range(min(2_000, count - at) // 100)))


async def consume(
    engine: Engine, queue: str, work_s: float, until: asyncio.Event, took: list[tuple[str, float]]
) -> None:
    """Takes a message, works, acks; `took` is told its group, and seconds from send to receipt."""
    while not until.is_set():
        for d in await receive(engine, queue, max=1, wait_ms=500):
            took.append((d.message.group or "", time.time() - d.sent_at_ms / 1000))
            await asyncio.sleep(work_s)
            await engine.messages.ack(BY, queue, [d.handle])


@pytest.mark.long
async def test_quiet_groups_are_received_soon_behind_50_000_messages_of_a_noisy_one(own_engine: Engine) -> None:
    """20 consumers with 200 ms of work, 10 groups that send 20 messages each in 8 s. By time alone
    they came after 500 s.
    """
    await own_engine.queues.create_queue(BY, "q", LEASE)
    await flood(own_engine, "q", "noisy", 50_000)
    done, took = asyncio.Event(), list[tuple[str, float]]()

    async def all_came() -> bool:
        return sum(group.startswith("quiet") for group, _ in took) == 200

    async with Turns() as turns, asyncio.TaskGroup() as working:
        for _ in range(20):
            working.create_task(consume(own_engine, "q", 0.2, done, took))
        await asyncio.sleep(6)  # the backlog is searched
        for number in range(20):
            await asyncio.gather(*(put(own_engine, "q", f"quiet{n}", [str(number)]) for n in range(10)))
            await asyncio.sleep(0.4)
        await eventually(all_came)
        done.set()
    quiet = sorted(dwell for group, dwell in took if group.startswith("quiet"))
    noisy = len(took) - len(quiet)
    print(
        f"quiet: {len(quiet)}, p50 {quiet[len(quiet) // 2]:.3f} s, p99 {quiet[-3]:.3f} s, most {quiet[-1]:.3f} "
        f"s; noisy: {noisy}"
    )
    assert len(quiet) == 200 and quiet[-3] < 5 + turns.slack_s()
    assert noisy > 200, "the noisy group starves"


async def test_a_noisy_group_has_all_consumers_when_nothing_else_is_due(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, ONE)
    await put(engine, queue, "a", [str(n) for n in range(60)])
    got = [d for _ in range(3) for d in await receive(engine, queue, max=20)]
    assert sorted(int(d.message.body) for d in got) == list(range(60))
    await put(engine, queue, "a", ["60"])
    await put(engine, queue, "b", ["quiet"])
    await put(engine, queue, None, ["of none"])
    bodies = [d.message.body.decode() for _ in range(3) for d in await receive(engine, queue, max=1)]
    assert sorted(bodies[:2]) == ["of none", "quiet"] and bodies[2] == "60"
    counts = (await engine.queues.get_queue(BY, queue)).tags[0]
    assert counts.leased == 63 and counts.ready == 0


async def test_what_was_set_back_is_ready_and_comes_in_turn_when_its_group_is_quiet_again(
    engine: Engine, queue: str
) -> None:
    await engine.queues.create_queue(BY, queue, ONE)
    await put(engine, queue, "a", ["1", "2", "3"])
    await put(engine, queue, "b", ["x", "y"])
    first = await receive(engine, queue, max=2)
    assert [d.message.body for d in first] == [b"1", b"x"]
    counts = (await engine.queues.get_queue(BY, queue)).tags[0]
    assert (counts.ready, counts.leased) == (3, 2)
    await ack(engine, queue, first)
    (second,) = await receive(engine, queue, max=1)
    assert second.message.body == b"2"
    await engine.messages.release(BY, queue, [second.handle], 0)
    assert sorted(await drain(engine, queue, expect=3)) == ["2", "3", "y"]


async def test_a_fair_queue_survives_the_loss_of_redis(make_engine: MakeEngine, stack: Services) -> None:
    """What is in flight is counted anew, from then on; groups of what is loaded are known."""
    engine = await make_engine(window_messages=100, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", ONE)
    await put(engine, "q", "a", [str(n) for n in range(300)])
    held = await receive(engine, "q", max=50)
    await drained(engine)
    wipe(stack, engine)
    more = await receive(engine, "q", max=50, wait_ms=5_000)
    assert len(more) == 50
    await put(engine, "q", "b", ["quiet"])
    assert [d.message.body for d in await receive(engine, "q", max=1, wait_ms=5_000)] == [b"quiet"]
    await ack(engine, "q", [*held, *more])
    await engine.queues.purge(BY, "q")
    await put(engine, "q", "a", ["after"])
    assert await drain(engine, "q", expect=1) == ["after"]


async def test_a_group_that_is_noisy_in_several_partitions_is_one(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(lease_ms=60_000, partitions=3))
    for _ in range(9):
        await put(own_engine, "q", "a", ["a"] * 100)
    taken = [one for _ in range(9) for one in await receive(own_engine, "q", max=10)]
    assert {one.partition for one in taken} == {0, 1, 2}

    async def counted() -> bool:
        (row,) = await own_engine.queues.count_each(BY, "q")
        return (row.noisy, row.groups_in_flight, row.leased) == (1, 3, len(taken))

    await eventually(counted, 8.0)
