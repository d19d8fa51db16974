"""Messages that are leased ahead of receives: who asks next has them at once, nobody's lease is
shorter for it, and what nobody asks for is as it was.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import StoreUnavailable
from engine.receive.ahead import MARGIN_MS, MOST, Ahead
from engine.receive.waiters import WaitList
from engine.shapes import Delivery, QueueSettings, SendEntry
from engine.window.body_cache import BodyCache
from engine.window.window import AHEAD_S
from schemas.filters import Condition, Filter
from schemas.records import Attribute, RedrivePolicy
from state.errors import StateUnavailable
from state.store import Store
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, knows, receive, send

LEASE_MS = 20_000


@pytest.fixture
async def alone(engine: Engine) -> Engine:
    """The worker knows that it is the only one."""
    await knows(engine, alone=True)
    return engine


def line_of(engine: Engine, queue: str) -> WaitList:
    found = engine.catalog.queues[queue]
    return engine.parts.units.wait_lists.for_tag(found, found.tags[0])


async def filled(engine: Engine, queue: str, count: int, **settings: object) -> None:
    await engine.create_queue(BY, queue, QueueSettings(**{"partitions": 1, "lease_ms": LEASE_MS, **settings}))  # type: ignore[arg-type]
    for begin in range(0, count, 100):
        await engine.send(BY, queue, [SendEntry(b"%d" % n) for n in range(begin, min(begin + 100, count))])


async def leased_ahead(engine: Engine, queue: str, *, lease_ms: int | None = None, many: bool = False) -> list[Delivery]:
    """Receives one by one, as if others did too (`many`: a crowd), until something is leased
    ahead; what was received.
    """
    got: list[Delivery] = []
    line = line_of(engine, queue)
    for _ in range(50):
        line.stock.note(50 if many else 5, time.monotonic())
        got += await receive(engine, queue, max=1, wait_ms=1000, lease_ms=lease_ms)
        if len(line.stock) > (20 if many else 0):
            break
    return got


@pytest.fixture
def for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is leased ahead may wait for seconds."""
    monkeypatch.setattr("engine.receive.pump.AHEAD_S", 5.0)


