"""Messages that are leased ahead of receives: who asks next has them at once, nobody's lease is
shorter for it, and what nobody asks for is as it was.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from engine.engine import Engine
from engine.receive.ahead import AHEAD_S, MARGIN_MS, MOST
from engine.receive.waiters import WaitList
from engine.shapes import Delivery, QueueSettings, SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute, RedrivePolicy
from state.store import Store
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, receive, send

LEASE_MS = 20_000


@pytest.fixture
async def alone(engine: Engine) -> Engine:
    """The worker knows that it is the only one."""

    async def known() -> bool:
        return engine.parts.units.bodies.is_only_worker

    await eventually(known)
    return engine


def line_of(engine: Engine, queue: str) -> WaitList:
    found = engine.catalog.queues[queue]
    return engine.parts.units.wait_lists.for_tag(found, found.tags[0])


async def filled(engine: Engine, queue: str, count: int, **settings: object) -> None:
    await engine.create_queue(BY, queue, QueueSettings(**{"partitions": 1, "lease_ms": LEASE_MS, **settings}))  # type: ignore[arg-type]
    for begin in range(0, count, 100):
        await engine.send(BY, queue, [SendEntry(b"%d" % n) for n in range(begin, min(begin + 100, count))])


async def leased_ahead(engine: Engine, queue: str, *, lease_ms: int | None = None) -> list[Delivery]:
    """Receives one by one until something is leased ahead; what was received."""
    got: list[Delivery] = []
    for _ in range(50):
        got += await receive(engine, queue, max=1, wait_ms=1000, lease_ms=lease_ms)
        if line_of(engine, queue).stock:
            break
    return got


async def test_who_asks_next_has_it_without_a_call_to_redis(alone: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(alone, queue, 300)
    calls, real = [], Store.receive

    async def counted(*given: object, **named: object) -> object:
        calls.append(given)
        return await real(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "receive", counted)
    bodies = []

    async def client() -> None:
        while got := await receive(alone, queue, max=1, wait_ms=300):
            bodies.append(int(got[0].message.body))
            await alone.ack(BY, queue, [got[0].handle])

    await asyncio.gather(*(client() for _ in range(4)))
    assert sorted(bodies) == list(range(300))
    assert len(calls) < 100


async def test_a_lease_is_as_long_as_was_asked_for_from_when_it_is_handed_out(alone: Engine, queue: str) -> None:
    await filled(alone, queue, 200)
    for lease_ms in (None, 5_000):
        await leased_ahead(alone, queue, lease_ms=lease_ms)
        await asyncio.sleep(AHEAD_S / 2)
        (one,) = await receive(alone, queue, max=1, wait_ms=1000, lease_ms=lease_ms)
        left_ms = one.next_visible_at_ms - time.time() * 1000
        assert 0 <= left_ms - (lease_ms or LEASE_MS) + 5 <= MARGIN_MS + 5


async def test_what_nobody_asks_for_is_as_it_was(alone: Engine, queue: str) -> None:
    await filled(alone, queue, 60)
    got = await leased_ahead(alone, queue)
    line = line_of(alone, queue)
    assert 0 < len(line.stock) <= MOST

    async def all_visible() -> bool:
        info = await alone.get_queue(BY, queue)
        return not line.stock and info.tags[0].ready == 60 - len(got)

    await eventually(all_visible, within_s=AHEAD_S + 2)
    rest: list[Delivery] = []
    while more := await receive(alone, queue, max=100):
        rest += more
    assert sorted(int(d.message.body) for d in got + rest) == list(range(60))
    assert {d.receive_count for d in rest} == {1}


@pytest.mark.parametrize("most", [1, 10, 100])
async def test_a_receive_that_does_not_wait_finds_it(alone: Engine, queue: str, most: int) -> None:
    await filled(alone, queue, 40)
    got = await leased_ahead(alone, queue)
    ahead = len(line_of(alone, queue).stock)
    found = await receive(alone, queue, max=most)
    assert len(found) == min(most, 40 - len(got)) and ahead > 0
    assert int(found[0].message.body) == len(got)


async def test_a_receive_that_wants_more_gets_what_is_behind_it_too(alone: Engine, queue: str) -> None:
    await filled(alone, queue, 40)
    got = await leased_ahead(alone, queue)
    found = await receive(alone, queue, max=40, wait_ms=1000)
    assert [int(d.message.body) for d in found] == list(range(len(got), 40))


async def test_another_lease_is_not_served_from_it(alone: Engine, queue: str) -> None:
    await filled(alone, queue, 40)
    await leased_ahead(alone, queue)
    (one,) = await receive(alone, queue, max=1, wait_ms=1000, lease_ms=90_000)
    assert one.next_visible_at_ms - time.time() * 1000 > 80_000


async def test_after_a_purge_nobody_gets_it(alone: Engine, queue: str) -> None:
    await filled(alone, queue, 60)
    await leased_ahead(alone, queue)
    await alone.purge(BY, queue)
    await send(alone, queue, "new")
    assert await drain(alone, queue, expect=1) == ["new"]


async def test_a_filter_finds_it(alone: Engine, queue: str) -> None:
    await alone.create_queue(BY, queue, QueueSettings(partitions=1))
    await alone.send(BY, queue, [SendEntry(b"%d" % n, {"red": Attribute("string", b"")}) for n in range(60)])
    got = await leased_ahead(alone, queue)
    assert line_of(alone, queue).stock
    found = await alone.receive(BY, queue, None, 100, 0, None, filter=Filter([Condition("red")]))
    assert [int(d.message.body) for d in found] == list(range(len(got), 60))


@pytest.mark.parametrize(
    "settings",
    [
        {"fifo": True, "content_dedup": False},
        {"priority": True},
        {"redrive_policy": RedrivePolicy("dead", 3)},
        {"lease_ms": 500},
    ],
    ids=["FIFO", "priority", "messages die", "short leases"],
)
async def test_nothing_is_leased_ahead_where_order_or_counts_matter(alone: Engine, queue: str, settings: dict[str, object]) -> None:
    if "redrive_policy" in settings:
        await alone.create_queue(BY, f"{queue}-dead", QueueSettings(partitions=1))
        settings = {"redrive_policy": RedrivePolicy(f"{queue}-dead", 3)}
    if "fifo" in settings:
        queue = f"{queue}.fifo"
    await alone.create_queue(BY, queue, QueueSettings(**settings))  # type: ignore[arg-type]
    fifo = queue.endswith(".fifo")
    await alone.send(
        BY, queue, [SendEntry(b"%d" % n, group=f"g{n}" if fifo else None, dedup_id=str(n) if fifo else None) for n in range(60)]
    )
    assert len(await leased_ahead(alone, queue)) == 50
    assert not line_of(alone, queue).stock


async def test_messages_with_groups_or_leases_of_their_own_are_not_kept(alone: Engine, queue: str) -> None:
    for name, entry in ((f"{queue}-g", {"group": "g"}), (f"{queue}-l", {"lease_ms": 9_000})):
        await alone.create_queue(BY, name, QueueSettings(partitions=1))
        await alone.send(BY, name, [SendEntry(b"%d" % n, **entry) for n in range(60)])
        assert len(await leased_ahead(alone, name)) == 50
        assert not line_of(alone, name).stock


async def test_nothing_is_leased_ahead_beside_another_worker(make_engine: MakeEngine, queue: str) -> None:
    first, second = await make_engine(), await make_engine()

    async def known() -> bool:
        return not any(engine.parts.units.bodies.is_only_worker for engine in (first, second))

    await asyncio.sleep(1.2)
    await eventually(known)
    await filled(first, queue, 60)
    assert len(await leased_ahead(first, queue)) == 50
    assert await drain(second, queue, expect=10) != []


async def test_a_worker_that_stops_gives_it_back(make_engine: MakeEngine, queue: str) -> None:
    first = await make_engine()

    async def known() -> bool:
        return first.parts.units.bodies.is_only_worker

    await eventually(known)
    await filled(first, queue, 60)
    got = await leased_ahead(first, queue)
    assert line_of(first, queue).stock
    await first.stop()
    second = await make_engine()
    rest: list[Delivery] = []
    while more := await receive(second, queue, max=100, wait_ms=1000):
        rest += more
    assert sorted(int(d.message.body) for d in got + rest) == list(range(60))
    assert {d.receive_count for d in rest} == {1}


async def test_bodies_that_come_from_kafka_are_kept_too(own_engine: Engine, queue: str) -> None:
    async def known() -> bool:
        return own_engine.parts.units.bodies.is_only_worker

    await eventually(known)
    await filled(own_engine, queue, 200)
    unit = own_engine.catalog.queues[queue].units[0]
    own_engine.parts.units.bodies.forget(unit, range(200))
    bodies: list[int] = []

    async def client() -> None:
        while got := await receive(own_engine, queue, max=1, wait_ms=500):
            bodies.append(int(got[0].message.body))
            await own_engine.ack(BY, queue, [got[0].handle])

    await asyncio.gather(*(client() for _ in range(8)))
    assert sorted(bodies) == list(range(200))
    assert own_engine.counts().get("deliveries_returned_total", 0) < 100
