"""Queues with priority: what has a lower number is received first, over all partitions, whenever it
was sent.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from confluent_kafka import Producer

from engine.engine import Engine
from engine.errors import InvalidValue, LogUnavailable, NotAllowedOnQueue, Overloaded
from engine.rules.queue import Queue
from engine.send.batch import PendingSend
from engine.send.sender import Sender
from engine.shapes import SendEntry
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.vocabulary import PRIORITIES, TaskStatus
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, all_wait, drain, eventually, receive
from tests.integration.test_rebuild import wipe
from tests.services import Services

PRIORITY = QueueSettings(priority=True)


async def put(engine: Engine, queue: str, *given: tuple[str, int | None], **options: Any) -> None:
    """Sends texts with their priorities, as one batch."""
    await engine.messages.send(
        BY, queue, [SendEntry(text.encode(), priority=number, **options) for text, number in given]
    )


async def many(engine: Engine, queue: str, count: int, priority: int) -> None:
    batches = [
        [(f"{priority}-{n}", priority) for n in range(first, min(first + 100, count))] for first in range(0, count, 100)
    ]
    for first in range(0, len(batches), 50):
        await asyncio.gather(*(put(engine, queue, *batch) for batch in batches[first : first + 50]))


@pytest.mark.long
async def test_the_first_priority_is_next_behind_a_hundred_thousand_others(make_engine: MakeEngine) -> None:
    one, other = await make_engine(), await make_engine()
    await one.queues.create_queue(BY, "q", PRIORITY)
    await many(one, "q", 100_000, 8)
    assert (await receive(one, "q", max=1))[0].message.priority == 8
    await put(one, "q", ("urgent", 1))
    await put(one, "q", ("soon", 7))
    got = await receive(one, "q", max=3)
    assert [delivery.message.body for delivery in got[:2]] == [b"urgent", b"soon"]
    assert got[2].message.priority == 8
    # Another worker, which has never asked, says the same.
    await put(one, "q", ("more urgent", 1))
    assert [delivery.message.body for delivery in await receive(other, "q", max=1)] == [b"more urgent"]


@pytest.mark.parametrize("at_once", [1, 7, 100])
async def test_priorities_and_within_them_times_of_sending_are_a_total_order(
    make_engine: MakeEngine, at_once: int
) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", PRIORITY)
    rng = random.Random(at_once)
    sent: list[tuple[int, str]] = []
    for n in range(400):
        some = [(f"{n}-{i}", rng.randint(1, PRIORITIES)) for i in range(rng.choice((1, 1, 3)))]
        await put(engine, "q", *some)
        sent += [(number, text) for text, number in some]
    got: list[tuple[int, str]] = []
    while len(got) < len(sent):
        deliveries = await receive(engine, "q", max=at_once, wait_ms=1_000)
        assert deliveries
        got += [(delivery.message.priority, delivery.message.body.decode()) for delivery in deliveries]
        await ack(engine, "q", deliveries)
    assert got == sorted(sent, key=lambda one: one[0])


async def test_a_message_without_a_priority_has_the_eighth_and_other_queues_keep_it_only(
    engine: Engine, queue: str
) -> None:
    await engine.queues.create_queue(BY, f"{queue}-p", PRIORITY)
    await put(engine, f"{queue}-p", ("ninth", 9), ("none", None), ("seventh", 7))
    assert await drain(engine, f"{queue}-p", expect=3) == ["seventh", "none", "ninth"]
    await engine.queues.create_queue(BY, f"{queue}-s", QueueSettings(partitions=1))
    await put(engine, f"{queue}-s", ("ninth", 9), ("first", 1))
    got = await receive(engine, f"{queue}-s")
    assert [(delivery.message.body, delivery.message.priority) for delivery in got] == [(b"ninth", 9), (b"first", 1)]


async def test_a_retry_keeps_its_priority(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, PRIORITY)
    await put(engine, queue, ("2", 2), ("3", 3), ("4", 4))
    (two,) = await receive(engine, queue, max=1, lease_ms=100)
    (three,) = await receive(engine, queue, max=1)
    await engine.messages.release(BY, queue, [three.handle])
    await asyncio.sleep(0.15)
    assert [delivery.message.body for delivery in await receive(engine, queue)] == [b"2", b"3", b"4"]
    assert two.message.priority == 2


async def test_who_waits_gets_the_first_priority_of_what_comes_together(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, PRIORITY)
    waiting = asyncio.create_task(receive(engine, queue, max=10, wait_ms=5_000))
    await all_wait(engine)
    await put(engine, queue, ("9", 9))
    assert [delivery.message.body for delivery in await waiting] == [b"9"]
    await put(engine, queue, ("5", 5), ("4", 4), ("6", 6))
    waiters = [asyncio.create_task(receive(engine, queue, max=1, wait_ms=5_000)) for _ in range(3)]
    got = sorted([(await waiter)[0].message.priority for waiter in waiters])
    assert got == [4, 5, 6]


async def test_what_is_dying_or_expired_in_front_does_not_hide_what_is_behind(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings())
    await engine.queues.create_queue(
        BY, queue, QueueSettings(priority=True, redrive_policy=RedrivePolicy(f"{queue}-dead", 1))
    )
    await put(engine, queue, *((f"1-{n}", 1) for n in range(5)))
    await put(engine, queue, ("8", 8))
    assert len(await receive(engine, queue, max=5, lease_ms=1)) == 5
    await asyncio.sleep(0.02)
    assert [delivery.message.body for delivery in await receive(engine, queue, max=2)] == [b"8"]
    assert sorted(await drain(engine, f"{queue}-dead", expect=5)) == [f"1-{n}" for n in range(5)]


async def test_a_redrive_brings_messages_back_to_their_priority(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings())
    await engine.queues.create_queue(
        BY, queue, QueueSettings(priority=True, redrive_policy=RedrivePolicy(f"{queue}-dead", 1))
    )
    await put(engine, queue, ("2", 2), ("1", 1))
    got = await receive(engine, queue)
    await engine.messages.kill(BY, queue, [delivery.handle for delivery in got])
    await put(engine, queue, ("8", 8))
    task = await engine.tasks.redrive(BY, f"{queue}-dead", None, None, 0)

    async def ended() -> bool:
        return (await engine.tasks.get_task(BY, task.id)).status == TaskStatus.COMPLETED

    await eventually(ended, within_s=20)
    assert await drain(engine, queue, expect=3) == ["1", "2", "8"]


async def test_the_order_is_the_same_after_a_loss_of_redis(own_engine: Engine, stack: Services) -> None:
    await own_engine.queues.create_queue(BY, "q", PRIORITY)
    for number in (9, 3, 16, 1, 8, 3):
        await put(own_engine, "q", (str(number), number))
    wipe(stack, own_engine)

    async def is_loaded() -> bool:
        return (await own_engine.queues.get_queue(BY, "q")).tags[0].ready == 6

    await eventually(is_loaded)
    assert await drain(own_engine, "q", expect=6) == ["1", "3", "3", "8", "9", "16"]


async def test_a_native_record_has_the_priority_of_its_partition(engine: Engine, queue: str, stack: Services) -> None:
    await engine.queues.create_queue(BY, queue, PRIORITY)
    await put(engine, queue, ("second", 2))
    producer = Producer({"bootstrap.servers": stack.bootstrap})
    producer.produce(engine.catalog.queues[queue].topic, b"native", partition=0)
    assert producer.flush(10) == 0

    async def first() -> bool:
        return (await engine.queues.get_queue(BY, queue)).tags[0].ready == 2

    await receive(engine, queue, max=1, lease_ms=1)
    await eventually(first)
    got = await receive(engine, queue)
    assert [(delivery.message.body, delivery.message.priority) for delivery in got] == [(b"native", 1), (b"second", 2)]
    peeked = await engine.messages.peek(BY, queue, got[0].id, None)
    assert peeked.message.priority == 1


async def test_a_batch_of_several_priorities_of_which_some_fail_says_that_nobody_knows(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.queues.create_queue(BY, queue, PRIORITY)
    real = Sender._wait

    def full(self: Sender, queue: Queue, send: PendingSend) -> None:
        if send.messages[0].priority in refused:
            raise Overloaded("too many sends are waiting")
        real(self, queue, send)

    monkeypatch.setattr(Sender, "_wait", full)
    refused = {3}
    with pytest.raises(LogUnavailable, match="some of the batch were stored"):
        await put(engine, queue, ("2", 2), ("3", 3))
    refused = {2, 3}
    with pytest.raises(Overloaded):
        await put(engine, queue, ("2", 2), ("3", 3))
    assert await drain(engine, queue, expect=1) == ["2"]


async def test_what_is_wrong_is_refused_and_changes_nothing(engine: Engine, queue: str) -> None:
    for wrong in (QueueSettings(priority=True, fifo=True), QueueSettings(priority=True, partitions=4)):
        with pytest.raises(InvalidValue):
            await engine.queues.create_queue(BY, queue, wrong)
    await engine.queues.create_queue(BY, queue, PRIORITY)
    assert (await engine.queues.get_queue(BY, queue)).partitions == PRIORITIES
    with pytest.raises(NotAllowedOnQueue):
        await engine.queues.set_queue(BY, queue, QueueSettings(priority=False))
    for number in (0, 17):
        with pytest.raises(InvalidValue, match="priority must be 1 to 16"):
            await put(engine, queue, ("1", 1), ("wrong", number))
    assert await drain(engine, queue, expect=0) == []
