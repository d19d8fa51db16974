"""peek_next: what a receive would lease now, in its order, and nothing is changed by it."""

from __future__ import annotations

import asyncio
import random

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue
from engine.shapes import ExtendEntry, SendEntry
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.drive import BY, eventually, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services


async def shown(engine: Engine, queue: str, max: int = 100, tag: str | None = None) -> list[str]:
    return [one.message.body.decode() for one in await engine.messages.peek_next(BY, queue, tag, max)]


@pytest.mark.parametrize(
    "settings",
    [
        QueueSettings(partitions=1),
        QueueSettings(partitions=4),
        QueueSettings(priority=True),
        QueueSettings(fifo=True, content_dedup=True),
        QueueSettings(fifo=True, content_dedup=True, one_per_group=True),
    ],
    ids=["one partition", "several", "priority", "FIFO", "one of a group"],
)
async def test_a_peek_shows_what_the_next_receive_gives(engine: Engine, queue: str, settings: QueueSettings) -> None:
    """Among messages that are leased, released, delayed and acked."""
    await engine.queues.create_queue(BY, queue, settings)
    dice = random.Random(7)
    for number in range(60):
        group = f"g{number % 5}" if settings.fifo else None
        delay_ms = 3_600_000 if number % 10 == 9 and not settings.fifo else None
        await engine.messages.send(
            BY, queue, [SendEntry(b"%d" % number, group=group, delay_ms=delay_ms, priority=dice.randint(1, 16))]
        )
    for _ in range(6):
        got = await receive(engine, queue, max=5)
        some = [delivery.handle for delivery in got if dice.random() < 0.5]
        if some:
            await (
                engine.messages.ack(BY, queue, some)
                if dice.random() < 0.5
                else engine.messages.release(BY, queue, some)
            )
        peeked = await engine.messages.peek_next(BY, queue, None, 7)
        assert [one.id for one in peeked] == [one.id for one in await engine.messages.peek_next(BY, queue, None, 7)], (
            "a peek changes nothing"
        )
        assert await engine.messages.peek_next(BY, queue, None, 1) == peeked[:1]
        received = await receive(engine, queue, max=7)
        assert sorted(one.id for one in peeked) == sorted(one.id for one in received)
        counts = {one.id: one.receive_count for one in received}
        assert [one.receive_count + 1 for one in peeked] == [counts[one.id] for one in peeked]
        if received:
            await engine.messages.release(BY, queue, [one.handle for one in received])


async def test_a_fair_queue_shows_who_is_quiet_first(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    for number in range(30):
        await engine.messages.send(BY, queue, [SendEntry(b"noisy-%d" % number, group="noisy")])
    await receive(engine, queue, max=10)
    for number in range(3):
        await engine.messages.send(BY, queue, [SendEntry(b"quiet-%d" % number, group=f"quiet-{number}")])
    peeked = await shown(engine, queue, 5)

    assert peeked[:3] == ["quiet-0", "quiet-1", "quiet-2"]
    assert sorted(peeked) == sorted(delivery.message.body.decode() for delivery in await receive(engine, queue, max=5))


async def test_partitions_are_shown_by_age(engine: Engine, queue: str) -> None:
    """Each batch fills a partition's turn, and the fifth is in that of the first."""
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=4))
    for batch in range(5):
        await engine.messages.send(BY, queue, [SendEntry(b"%d" % (batch * 100 + number)) for number in range(100)])
        await asyncio.sleep(0.005)
    for first in range(0, 500, 50):
        assert await shown(engine, queue, 60) == [str(number) for number in range(first, min(first + 60, 500))]
        got = await receive(engine, queue, max=50)
        await engine.messages.ack(BY, queue, [delivery.handle for delivery in got])
    assert await shown(engine, queue) == []


async def test_a_tag_shows_its_own(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2))
    await engine.queues.create_tag(BY, queue, "billing", -1, None, {})
    await send(engine, queue, "a", "b")
    (got,) = await receive(engine, queue, max=1, tag="billing")

    assert await shown(engine, queue) == ["a", "b"]
    assert await shown(engine, queue, tag="billing") == ["b"]
    assert got.message.body == b"a"


async def test_what_is_dying_is_not_shown(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings(partitions=1))
    await engine.queues.create_queue(
        BY, queue, QueueSettings(partitions=1, redrive_policy=RedrivePolicy(f"{queue}-dead", 1))
    )
    await send(engine, queue, "a", "b")
    (got,) = await receive(engine, queue, max=1)
    await engine.messages.extend(BY, queue, [ExtendEntry(got.handle, 0)])

    assert await shown(engine, queue) == ["b"]


async def test_what_has_expired_is_not_shown(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, retention_ms=60_000))
    await send(engine, queue, "x")
    unit, generation = engine.catalog.queues[queue].units[0], engine.catalog.generation
    await asyncio.sleep(0.01)

    assert await engine.store.leases.peek_next(unit, generation, 0, max=5, max_receive_count=0, retention_ms=1) == []
    assert await shown(engine, queue) == ["x"]


async def test_a_peek_after_a_loss_of_redis_shows_what_there_was(own_engine: Engine, stack: Services) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await send(own_engine, "q", *"abcd")
    (got,) = await receive(own_engine, "q", max=1)
    await drained(own_engine)
    wipe(stack, own_engine)

    async def are_shown() -> bool:
        return await shown(own_engine, "q") == ["b", "c", "d"]

    assert got.message.body == b"a"
    await eventually(are_shown)


@pytest.mark.parametrize("max", [0, 101])
async def test_a_number_out_of_its_range_is_refused(engine: Engine, queue: str, max: int) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))

    with pytest.raises(InvalidValue):
        await engine.messages.peek_next(BY, queue, None, max)
