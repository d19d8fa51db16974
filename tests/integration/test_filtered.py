"""Receives that name a filter of their own: what fits comes, oldest first, and nothing else is
touched.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, NotAllowedOnQueue
from engine.shapes import Delivery, SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.drive import BY, ack, receive

RED = Filter([Condition("colour", "string", b"red")])
NONE_FITS = Filter([Condition("colour", "string", b"none")])


def entry(body: str, colour: str, group: str | None = None, delay_ms: int | None = None) -> SendEntry:
    return SendEntry(
        body.encode(), attributes={"colour": Attribute("string", colour.encode())}, group=group, delay_ms=delay_ms
    )


async def sent(engine: Engine, queue: str, *entries: SendEntry) -> None:
    """One by one, so that they lie in several partitions."""
    for one in entries:
        await engine.messages.send(BY, queue, [one])


async def filtered(
    engine: Engine,
    queue: str,
    filter: Filter = RED,
    max: int = 10,
    wait_ms: int = 0,
    tag: str | None = None,
    lease_ms: int | None = None,
) -> list[Delivery]:
    return await engine.messages.receive(BY, queue, tag, max, wait_ms, lease_ms, filter=filter)


def bodies(deliveries: list[Delivery]) -> list[str]:
    return [one.message.body.decode() for one in deliveries]


async def test_what_fits_comes_oldest_first_and_the_rest_stays_for_others(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=4, lease_ms=60_000))
    await sent(engine, queue, *(entry(f"{n:02d}", "red" if n % 3 == 0 else "blue") for n in range(30)))
    assert bodies(await filtered(engine, queue, max=4)) == ["00", "03", "06", "09"]
    rest = await filtered(engine, queue, max=100)
    assert bodies(rest) == ["12", "15", "18", "21", "24", "27"]
    assert {one.receive_count for one in rest} == {1}
    assert await filtered(engine, queue) == []
    (tag,) = (await engine.queues.get_queue(BY, queue)).tags
    assert (tag.ready, tag.leased) == (20, 10)
    others = await receive(engine, queue, max=100)
    assert sorted(bodies(others)) == [f"{n:02d}" for n in range(30) if n % 3]
    assert {one.receive_count for one in others} == {1}, "a receive that they did not fit has counted"
    await ack(engine, queue, rest)
    (tag,) = (await engine.queues.get_queue(BY, queue)).tags
    assert (tag.ready, tag.leased) == (0, 24)


async def test_a_wait_ends_with_what_is_sent_meanwhile(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2))
    await sent(engine, queue, entry("a", "blue"))
    waiting = asyncio.create_task(filtered(engine, queue, wait_ms=10_000))
    await asyncio.sleep(0.4)
    assert not waiting.done()
    began = time.monotonic()
    await sent(engine, queue, entry("b", "red"))
    assert bodies(await waiting) == ["b"]
    assert time.monotonic() - began < 2
    began = time.monotonic()
    assert await filtered(engine, queue, NONE_FITS, wait_ms=700) == []
    assert 0.7 <= time.monotonic() - began < 2


async def test_leases_end_and_deaths_count_as_those_of_any_receive(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings())
    await engine.queues.create_queue(
        BY, queue, QueueSettings(partitions=1, redrive_policy=RedrivePolicy(f"{queue}-dead", 2))
    )
    await sent(engine, queue, entry("a", "red"), entry("b", "blue"))
    (first,) = await filtered(engine, queue, lease_ms=200)
    assert await filtered(engine, queue) == []
    (second,) = await filtered(engine, queue, wait_ms=5000, lease_ms=200)
    assert (first.id, second.receive_count) == (second.id, 2)
    await asyncio.sleep(0.3)
    assert await filtered(engine, queue) == [], "it dies instead"
    (dead,) = await receive(engine, f"{queue}-dead", wait_ms=5000)
    assert dead.message.body == b"a"
    assert bodies(await receive(engine, queue)) == ["b"]


async def test_delayed_messages_and_those_of_other_tags_are_not_touched(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await engine.queues.create_tag(BY, queue, "big", 0, Filter([Condition("size", "string", b"big")]), {})
    await sent(engine, queue, entry("later", "red", delay_ms=60_000), entry("now", "red"))
    big = SendEntry(b"both", attributes={"colour": Attribute("string", b"red"), "size": Attribute("string", b"big")})
    await engine.messages.send(BY, queue, [big])
    assert bodies(await filtered(engine, queue, tag="big")) == ["both"]
    assert bodies(await filtered(engine, queue)) == ["now", "both"]


async def test_a_fair_queue_counts_what_is_in_flight_of_a_group(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, lease_ms=60_000))
    await sent(engine, queue, *(entry(f"loud{n}", "red", "loud") for n in range(20)))
    await sent(engine, queue, *(entry(f"low{n}", "blue", "low") for n in range(3)))
    picked = await filtered(engine, queue, max=10)
    assert bodies(picked) == [f"loud{n}" for n in range(10)]
    rest = await receive(engine, queue, max=100)
    assert Counter(one[:3] for one in bodies(rest)) == {"lou": 10, "low": 3}
    assert set(bodies(rest)[:3]) == {"low0", "low1", "low2"}, "a group with ten in flight goes behind the others"
    await ack(engine, queue, [*picked, *rest])
    (tag,) = (await engine.queues.get_queue(BY, queue)).tags
    assert tag.backlog == 0


async def test_a_queue_with_priority_keeps_its_order(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(priority=True))
    for level in (9, 3, 16, 1):
        one = entry(f"p{level:02d}", "red")
        await engine.messages.send(BY, queue, [SendEntry(one.body, attributes=one.attributes, priority=level)])
    assert bodies(await filtered(engine, queue, max=3)) == ["p01", "p03", "p09"]


async def test_a_fifo_queue_refuses_it_and_a_bad_filter_is_named(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}.fifo", QueueSettings(fifo=True))
    with pytest.raises(NotAllowedOnQueue):
        await filtered(engine, f"{queue}.fifo")
    await engine.queues.create_queue(BY, queue, QueueSettings())
    with pytest.raises(InvalidValue):
        await filtered(engine, queue, Filter([]))


async def test_several_receives_at_once_share_what_fits(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=3, lease_ms=60_000))
    await sent(engine, queue, *(entry(str(n), "red" if n % 2 else "blue") for n in range(40)))
    got = await asyncio.gather(*(filtered(engine, queue, max=3, wait_ms=1000) for _ in range(8)))
    came = [body for deliveries in got for body in bodies(deliveries)]
    assert sorted(came, key=int) == [str(n) for n in range(1, 40, 2)], "each once"
