"""`verify` finds what was planted and nothing else; `rebuild` under traffic loses nothing. Real
Kafka, real Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import MessageLeased, MessageNotFound
from engine.journal.reader import snapshot_key
from engine.recovery.compare import Difference
from engine.recovery.verify import Report
from engine.shapes import SendEntry
from engine.wiring.foundation import wire_maintenance
from facade.programs.cli import maintenance
from facade.programs.stack.processes.errors import StackError
from schemas.filters import Condition, Filter
from schemas.records import Attribute, BatchMark, Message
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.wire import encode
from state.keys import UnitKeys
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, receive, send
from tests.services import Services

DELIVERY = struct.Struct(">QIQBQ")
RED = {"colour": Attribute("string", b"red")}
ONLY_RED = Filter([Condition("colour", "string", b"red")])


async def verify(engine: Engine, *names: str) -> Report:
    """As `leaseway verify` in a process of its own: it shares nothing with the engine but Kafka and
    Redis.
    """
    maintenance = wire_maintenance(engine.settings)
    try:
        await maintenance.start()
        return await maintenance.verify(names)
    finally:
        await maintenance.stop()


async def rebuild(engine: Engine, *names: str) -> Any:
    maintenance = wire_maintenance(engine.settings)
    try:
        await maintenance.start()
        return await maintenance.rebuild(names)
    finally:
        await maintenance.stop()


def clean(report: Report) -> bool:
    assert report.differences == [] and report.left_out == [], report
    return True


async def one_step(engine: Engine, rest: random.Random, held: list[Any]) -> None:
    """A random thing that a client may do to queue `q`."""
    roll = rest.random()
    tag = rest.choice([None, "red"])
    if roll < 0.3:
        entries = [
            SendEntry(
                b"m",
                attributes=RED if rest.random() < 0.5 else {},
                delay_ms=rest.choice([0, 0, 0, 200, 3_600_000]),
                group=rest.choice([None, "noisy", "noisy", "quiet"]),
            )
            for _ in range(rest.randint(1, 12))
        ]
        await engine.messages.send(BY, "q", entries)
    elif roll < 0.6:
        held += await receive(engine, "q", max=rest.randint(1, 15), lease_ms=rest.choice([50, 60_000, 60_000]), tag=tag)
    elif held:
        some = [held.pop(rest.randrange(len(held))) for _ in range(min(len(held), rest.randint(1, 6)))]
        handles = [d.handle for d in some]
        if roll < 0.78:
            await engine.messages.ack(BY, "q", handles)
        elif roll < 0.85:
            await engine.messages.release(BY, "q", handles, rest.choice([0, 0, 300, 3_600_000]))
        elif roll < 0.92:
            await engine.messages.kill(BY, "q", handles)
        elif roll < 0.96:
            with contextlib.suppress(MessageLeased, MessageNotFound):  # another client was faster
                await engine.messages.delete_message(BY, "q", (await send(engine, "q", "short-lived"))[0].id)
        else:
            for one in some:
                engine.messages.undelivered([one])


async def random_traffic(engine: Engine, seed: int, steps: int = 60) -> list[Any]:
    """Traffic on queue `q` with tags `default` and `red` and dead letters, with a torn batch and an
    unreadable record in between.
    """
    rest = random.Random(seed)
    held: list[Any] = []
    await engine.queues.create_queue(BY, "dead", QueueSettings(partitions=2))
    policy = RedrivePolicy("dead", 3)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=3, lease_ms=60_000, redrive_policy=policy))
    await engine.queues.create_tag(BY, "q", "red", 0, ONLY_RED, {})
    topic = engine.catalog.queues["q"].topic
    for step in range(steps):
        await one_step(engine, rest, held)
        if step == steps // 3:
            torn = encode(Message(b"torn", sender="tester", batch=BatchMark("b1", 1, 3)))
            await asyncio.gather(
                engine.log.append(topic, 0, torn), engine.log.append(topic, 0, b"\x00\x00\x00\x00\x01\xff")
            )
            await engine.log.append(topic, 1, b"native bytes", headers=[("colour", b"red")])
    await send(engine, "q", *map(str, range(30)))
    return held


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_clean_after_random_traffic_with_and_without_a_rebuild(make_engine: MakeEngine, seed: int) -> None:
    engine = await make_engine(journal_partitions=2)
    await random_traffic(engine, seed)
    before = await verify(engine)
    assert clean(before) and before.open > 30 and before.tags == 3 * 2 + 2 and before.settled_above_floor > 0
    await engine.queues.purge(BY, "q") if seed == 3 else await engine.parts.base.snapshots.run_once()
    assert clean(await verify(engine))
    done = await rebuild(engine, "q")
    assert done.units == 3
    assert clean(await verify(engine))
    await receive(engine, "q", max=50, wait_ms=500)
    report = await verify(engine, "q")
    assert clean(report) and report.queues == 1 and (seed == 3 or report.open > 0)


async def test_clean_on_a_fifo_queue(make_engine: MakeEngine) -> None:
    """Its messages have a group in Redis before they are delivered; a repeat is over."""
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(fifo=True, lease_ms=60_000))
    for number in (0, 1, 2, 3, 4, 5, 1):
        await engine.messages.send(BY, "q", [SendEntry(b"m", group="ab"[number % 2], dedup_id=str(number))])
    got = await receive(engine, "q", max=2)
    await engine.messages.ack(BY, "q", [got[0].handle])
    await engine.messages.release(BY, "q", [got[1].handle], 0)
    report = await verify(engine)
    assert clean(report) and report.open == 5 and report.settled_above_floor == 1


async def test_clean_while_traffic_runs(make_engine: MakeEngine) -> None:
    first, second = await make_engine(), await make_engine()
    await random_traffic(first, 7, steps=10)
    stopped = False

    async def run(engine: Engine, seed: int) -> int:
        rest, steps = random.Random(seed), 0
        held: list[Any] = []
        while not stopped:
            await one_step(engine, rest, held)
            steps += 1
        return steps

    tasks = [asyncio.create_task(run(first, 8)), asyncio.create_task(run(second, 9))]
    for _ in range(5):
        assert clean(await verify(first))
    stopped = True
    assert min(await asyncio.gather(*tasks)) > 20


async def test_an_outbox_that_nobody_drains_is_drained(make_engine: MakeEngine, stack: Services) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=60_000))
    await send(engine, "q", "a", "b")
    await engine.parts.units.owner.stop()
    (got,) = await receive(engine, "q", max=1)
    await ack(engine, "q", [got])
    client, keys = raw(stack, engine)
    assert client.llen(keys.outbox) == 2
    assert clean(await verify(engine))
    assert client.llen(keys.outbox) == 0
    assert (await engine.store.upkeep.own(engine.catalog.queues["q"].units[0], "other", lease_ms=1000)).ours, (
        "its lease is not kept"
    )
    client.close()


def raw(stack: Services, engine: Engine) -> tuple[Any, UnitKeys]:
    """Redis itself, and the keys of partition 0 of queue `q`."""
    unit = engine.catalog.queues["q"].units[0]
    return redis.Redis.from_url(stack.redis_url), UnitKeys(engine.settings.topic_prefix, unit)


def altered(client: Any, key: str, offset: int) -> None:
    nonce, count, first, flag, time_ms = DELIVERY.unpack(client.hget(key, offset))
    client.hset(key, offset, DELIVERY.pack(nonce, count + 1, first, flag, time_ms))


# What is broken by hand, at which offset it must be found, and words of what is said. Offsets 0-2
# are acked, 3-5 leased, 6-9 ready.
BREAKS: dict[str, tuple[Callable[[Any, UnitKeys], Any], int | None, str, str]] = {
    "ready message gone from visible": (
        lambda c, k: c.zrem(k.tag(0).visible, 7),
        7,
        "nobody will receive it",
        "nothing settled",
    ),
    "leased message gone from visible": (
        lambda c, k: c.zrem(k.tag(0).visible, 4),
        4,
        "nobody will receive it",
        "open (nonce ",
    ),
    "delivery gone": (lambda c, k: c.hdel(k.tag(0).delivery, 4), 4, "never delivered", "count 1"),
    "count altered": (lambda c, k: altered(c, k.tag(0).delivery, 3), 3, "count 2", "count 1"),
    "deadline moved": (lambda c, k: c.zincrby(k.tag(0).visible, 5, 3), 3, "visible at", "nonce"),
    "due time moved": (lambda c, k: c.zincrby(k.tag(0).visible, 5_000, 8), 8, "visible at", "due at"),
    "a message to come marked as taken": (
        lambda c, k: c.sadd(k.tag(0).ahead, 10),
        10,
        "nobody will receive it",
        "log ends at 10",
    ),
    "cursor up": (lambda c, k: c.hincrby(k.meta, "c:0", 1), None, "cursor 11", "log ends at 10"),
    "cursor down": (lambda c, k: c.hincrby(k.meta, "c:0", -1), 9, "not taken", "loaded again"),
    "cursor down to what is settled": (lambda c, k: c.hset(k.meta, "c:0", 1), 1, "not taken", "delivered again"),
    "settled message put back": (lambda c, k: c.zadd(k.tag(0).visible, {"1": 5}), 1, "open", "delivered again"),
    "message of nowhere": (lambda c, k: c.zadd(k.tag(0).visible, {"12": 5}), 12, "not taken", "loaded again"),
    "unwanted message given to a tag": (lambda c, k: c.zadd(k.tag(1).visible, {"6": 5}), 6, "open", "not wanted"),
    "floor up": (lambda c, k: c.hset(k.meta, "f:0", 5), None, "floor 5", "floor 3"),
    "tag forgotten": (lambda c, k: c.hdel(k.meta, "c:1"), None, "does not know the tag", "tag of the queue"),
    "delivery without a message": (
        lambda c, k: c.hset(k.tag(0).delivery, 0, DELIVERY.pack(9, 1, 1, 0, 1)),
        0,
        "without a message",
        "not",
    ),
}


@pytest.fixture
async def still(make_engine: MakeEngine) -> Engine:
    """Queue `q`, one partition, ten messages, 5 and 9 red: three acked, three leased. Nothing runs
    any more.
    """
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=60_000))
    await engine.queues.create_tag(BY, "q", "red", 0, ONLY_RED, {})
    await engine.messages.send(
        BY, "q", [SendEntry(b"%d" % n, attributes=RED if n in (5, 9) else {}) for n in range(10)]
    )
    await ack(engine, "q", await receive(engine, "q", max=3))
    assert len(await receive(engine, "q", max=3)) == 3
    (unit,) = engine.catalog.queues["q"].units
    counts = await engine.store.upkeep.info(unit, engine.catalog.generation, [0, 1])
    assert [c.floor for c in counts] == [3, 5], "floors are in the journal"
    await engine.parts.administration.queues.collector.stop()  # it would find what is lost, and rebuild it
    await engine.parts.units.owner.stop()
    return engine


async def test_each_planted_corruption_is_found_and_named(still: Engine, stack: Services) -> None:
    client, keys = raw(stack, still)
    kept = {
        key: client.dump(key)
        for name in ("meta", "visible:0", "delivery:0", "visible:1")
        for key in [f"{keys.meta[:-4]}{name}"]
    }
    for name, (break_it, offset, redis_says, kafka_says) in BREAKS.items():
        assert clean(await verify(still, "q")), f"before {name}"
        break_it(client, keys)
        report = await verify(still, "q")
        assert any(_is(d, offset, redis_says, kafka_says) for d in report.differences), (name, report)
        assert all(d.queue == "q" and d.partition == 0 for d in report.differences)
        client.delete(keys.tag(0).ahead)
        for key, value in kept.items():
            client.restore(key, 0, value, replace=True)
    client.close()


def _is(difference: Difference, offset: int | None, redis_says: str, kafka_says: str) -> bool:
    return difference.offset == offset and redis_says in difference.redis and kafka_says in difference.kafka


async def test_lost_state_is_left_out_and_a_forced_rebuild_heals_a_corruption(still: Engine, stack: Services) -> None:
    client, keys = raw(stack, still)
    client.zrem(keys.tag(0).visible, 7)
    assert [d.offset for d in (await verify(still)).differences] == [7]
    done = await rebuild(still)
    assert (done.units, done.messages, done.deliveries) == (1, 10, 3)
    assert clean(await verify(still))
    client.hdel(keys.meta, "generation")
    report = await verify(still)
    assert report.units == 0 and "Redis has no state of it" in report.left_out[0]
    client.close()


async def test_a_snapshot_that_cannot_be_read_costs_time_not_state(make_engine: MakeEngine) -> None:
    engine = await make_engine(journal_partitions=1)
    await random_traffic(engine, 4)
    assert clean(await verify(engine))
    await engine.parts.base.snapshots.run_once()
    await engine.parts.base.snapshots.stop()
    (_, unit, *_) = engine.catalog.queues["q"].units
    epoch = (await engine.parts.base.reader.read(0)).epoch
    topic = engine.catalog.snapshot_topic
    await engine.log.append(topic, 0, b"\x00\x00\x00\x00\x07\xff", key=snapshot_key(unit, epoch))
    assert clean(await verify(engine))
    done = await rebuild(engine, "q")
    assert done.entries > 50, "the journal was read from its beginning"
    assert clean(await verify(engine))


async def test_verify_of_a_kafka_that_is_not_ours_makes_no_topics(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    status, said = await asyncio.to_thread(_verify_elsewhere, engine)
    assert status == 2 and "is not Leaseway's" in said
    assert await engine.log.topic_names("elsewhere") == []


def _verify_elsewhere(engine: Engine) -> tuple[int, str]:
    try:
        maintenance.verify(dataclasses.replace(engine.settings, topic_prefix="elsewhere"), [], as_json=False)
    except StackError as error:
        return maintenance.EXIT_NOT_COMPARED, str(error)
    return 0, ""
