"""Standard queues: what was sent first comes first, over all partitions and workers. Real Kafka and
Redis.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from engine.engine import Engine
from engine.rules.placement import RUN
from engine.shapes import SendEntry
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, receive, send

# So far apart that two sends are not of one ms of Kafka's clock: what is of one ms in two
# partitions has no order.
APART_S = 0.002


async def spread(engines: list[Engine], queue: str, texts: list[str], seed: int = 7) -> None:
    """Sends one by one through engines at random, each to a partition of the engine's own
    choice.
    """
    rest = random.Random(seed)
    for text in texts:
        await send(rest.choice(engines), queue, text)
        await asyncio.sleep(APART_S)


async def taken(engine: Engine, queue: str, max: int, wait_ms: int = 0) -> list[str]:
    """Received and acked by calls for `max`, until nothing comes."""
    found: list[str] = []
    while got := await receive(engine, queue, max=max, wait_ms=wait_ms):
        found += [d.message.body.decode() for d in got]
        await ack(engine, queue, got)
    return found


@pytest.mark.parametrize("max", [1, 3, 10])
async def test_what_is_sent_one_by_one_comes_in_that_order(engine: Engine, queue: str, max: int) -> None:
    """Of many queues: a sender begins at a partition by chance."""
    for name in (f"{queue}-{number}" for number in range(5)):
        await engine.queues.create_queue(BY, name, QueueSettings())
        await send(engine, name, *"0123456789")
        assert await taken(engine, name, max) == list("0123456789")


@pytest.mark.parametrize(("max", "wait_ms"), [(1, 0), (7, 0), (10, 300), (100, 0)])
async def test_order_holds_over_the_partitions_of_several_workers(
    make_engine: MakeEngine, max: int, wait_ms: int
) -> None:
    """Three senders on three workers fill partitions in turn; a worker that has sent nothing
    receives.
    """
    engines = [await make_engine() for _ in range(4)]
    await engines[0].queues.create_queue(BY, "q", QueueSettings(partitions=8))
    texts = [str(n) for n in range(120)]
    await spread(engines[:3], "q", texts)
    infos = await engines[0].queues.get_queue(BY, "q")
    assert infos.tags[0].ready == 120
    assert await taken(engines[3], "q", max, wait_ms) == texts


async def test_order_holds_where_a_sender_goes_on_to_the_next_partition(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    texts = [str(n) for n in range(RUN * 5)]
    for at in range(0, len(texts), 10):
        await engine.messages.send(BY, queue, [SendEntry(text.encode()) for text in texts[at : at + 10]])
        await asyncio.sleep(APART_S)
    units = engine.catalog.queues[queue].units
    used = [await engine.store.upkeep.info(unit, engine.catalog.generation, [0]) for unit in units]
    assert all(tags[0].ready > 0 for tags in used), "a sender stays in one partition for ever"
    assert await taken(engine, queue, 7) == texts


@pytest.mark.parametrize("first", [1, 5, 95])
async def test_a_batch_comes_in_its_order_whatever_the_numbers_of_its_offsets(
    engine: Engine, queue: str, first: int
) -> None:
    """All of it is of one ms, and its offsets have one digit and two, two and three."""
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await engine.messages.send(BY, queue, [SendEntry(b"before")] * first)
    assert len(await drain(engine, queue, expect=first, patience_ms=100)) == first
    texts = [str(n) for n in range(20)]
    await engine.messages.send(BY, queue, [SendEntry(text.encode()) for text in texts])
    assert await taken(engine, queue, 3) == texts


async def test_a_waiting_consumer_gets_messages_in_the_order_in_which_workers_send_them(
    make_engine: MakeEngine,
) -> None:
    engines = [await make_engine() for _ in range(3)]
    await engines[0].queues.create_queue(BY, "q", QueueSettings())
    texts = [str(n) for n in range(100)]
    consumer = asyncio.create_task(taken(engines[0], "q", 10, 2_000))
    await spread(engines[1:], "q", texts)
    assert await consumer == texts


async def test_what_is_given_back_comes_behind_what_was_visible_before(engine: Engine, queue: str) -> None:
    """By when a message became visible, not by when it was sent. As best effort: a worker that has
    not heard of a partition yet gives what it knows, as was seen once on a full machine.
    """
    found = []
    for number in range(5):
        name = f"{queue}-{number}"
        await engine.queues.create_queue(BY, name, QueueSettings())
        await send(engine, name, *"0123")
        first = await receive(engine, name, max=2)
        await engine.messages.release(BY, name, [d.handle for d in first], 0)
        found.append(sorted((await taken(engine, name, 1))[:2]) == ["2", "3"])
    assert sum(found) >= 3, found
