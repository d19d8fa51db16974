"""Kafka both ways: native producers and consumers beside HTTP clients, lag in Kafka's own terms,
records that can't be read.
"""

from __future__ import annotations

import asyncio
import struct
import time
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.engine import Engine
from engine.shapes import SendEntry
from schemas.records import BatchMark, Message
from schemas.records.settings import QueueSettings
from schemas.registry import schema_id
from schemas.wire import decode_message, encode
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, all_wait, drain, eventually, receive, send


def produce(
    stack: Any, engine: Engine, queue: str, value: bytes | None, headers: Any = None, partition: int = 0
) -> None:
    producer = Producer({"bootstrap.servers": stack.bootstrap})
    producer.produce(f"{engine.settings.topic_prefix}.q.{queue}", value, headers=headers, partition=partition)
    assert producer.flush(10) == 0


async def test_a_native_record_is_received_as_a_message_by_the_first_short_poll(
    engine: Engine, queue: str, stack: Any
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    produce(stack, engine, queue, b"raw bytes", [("colour", b"red"), ("photo", b"\xff\xd8")])
    (got,) = await receive(engine, queue)
    assert got.message.body == b"raw bytes"
    assert {n: (a.type, a.value) for n, a in got.message.attributes.items()} == {
        "colour": ("string", b"red"),
        "photo": ("binary", b"\xff\xd8"),
    }
    await ack(engine, queue, [got])


async def test_a_native_record_wakes_a_long_poll(engine: Engine, queue: str, stack: Any) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    waiter = asyncio.create_task(receive(engine, queue, wait_ms=5000))
    await all_wait(engine)
    began = time.perf_counter()
    await asyncio.to_thread(produce, stack, engine, queue, b"raw")
    assert [d.message.body for d in await waiter] == [b"raw"]
    assert time.perf_counter() - began < 1.0


async def owner_and_other(make_engine: MakeEngine) -> tuple[Engine, Engine]:
    """Two workers; the first owns the only unit of queue "q", which is empty."""
    owner, other = await make_engine(), await make_engine()
    await owner.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(owner, "q", "first")
    await ack(owner, "q", await receive(owner, "q"))

    async def owned() -> bool:
        return len(owner.parts.units.owner.owned) == 1

    await eventually(owned)
    return owner, other


async def test_a_native_record_wakes_a_long_poll_at_a_worker_that_is_not_the_owner(
    make_engine: MakeEngine, stack: Any
) -> None:
    owner, other = await owner_and_other(make_engine)
    waiter = asyncio.create_task(receive(other, "q", wait_ms=8000))
    await asyncio.sleep(3)  # the owner has no traffic of its own, but is not idle for so long that it gives the unit up
    assert len(owner.parts.units.owner.owned) == 1
    began = time.perf_counter()
    await asyncio.to_thread(produce, stack, other, "q", b"raw")
    assert [d.message.body for d in await waiter] == [b"raw"]
    assert time.perf_counter() - began < 1.5


async def test_a_short_poll_waits_for_what_another_worker_is_to_load(make_engine: MakeEngine, stack: Any) -> None:
    owner, other = await owner_and_other(make_engine)
    await asyncio.sleep(2.2)  # the owner looks twice a second now
    for n in range(5):
        await asyncio.to_thread(produce, stack, other, "q", b"%d" % n)
        got = await receive(other, "q", wait_ms=0)
        assert [d.message.body for d in got] == [b"%d" % n]
        await ack(other, "q", got)
        await asyncio.sleep(0.12)  # Kafka is asked once in 100 ms
    assert len(owner.parts.units.owner.owned) == 1
    began = time.perf_counter()
    assert await receive(other, "q", wait_ms=0) == []
    assert time.perf_counter() - began < 0.3


async def test_what_senders_load_is_not_read_from_kafka_again_and_native_records_come_in_between(
    engine: Engine, queue: str, stack: Any
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    got: list[bytes] = []
    over = asyncio.Event()

    async def sends() -> int:
        sent = 0
        while not over.is_set():
            await engine.messages.send(BY, queue, [SendEntry(b"sent")] * 5)
            sent += 5
        return sent

    async def receives() -> None:
        while (leased := await receive(engine, queue, max=100, wait_ms=500)) or not over.is_set():
            got.extend(delivery.message.body for delivery in leased)
            await ack(engine, queue, leased)

    async def many_came() -> bool:
        return len(got) >= 2_000

    async def native_came() -> bool:
        return b"native" in got

    before = engine.counts().get("loaded_chunks_total", 0)
    async with asyncio.TaskGroup() as traffic:
        senders = [traffic.create_task(sends()) for _ in range(16)]
        traffic.create_task(receives())
        await eventually(many_came)
        assert engine.counts().get("loaded_chunks_total", 0) - before <= 1
        began = time.perf_counter()
        await asyncio.to_thread(produce, stack, engine, queue, b"native")
        await eventually(native_came)
        assert time.perf_counter() - began < 1.0
        over.set()
    assert len(got) == sum(task.result() for task in senders) + 1


async def test_odd_native_records_are_messages_and_unreadable_ones_are_skipped(
    engine: Engine, queue: str, stack: Any
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    unreadable = engine.counts().get("undecodable_records_total", 0)
    odd = [b"", None, b"\x00", b"\x00\x00\x00\xff\xffother id", bytes(range(256))]
    for value in odd:
        produce(stack, engine, queue, value)
    broken = b"\x00" + struct.pack(">I", schema_id("message")) + b"\x80not avro"
    produce(stack, engine, queue, broken)
    await send(engine, queue, "after")
    bodies = []
    while got := await receive(engine, queue, wait_ms=700):
        bodies += [d.message.body for d in got]
        await ack(engine, queue, got)
    assert sorted(bodies) == sorted([value or b"" for value in odd] + [b"after"])
    assert engine.counts()["undecodable_records_total"] > unreadable
    assert (await engine.queues.get_queue(BY, queue)).tags[0].backlog == 0


async def test_a_native_consumer_reads_what_http_clients_sent(engine: Engine, queue: str, stack: Any) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await send(engine, queue, "first", "second")
    consumer = Consumer({"bootstrap.servers": stack.bootstrap, "group.id": "native", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(f"{engine.settings.topic_prefix}.q.{queue}", 0, 0)])
    bodies: list[bytes] = []
    while len(bodies) < 2:
        record = consumer.poll(10)
        assert record is not None and record.error() is None
        bodies.append(decode_message(record.value(), None).body)
    consumer.close()
    assert bodies == [b"first", b"second"]


async def test_the_lag_of_a_tags_group_falls_as_it_acks(engine: Engine, queue: str, stack: Any) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await send(engine, queue, *map(str, range(10)))
    got = await receive(engine, queue, max=10)
    await ack(engine, queue, sorted(got, key=lambda d: d.offset)[:7])
    admin = AdminClient({"bootstrap.servers": stack.bootstrap})
    group = f"{engine.settings.topic_prefix}.{queue}.default"

    async def seven() -> bool:
        futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        return [p.offset for p in futures[group].result().topic_partitions] == [7]

    await eventually(seven, within_s=15)


async def test_a_torn_batch_is_never_shown_and_a_late_whole_one_is(make_engine: MakeEngine, stack: Any) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(engine, "q", "before")

    def part(batch: str, index: int, size: int) -> bytes:
        return encode(Message(body=f"{batch}{index}".encode(), sender="tester", batch=BatchMark(batch, index, size)))

    for index in (0, 1):
        produce(stack, engine, "q", part("torn", index, 3))
    produce(stack, engine, "q", part("whole", 0, 2))
    await send(engine, "q", "between")
    assert sorted(await drain(engine, "q", expect=2)) == ["before", "between"]
    produce(stack, engine, "q", part("whole", 1, 2))
    assert sorted(await drain(engine, "q", expect=2, patience_ms=1000)) == ["whole0", "whole1"]
    assert (await engine.queues.get_queue(BY, "q")).tags[0].stored > 0, "the cursor waits at the unfinished batch"


async def test_a_window_that_stopped_inside_a_batch_shows_the_rest_later(make_engine: MakeEngine) -> None:
    engine = await make_engine(window_messages=16, window_bytes=65_536, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    for start in range(0, 300, 60):
        await engine.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(start, start + 60)])
    assert sorted(map(int, await drain(engine, "q", expect=300))) == list(range(300))
