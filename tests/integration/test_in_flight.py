"""How much may be in flight at once: more than the window holds bodies for. Real Kafka and
Redis.
"""

from __future__ import annotations

import asyncio

import pytest
import redis

from engine.engine import Engine
from engine.errors import TooManyInFlight
from engine.rules.limits import MAX_IN_FLIGHT
from engine.shapes import Delivery, SendEntry
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, all_wait, receive, send
from tests.services import Services

HELD = 600_000
HOUR = 3_600_000


async def fill(engine: Engine, queue: str, count: int, size: int = 10) -> None:
    for start in range(0, count, 2_000):
        sends = range(start, min(start + 2_000, count), 100)
        await asyncio.gather(
            *(
                engine.messages.send(BY, queue, [SendEntry(b"%08d" % (at + n) + b"x" * size) for n in range(100)])
                for at in sends
            )
        )


async def lease(
    engine: Engine, queue: str, count: int, tag: str | None = None, wait_ms: int = 10_000
) -> list[Delivery]:
    """Received and kept, until there are `count` or nothing comes."""
    leased: list[Delivery] = []
    while len(leased) < count and (
        got := await receive(engine, queue, max=100, wait_ms=wait_ms, lease_ms=HELD, tag=tag)
    ):
        leased += got
    return leased


@pytest.mark.parametrize("tags", [1, 2])
@pytest.mark.parametrize("size", [10, 1_000])
async def test_far_more_is_leased_than_the_window_has_bodies_for(make_engine: MakeEngine, tags: int, size: int) -> None:
    """Also where another tag holds all the bodies that there is room for, and where bytes end
    before messages.
    """
    engine = await make_engine(window_messages=100, window_bytes=65_536, kept_bytes=0)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    if tags > 1:
        await engine.queues.create_tag(BY, "q", "slow", 0, None, {})
    await fill(engine, "q", 2_000, size)
    leased = await lease(engine, "q", 2_000)
    assert len({d.id for d in leased}) == 2_000
    for at in range(0, 2_000, 100):
        await ack(engine, "q", leased[at : at + 100])
    if tags > 1:
        assert len(await lease(engine, "q", 2_000, "slow")) == 2_000


async def test_beyond_the_limit_a_receive_says_so_until_one_is_settled(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On each of two workers, to who waits and who does not; other tags have limits of their own,
    and delays don't count.
    """
    monkeypatch.setattr("engine.receive.poll.MAX_IN_FLIGHT", 5_000)
    one, two = await make_engine(), await make_engine()
    await one.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await one.queues.create_tag(BY, "q", "other", 0, None, {})
    await one.messages.send(BY, "q", [SendEntry(b"later", delay_ms=HELD)] * 100)
    await fill(one, "q", 6_000)
    with pytest.raises(TooManyInFlight) as refused:
        await lease(one, "q", 6_000)
    assert refused.value.limit == 5_000 and "'q'" in refused.value.detail
    leased = refused.value.given
    assert 5_000 <= leased < 5_100 and (await one.queues.get_queue(BY, "q")).tags[0].leased == leased
    for engine in (one, two):
        for wait_ms in (0, 700):
            with pytest.raises(TooManyInFlight) as refused:
                await receive(engine, "q", max=1, wait_ms=wait_ms)
            assert (refused.value.given, refused.value.waited, refused.value.fifo) == (leased, wait_ms > 0, False)
    assert len(await receive(two, "q", tag="other")) == 10
    assert one.parts.base.counters.values["receives_over_limit_total"] >= 2


async def test_who_waits_at_the_limit_is_served_when_one_is_acked(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.receive.poll.MAX_IN_FLIGHT", 2_000)
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await fill(engine, queue, 2_000)
    await send(engine, queue, "last")
    leased = await lease(engine, queue, 2_000)
    assert len(leased) == 2_000
    waiting = asyncio.create_task(receive(engine, queue, wait_ms=10_000))
    await all_wait(engine)
    await ack(engine, queue, leased[:1])
    assert [d.message.body for d in await waiting] == [b"last"]
    await ack(engine, queue, leased[1:100])
    assert await receive(engine, queue, wait_ms=300) == []


async def test_a_fifo_queue_has_the_same_limit(engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.receive.poll.MAX_IN_FLIGHT", 2_000)
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True))
    for at in range(0, 2_100, 100):
        await engine.messages.send(
            BY, queue, [SendEntry(b"x", group=f"g{at + n}", dedup_id=f"d{at + n}") for n in range(100)]
        )
    with pytest.raises(TooManyInFlight) as refused:
        await lease(engine, queue, 2_100, wait_ms=2_000)
    assert refused.value.given == 2_000 and refused.value.fifo


@pytest.mark.long
async def test_as_many_are_leased_as_sqs_lends_and_redis_has_room_for_them(
    make_engine: MakeEngine, stack: Services
) -> None:
    """120,000 in a default queue, beside four windows full of bodies, fit into 64 MiB; then a
    receive is refused.
    """
    engine = await make_engine(kept_bytes=0)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await fill(engine, "q", MAX_IN_FLIGHT + 1_000, 1_000)
    leased: set[str] = set()

    async def lease_all() -> None:
        while got := await receive(engine, "q", max=100, wait_ms=10_000, lease_ms=HOUR):
            leased.update(d.id for d in got)

    with pytest.raises(TooManyInFlight) as refused:
        await lease_all()
    assert MAX_IN_FLIGHT == 120_000 <= len(leased) < 120_100 and refused.value.given == len(leased)
    with redis.Redis.from_url(stack.redis_url) as client:
        units = engine.catalog.queues["q"].units
        keys = [key for unit in units for key in client.scan_iter(f"*{unit.incarnation}:{unit.partition}}}:*")]
        sizes = {key: client.memory_usage(key, samples=0) or 0 for key in keys}
    bodies = sum(size for key, size in sizes.items() if key.endswith(b":body"))
    rest = sum(sizes.values()) - bodies
    print(f"bytes of Redis for each message in flight: {rest / len(leased):.0f}; bodies {bodies}")
    assert rest + 4 * 6_000_000 < 60 * 2**20
    assert bodies < 4 * 6_500_000
