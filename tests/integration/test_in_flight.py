"""How much may be in flight at once: more than the window holds bodies for. Real Kafka and
Redis.
"""

from __future__ import annotations

import asyncio

import pytest
import redis

from engine.engine import Engine
from engine.errors import TooManyInFlight
from engine.shapes import Delivery, SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute
from schemas.records.settings import MAX_IN_FLIGHT, QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, all_wait, receive, send
from tests.integration.test_rebuild import drained, wipe
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


async def leased_now(engine: Engine, queue: str, tag: str = "default") -> int:
    """What the counts of a tag say."""
    return next(one.leased for one in (await engine.queues.get_queue(BY, queue)).tags if one.name == tag)


async def test_of_two_workers_no_more_have_than_the_queue_lets_be_in_flight(make_engine: MakeEngine) -> None:
    """Each worker has half of the waiting receives, and every message takes as long as it takes."""
    engines = await make_engine(), await make_engine()
    await engines[0].queues.create_queue(BY, "q", QueueSettings(partitions=3, max_in_flight=3, lease_ms=HELD))
    await engines[0].queues.create_tag(BY, "q", "other", 0, None, {})
    await fill(engines[0], "q", 300)
    had: list[int] = []
    done: set[str] = set()
    busy = most = 0

    async def work(engine: Engine, number: int) -> None:
        nonlocal busy, most
        while len(done) < 300:
            got = await receive(engine, "q", max=1 + number % 3, wait_ms=500)
            busy += len(got)
            most = max(most, busy)
            had.append(busy)
            await asyncio.sleep(0.002 * (number % 4))
            # It counts as done before the ack: its slot may be free before the answer is here.
            busy -= len(got)
            await ack(engine, "q", got)
            done.update(one.id for one in got)

    await asyncio.gather(*(work(engines[n % 2], n) for n in range(12)))
    assert most == 3 and len(done) == 300
    assert len(await receive(engines[1], "q", max=10, tag="other", wait_ms=2_000)) == 3, "a tag has a number of its own"


async def test_a_lease_that_ends_makes_room_and_a_new_number_holds_for_what_is_leased(make_engine: MakeEngine) -> None:
    one, two = await make_engine(), await make_engine()
    await one.queues.create_queue(BY, "q", QueueSettings(partitions=2, max_in_flight=3))
    await fill(one, "q", 20)
    assert len(await lease(one, "q", 10, wait_ms=0)) == 3
    assert await receive(two, "q", max=10, wait_ms=300) == []
    await two.queues.set_queue(BY, "q", QueueSettings(max_in_flight=5))
    assert len(await receive(two, "q", max=10, wait_ms=2_000, lease_ms=400)) == 2
    began = asyncio.get_running_loop().time()
    assert len(await receive(two, "q", max=10, wait_ms=5_000, lease_ms=HELD)) == 2
    assert 0.2 < asyncio.get_running_loop().time() - began < 3
    await two.queues.set_queue(BY, "q", QueueSettings(max_in_flight=2))
    await two.queues.set_queue(BY, "q", QueueSettings(max_in_flight=0))
    assert len(await receive(two, "q", max=100, wait_ms=2_000)) > 5


@pytest.mark.parametrize("fifo", [False, True], ids=["standard", "fifo"])
async def test_what_is_in_flight_counts_after_redis_was_wiped(own_engine: Engine, stack: Services, fifo: bool) -> None:
    settings = QueueSettings(partitions=3, max_in_flight=4, fifo=fifo or None, lease_ms=HELD)
    await own_engine.queues.create_queue(BY, "q", settings)
    for n in range(30):
        entry = SendEntry(b"%d" % n, group=f"g{n}", dedup_id=str(n)) if fifo else SendEntry(b"%d" % n)
        await own_engine.messages.send(BY, "q", [entry])
    leased = await lease(own_engine, "q", 4)
    assert len(leased) == 4
    await drained(own_engine)
    for _ in range(2):
        wipe(stack, own_engine)
        assert await receive(own_engine, "q", max=10, wait_ms=1_500) == []
        assert await leased_now(own_engine, "q") == 4
    wipe(stack, own_engine)
    await ack(own_engine, "q", leased[:1])
    assert len(await lease(own_engine, "q", 2, wait_ms=1_500)) == 1


async def test_a_receive_with_a_filter_counts_too(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2, max_in_flight=2))
    wanted = {"kind": Attribute("string", b"wanted")}
    for n in range(6):
        await engine.messages.send(BY, queue, [SendEntry(b"%d" % n, attributes=wanted if n % 2 else {})])
    fits = Filter([Condition("kind", "string", b"wanted")])

    async def filtered() -> list[Delivery]:
        return await engine.messages.receive(BY, queue, None, 10, 0, HELD, filter=fits)

    assert len(await receive(engine, queue, max=1)) == 1
    got = await filtered()
    assert len(got) == 1 and await filtered() == []
    await ack(engine, queue, got)
    assert len(await filtered()) == 1


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
