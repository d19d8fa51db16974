"""Queues, tags, policies, many of them, and what a deletion leaves (nothing)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import InvalidValue, NotAllowedOnQueue, QueueExists, QueueNotFound, TagExists, TagNotFound
from engine.shapes import SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send


async def test_an_equal_queue_is_found_and_a_different_one_refused(engine: Engine, queue: str) -> None:
    _, made = await engine.queues.create_queue(BY, queue, QueueSettings(delay_ms=5))
    assert made
    for same in (QueueSettings(), QueueSettings(delay_ms=5)):
        assert (await engine.queues.create_queue(BY, queue, same))[1] is False
    with pytest.raises(QueueExists) as refused:
        await engine.queues.create_queue(BY, queue, QueueSettings(delay_ms=6))
    assert (refused.value.field, refused.value.limit, refused.value.given) == ("delay_ms", 5, 6)


async def test_names_that_kafka_can_not_tell_apart_are_refused(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}.b", QueueSettings())
    with pytest.raises(QueueExists, match=rf"{queue}\.b"):
        await engine.queues.create_queue(BY, f"{queue}_b", QueueSettings())


async def test_two_workers_that_create_one_queue_make_one(make_engine: MakeEngine) -> None:
    one, two = await make_engine(), await make_engine()
    for number in range(5):
        results = await asyncio.gather(
            *(e.queues.create_queue(BY, f"q{number}", QueueSettings()) for e in (one, two, one, two))
        )
        assert sum(made for _, made in results) == 1
        await eventually(lambda n=number: _same(one, two, f"q{n}"))  # type: ignore[misc]


async def _same(one: Engine, two: Engine, name: str) -> bool:
    a, b = one.catalog.queues.get(name), two.catalog.queues.get(name)
    return a is not None and b is not None and a.incarnation == b.incarnation


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (QueueSettings(partitions=0), "partitions"),
        (QueueSettings(partitions=65), "partitions"),
        (QueueSettings(delay_ms=-1), "delay_ms"),
        (QueueSettings(lease_ms=43_200_001), "lease_ms"),
        (QueueSettings(retention_ms=59_999), "retention_ms"),
        (QueueSettings(max_message_bytes=2**63), "max_message_bytes"),
        (QueueSettings(redrive_policy=RedrivePolicy("d", 0)), "max_receive_count"),
    ],
)
async def test_a_value_out_of_range_makes_no_queue(
    engine: Engine, queue: str, settings: QueueSettings, field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        await engine.queues.create_queue(BY, queue, settings)
    assert refused.value.field == field
    with pytest.raises(QueueNotFound):
        await engine.queues.get_queue(BY, queue)


async def test_policies_may_not_chain(engine: Engine, queue: str) -> None:
    a, b, c = names = [f"{queue}-{letter}" for letter in "abc"]
    for name in names:
        await engine.queues.create_queue(BY, name, QueueSettings())
    await engine.queues.set_redrive_policy(BY, a, RedrivePolicy(b, 3))
    assert (await engine.queues.get_queue(BY, b)).source_queues == [a]
    for source, target in ((b, c), (c, a)):
        with pytest.raises(NotAllowedOnQueue):
            await engine.queues.set_redrive_policy(BY, source, RedrivePolicy(target, 3))
    with pytest.raises(QueueNotFound):
        await engine.queues.set_redrive_policy(BY, c, RedrivePolicy("nothing", 3))
    await engine.queues.set_redrive_policy(BY, a, None)
    await engine.queues.set_redrive_policy(BY, b, RedrivePolicy(c, 3))


async def test_a_deleted_dead_letter_queue_makes_the_policy_void(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dlq", QueueSettings())
    await engine.queues.create_queue(BY, queue, QueueSettings(redrive_policy=RedrivePolicy(f"{queue}-dlq", 1)))
    await send(engine, queue, "m")
    await engine.queues.delete_queue(BY, f"{queue}-dlq")
    for count in (1, 2, 3):
        (got,) = await receive(engine, queue, wait_ms=2000, lease_ms=1)
        assert got.receive_count == count


async def test_20_tags_each_get_every_matching_message_and_a_late_one_replays_all(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    red = Filter([Condition("colour", "string", b"red")])
    for number in range(19):
        await engine.queues.create_tag(BY, queue, f"t{number}", -1, red if number % 2 else None, {})
    for start in range(0, 200, 50):
        entries = [
            SendEntry(b"%d" % n, {"colour": Attribute("string", b"red" if n % 3 == 0 else b"blue")})
            for n in range(start, start + 50)
        ]
        await engine.messages.send(BY, queue, entries)
    everything = [str(n) for n in range(200)]
    reds = [str(n) for n in range(0, 200, 3)]
    wanted = [reds if number % 2 else everything for number in range(19)]
    drained = await asyncio.gather(
        *(drain(engine, queue, tag=f"t{n}", expect=len(some)) for n, some in enumerate(wanted))
    )
    for number, bodies in enumerate(drained):
        assert sorted(bodies, key=int) == wanted[number], f"tag t{number}"
    assert sorted(await drain(engine, queue, expect=len(everything)), key=int) == everything
    await engine.queues.create_tag(BY, queue, "late", 0, None, {})
    assert sorted(await drain(engine, queue, tag="late", expect=len(everything)), key=int) == everything
    with pytest.raises(InvalidValue):
        await engine.queues.create_tag(BY, queue, "t20", 0, None, {})
    left = [await engine.store.upkeep.leftovers(unit) for unit in engine.catalog.queues[queue].units]
    assert left == [(0, 0, 0)] * 4, "bodies are left though every tag has acked"


async def test_a_slow_tag_does_not_stop_the_others(make_engine: MakeEngine) -> None:
    engine = await make_engine(window_messages=100, window_bytes=65_536, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await engine.queues.create_tag(BY, "q", "slow", 0, None, {})
    for start in range(0, 800, 100):
        await engine.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(start, start + 100)])
    assert len(set(await drain(engine, "q", expect=800))) == 800
    assert len(set(await drain(engine, "q", tag="slow", expect=800))) == 800


async def test_tags_are_equal_or_refused_and_deleted_with_their_state(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    _, made = await engine.queues.create_tag(BY, queue, "t", 0, None, {})
    assert made and not (await engine.queues.create_tag(BY, queue, "t", 0, None, {}))[1]
    with pytest.raises(TagExists):
        await engine.queues.create_tag(BY, queue, "t", 0, Filter([Condition("a")]), {})
    with pytest.raises(NotAllowedOnQueue):
        await engine.queues.delete_tag(BY, queue, "default")
    await send(engine, queue, "m")
    assert len(await receive(engine, queue, tag="t")) == 1
    await engine.queues.delete_tag(BY, queue, "t")
    with pytest.raises(TagNotFound):
        await receive(engine, queue, tag="t")
    assert await drain(engine, queue, expect=1) == ["m"]


async def test_a_copy_has_settings_and_tags_but_no_messages(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(delay_ms=7, user_attributes={"team": "a"}))
    await engine.queues.create_tag(BY, queue, "t", 0, Filter([Condition("a")]), {})
    await send(engine, queue, "m")
    copied = await engine.queues.copy_queue(BY, queue, f"{queue}-p")
    assert (copied.delay_ms, copied.user_attributes, [t.name for t in copied.tags]) == (
        7,
        {"team": "a"},
        ["default", "t"],
    )
    assert copied.tags[0].backlog == 0
    with pytest.raises(QueueExists):
        await engine.queues.copy_queue(BY, queue, f"{queue}-p")


async def test_a_queue_made_again_under_its_name_starts_empty(engine: Engine, queue: str) -> None:
    for life in range(3):
        await engine.queues.create_queue(BY, queue, QueueSettings())
        await send(engine, queue, f"life {life}", "more")
        (got, *_) = await receive(engine, queue, max=1)
        await engine.queues.delete_queue(BY, queue)
        with pytest.raises(QueueNotFound):
            await engine.messages.ack(BY, queue, [got.handle])
    await engine.queues.create_queue(BY, queue, QueueSettings())
    assert await receive(engine, queue) == []


async def _no_topics(engine: Engine, prefix: str) -> bool:
    return await engine.log.topic_names(prefix) == []


@pytest.mark.long
async def test_500_queues_are_made_within_60_s_and_deleted_without_a_trace(own_engine: Engine, stack: Any) -> None:
    client = redis.Redis.from_url(stack.redis_url)
    prefix = own_engine.settings.topic_prefix
    began = time.perf_counter()
    limit = asyncio.Semaphore(16)

    async def make(number: int) -> None:
        async with limit:
            await own_engine.queues.create_queue(BY, f"q{number:03}", QueueSettings(partitions=1))

    await asyncio.gather(*(make(n) for n in range(500)))
    took = time.perf_counter() - began
    began = time.perf_counter()
    names, after = await own_engine.queues.list_queues(BY, "q", 300, None)
    rest, end = await own_engine.queues.list_queues(BY, "q", 300, after)
    listing = time.perf_counter() - began
    assert names + rest == [f"q{n:03}" for n in range(500)] and end is None
    for number in range(0, 500, 50):
        await send(own_engine, f"q{number:03}", "m")

    async def drop(number: int) -> None:
        async with limit:
            await own_engine.queues.delete_queue(BY, f"q{number:03}")

    await asyncio.gather(*(drop(n) for n in range(500)))
    print(
        f"500 queues: made in {took:.1f} s, listed in {listing * 1000:.1f} ms, deleted in "
        f"{time.perf_counter() - began:.1f} s"
    )
    assert took < 60

    async def nothing_left() -> bool:
        return list(client.scan_iter(f"{prefix}:{{*")) == []

    await eventually(nothing_left)
    await eventually(lambda: _no_topics(own_engine, f"{prefix}.q."), within_s=120)  # Kafka tells of deletions later
    client.close()


async def test_an_ack_frees_the_window_and_counts_are_exact(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    await send(engine, queue, *map(str, range(10)))
    await send(engine, queue, "d", delay_ms=60_000)
    got = await receive(engine, queue, max=4)
    await ack(engine, queue, got[:1])
    tag = (await engine.queues.get_queue(BY, queue)).tags[0]
    assert (tag.ready, tag.leased, tag.delayed, tag.stored, tag.backlog) == (6, 3, 1, 0, 10)