@pytest.mark.usefixtures("for_long")
async def test_who_asks_next_has_it_without_a_call_to_redis(alone: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(alone, queue, 300)
    calls, real, line = [], Store.receive, line_of(alone, queue)

    async def counted(*given: object, **named: object) -> object:
        calls.append(given)
        return await real(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "receive", counted)
    bodies = []

    async def client() -> None:
        while got := await receive(alone, queue, max=1, wait_ms=300):
            line.stock.note(20, time.monotonic())  # however slow this machine is
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
        before_ms = time.time() * 1000
        (one,) = await receive(alone, queue, max=1, wait_ms=1000, lease_ms=lease_ms)
        until_ms, after_ms = one.next_visible_at_ms - (lease_ms or LEASE_MS), time.time() * 1000
        assert before_ms - 2 <= until_ms <= after_ms + MARGIN_MS  # Redis and we read the clock in ms


async def test_what_nobody_asks_for_is_as_it_was(alone: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.receive.pump.AHEAD_S", 1.0)
    await filled(alone, queue, 60)
    got = await leased_ahead(alone, queue)
    line = line_of(alone, queue)
    assert 0 < len(line.stock) <= MOST

    async def all_visible() -> bool:
        info = await alone.get_queue(BY, queue)
        return not line.stock and info.tags[0].ready == 60 - len(got)

    await eventually(all_visible, within_s=4)
    rest: list[Delivery] = []
    while more := await receive(alone, queue, max=100):
        rest += more
    assert sorted(int(d.message.body) for d in got + rest) == list(range(60))
    assert {d.receive_count for d in rest} == {1}


@pytest.mark.parametrize("timer", ["fires", "is late"])
@pytest.mark.parametrize("wait_ms", [0, 1000])
async def test_what_goes_back_comes_before_what_is_newer(
    alone: Engine, queue: str, monkeypatch: pytest.MonkeyPatch, wait_ms: int, timer: str
) -> None:
    real = Store.give_back

    async def slow(*given: Any, **named: Any) -> Any:
        await asyncio.sleep(0.2)
        return await real(*given, **named)

    monkeypatch.setattr(Store, "give_back", slow)
    monkeypatch.setattr("engine.receive.pump.AHEAD_S", 0.5)  # however slow this machine is
    if timer == "is late":
        monkeypatch.setattr(Ahead, "_end", lambda *_: None)
    # A hundred in one partition, the next in the other, and then in the first again.
    await filled(alone, queue, 300, partitions=2)
    got = await receive(alone, queue, max=60)
    got += await leased_ahead(alone, queue, many=True)
    held = len(line_of(alone, queue).stock)
    assert held > 20
    await asyncio.sleep(0.52)
    for _ in range(held + 1):
        got += await receive(alone, queue, max=1, wait_ms=wait_ms)
    assert [int(d.message.body) for d in got] == list(range(len(got)))


@pytest.mark.usefixtures("for_long")
@pytest.mark.parametrize("wait_ms", [0, 1000])
@pytest.mark.parametrize("most", [1, 10, 100])
async def test_receives_get_the_first_of_it(alone: Engine, queue: str, most: int, wait_ms: int) -> None:
    await filled(alone, queue, 60)
    got = await leased_ahead(alone, queue, many=True)
    ahead = len(line_of(alone, queue).stock)
    found = await receive(alone, queue, max=most, wait_ms=wait_ms)
    assert [int(d.message.body) for d in found] == list(range(len(got), len(got) + min(most, ahead)))


@pytest.mark.usefixtures("for_long")
@pytest.mark.parametrize("wait_ms", [0, 1000])
async def test_a_receive_with_another_lease_finds_all_but_it(alone: Engine, queue: str, wait_ms: int) -> None:
    await filled(alone, queue, 60)
    got = await leased_ahead(alone, queue, many=True)
    found = await receive(alone, queue, max=60, wait_ms=wait_ms, lease_ms=90_000)
    held = len(line_of(alone, queue).stock)
    # One that does not wait would say that there is nothing: it is given back first.
    assert len(found) == 60 - len(got) - held and (held == 0) == (wait_ms == 0)
    assert all(d.next_visible_at_ms - time.time() * 1000 > 80_000 for d in found)


@pytest.mark.usefixtures("for_long")
async def test_after_a_purge_nobody_gets_it(alone: Engine, queue: str) -> None:
    await filled(alone, queue, 60)
    await leased_ahead(alone, queue, many=True)
    await alone.purge(BY, queue)
    assert line_of(alone, queue).stock
    await send(alone, queue, "new")
    assert await drain(alone, queue, expect=1) == ["new"]


@pytest.mark.usefixtures("for_long")
async def test_after_a_purge_by_another_worker_nobody_gets_it(make_engine: MakeEngine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has begun so lately that this one does not know of it, nor of the purge yet."""
    for place in ("engine.receive.pump", "engine.queues.queues"):
        monkeypatch.setattr(f"{place}.AHEAD_S", 1.0)
    one, other = await make_engine(), await make_engine()
    monkeypatch.setattr(BodyCache, "is_only_worker", property(lambda _: True, lambda *_: None), raising=False)
    await filled(one, queue, 60)
    await other.catalog.sync()
    await leased_ahead(one, queue)
    assert line_of(one, queue).stock
    monkeypatch.setattr(one.catalog, "_apply", lambda *_: None)
    await other.purge(BY, queue)
    assert await receive(one, queue, max=100, wait_ms=0) == []


async def test_a_filter_finds_it(alone: Engine, queue: str) -> None:
    await alone.create_queue(BY, queue, QueueSettings(partitions=1))
    await alone.send(BY, queue, [SendEntry(b"%d" % n, {"red": Attribute("string", b"")}) for n in range(60)])
    got = await leased_ahead(alone, queue, many=True)
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

    await asyncio.sleep(1.2)
    for engine in (first, second):
        await knows(engine, alone=False)
    await filled(first, queue, 60)
    assert len(await leased_ahead(first, queue)) == 50
    assert await drain(second, queue, expect=10) != []


async def test_another_tag_and_a_worker_that_is_not_known_yet_get_theirs_meanwhile(make_engine: MakeEngine, queue: str) -> None:
    first = await make_engine()
    await knows(first, alone=True)
    await first.create_queue(BY, queue, QueueSettings(partitions=2, lease_ms=LEASE_MS))
    await first.create_tag(BY, queue, "other", 0, None, {})
    for begin in range(0, 10_000, 100):
        await first.send(BY, queue, [SendEntry(b"%d" % n) for n in range(begin, begin + 100)])
    mine: list[Delivery] = []
    is_over, was_ahead = False, False

    async def busy() -> None:
        nonlocal was_ahead
        while not is_over:
            mine.extend(await receive(first, queue, max=1, wait_ms=200))
            was_ahead = was_ahead or len(line_of(first, queue).stock) > 0

    crowd = [asyncio.create_task(busy()) for _ in range(8)]

    async def ahead() -> bool:
        return was_ahead

    await eventually(ahead)
    second = await make_engine()
    theirs = await receive(second, queue, max=10, wait_ms=2_000)
    assert len(mine) + len(theirs) < 10_000, "the first had taken all before"
    of_tag: list[Delivery] = []
    while len(of_tag) < 500:
        more = await receive(first, queue, max=100, wait_ms=2_000, tag="other")
        assert more
        of_tag += more
    is_over = True
    await asyncio.gather(*crowd)
    assert theirs and {d.receive_count for d in theirs + of_tag} == {1}
    assert not {d.id for d in mine} & {d.id for d in theirs} and len({d.id for d in mine}) == len(mine)


@pytest.mark.usefixtures("for_long")
async def test_a_worker_that_stops_gives_it_back(make_engine: MakeEngine, queue: str) -> None:
    first = await make_engine()
    await knows(first, alone=True)
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


async def test_nothing_is_leased_ahead_while_bodies_come_from_kafka(own_engine: Engine, queue: str) -> None:
    await knows(own_engine, alone=True)
    await filled(own_engine, queue, 200)
    own_engine.parts.units.bodies.forget(own_engine.catalog.queues[queue].units[0], range(200))
    got = await leased_ahead(own_engine, queue, many=True)
    assert len(got) == 50
    info = await own_engine.get_queue(BY, queue)
    assert info.tags[0].leased == 50


async def test_a_worker_that_stood_still_hands_out_nothing_late(alone: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(alone, queue, 100, lease_ms=1_000)
    real = Store.receive
    stands: list[bool] = []

    async def stopped(*given: object, **named: object) -> object:
        answer = await real(*given, **named)  # type: ignore[arg-type]
        if stands:
            stands.clear()
            time.sleep(1.5)  # the whole process
        return answer

    monkeypatch.setattr(Store, "receive", stopped)
    line = line_of(alone, queue)
    line.stock.note(30, time.monotonic())
    stands.append(True)
    await receive(alone, queue, max=1, wait_ms=1000)
    for _ in range(5):
        began_ms = time.time() * 1000
        (one,) = await receive(alone, queue, max=1, wait_ms=1000)
        assert one.next_visible_at_ms >= began_ms + 1_000 - 5


@pytest.mark.usefixtures("for_long")
async def test_no_more_than_the_bound_is_kept_when_waiters_leave(alone: Engine, queue: str) -> None:
    await filled(alone, queue, 600, partitions=4)
    line = line_of(alone, queue)
    await receive(alone, queue, max=1, wait_ms=1000)
    line.stock.empty()
    line.stock.note(50, time.monotonic())
    waiting = [asyncio.ensure_future(receive(alone, queue, max=100, wait_ms=1000)) for _ in range(3)]
    while not line.pumping or line.waiters:
        await asyncio.sleep(0)
    for one in waiting:
        one.cancel()
    most = 0
    for _ in range(100):
        await asyncio.sleep(0.001)
        most = max(most, len(line.stock))
    assert 0 < most <= MOST


@pytest.mark.usefixtures("for_long")
async def test_a_filter_says_soon_that_redis_is_away(alone: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(alone, queue, 60)
    await leased_ahead(alone, queue, many=True)

    async def away(*given: object, **named: object) -> object:
        raise StateUnavailable("away")

    with monkeypatch.context() as patch:
        for verb in ("give_back", "receive", "pick", "info"):
            patch.setattr(Store, verb, away)
        with pytest.raises(StoreUnavailable):
            async with asyncio.timeout(5):
                await alone.receive(BY, queue, None, 10, 0, None, filter=Filter([Condition("red")]))
