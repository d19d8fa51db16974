"""A delivery that no answer carried is no delivery: the message is given back at its place, and its
count is as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import EngineError, LogUnavailable
from engine.log import Log
from engine.shapes import Delivery, QueueSettings, SendEntry
from schemas.records import RedrivePolicy
from state.errors import StateUnavailable
from state.store import Store
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send
from tests.integration.test_bodies import knows
from tests.integration.test_fifo import put, texts
from tests.integration.test_rebuild import drained, wipe
from tests.integration.test_verify import clean, verify
from tests.services import Services

HOUR = 3_600_000


@pytest.fixture
async def once(engine: Engine) -> AsyncIterator[Engine]:
    """An engine with queue q, of which a message dies after one delivery."""
    await engine.create_queue(BY, "dead", QueueSettings(partitions=1))
    await engine.create_queue(BY, "q", QueueSettings(partitions=1, redrive_policy=RedrivePolicy("dead", 1)))
    await knows(engine, alone=True)
    yield engine
    assert await receive(engine, "dead") == [], "a letter that nobody was ever given"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """`slow(seconds)`: from now on a lease that was made is heard of so much later."""
    pause_s, real = 0.0, Store.receive

    async def late(*given: Any, **named: Any) -> Any:
        received = await real(*given, **named)
        if received.leased:
            await asyncio.sleep(pause_s)
        return received

    def begin(seconds: float) -> None:
        nonlocal pause_s
        pause_s = seconds

    monkeypatch.setattr(Store, "receive", late)
    return begin


class Reads:
    """Reads of Kafka for bodies: `fails` says which offsets can't be read now, after `after_s`."""

    def __init__(self) -> None:
        self.fails: Callable[[int, int], bool] = lambda partition, offset: False
        self.after_s = 0.0
        self.times = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    made, real = Reads(), Log.read_at

    async def read(self: Log, topic: Any, partition: int, offsets: Any) -> Any:
        made.times += 1
        if any(made.fails(partition, offset) for offset in offsets):
            await asyncio.sleep(made.after_s)
            raise LogUnavailable("Kafka does not answer a fetch")
        return await real(self, topic, partition, offsets)

    monkeypatch.setattr(Log, "read_at", read)
    return made


def everything(partition: int, offset: int) -> bool:
    return True


def nothing(partition: int, offset: int) -> bool:
    return False


def forget_bodies(engine: Engine) -> None:
    """As after a restart: the worker has kept no bodies, and the window has none of what was sent
    until now.
    """
    for queue in engine.catalog.queues.values():
        engine.parts.units.bodies.forget_queue(queue)


async def entries(engine: Engine) -> int:
    """Journal entries of queue q so far."""
    return sum([await engine.store.last_seq(unit) for unit in engine.catalog.queues["q"].units])


async def first_deliveries(engine: Engine, number: int, within_s: float = 8.0) -> list[Delivery]:
    """`number` messages, as they come; each for the first time as far as anybody was told."""
    got: list[Delivery] = []

    async def all_came() -> bool:
        with contextlib.suppress(LogUnavailable):
            got.extend(await receive(engine, "q", max=100, lease_ms=HOUR))
        return len(got) >= number

    await eventually(all_came, within_s)
    assert [d.receive_count for d in got] == [1] * number
    return got


async def test_a_long_poll_that_ends_while_its_lease_is_made_gets_it(once: Engine, slow: Callable[[float], None]) -> None:
    await send(once, "q", *"abc")
    slow(0.2)
    got = await receive(once, "q", wait_ms=80, lease_ms=HOUR)
    assert texts(got) == ["a", "b", "c"] and [d.receive_count for d in got] == [1, 1, 1]


async def test_waits_shorter_than_a_read_get_what_is_read(once: Engine, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    await send(once, "q", *"abc")
    forget_bodies(once)
    read = Log.read_at

    async def slowly(*given: Any) -> Any:
        await asyncio.sleep(0.3)
        return await read(*given)

    monkeypatch.setattr(Log, "read_at", slowly)
    assert texts(await receive(once, "q", wait_ms=20, lease_ms=HOUR)) == ["a", "b", "c"]
    assert await receive(once, "q", wait_ms=20) == []


@pytest.mark.parametrize("wait_ms", [0, 5_000])
async def test_a_client_that_goes_while_its_lease_is_made_counts_nothing(once: Engine, slow: Callable[[float], None], wait_ms: int) -> None:
    await send(once, "q", *"abc")
    slow(0.2)
    task = asyncio.create_task(receive(once, "q", wait_ms=wait_ms, lease_ms=HOUR))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.sleep(0.3)
    slow(0)
    assert texts(await first_deliveries(once, 3)) == ["a", "b", "c"]


async def test_what_an_answer_could_not_carry_is_given_back(once: Engine) -> None:
    await send(once, "q", *"abc")
    leased = await receive(once, "q", lease_ms=HOUR)
    once.undelivered(leased)
    again = await first_deliveries(once, 3)
    assert texts(again) == ["a", "b", "c"]
    assert all(b.first_received_at_ms >= a.first_received_at_ms for a, b in zip(leased, again, strict=True))
    assert not {d.handle for d in leased} & {d.handle for d in again}
    once.undelivered(leased)  # of before: it changes nothing
    await asyncio.sleep(0.2)
    await ack(once, "q", again)


@pytest.mark.parametrize("wait_ms", [0, 300])
async def test_bodies_that_can_not_be_read_are_no_deliveries(once: Engine, reads: Reads, wait_ms: int) -> None:
    await send(once, "q", *"abcde")
    forget_bodies(once)
    reads.fails = everything
    for _ in range(3):
        with pytest.raises(LogUnavailable):
            await receive(once, "q", wait_ms=wait_ms, lease_ms=HOUR)
    reads.fails = nothing
    assert texts(await first_deliveries(once, 5)) == list("abcde")


async def test_a_lease_shorter_than_the_read_does_not_end_before_it(once: Engine, reads: Reads) -> None:
    await send(once, "q", "m")
    forget_bodies(once)
    reads.fails, reads.after_s = everything, 1.0
    first = asyncio.create_task(receive(once, "q", lease_ms=300))
    await asyncio.sleep(0.5)
    assert await receive(once, "q", lease_ms=HOUR) == []
    with pytest.raises(LogUnavailable):
        await first
    reads.fails = nothing
    await first_deliveries(once, 1)


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each send goes to another partition."""
    monkeypatch.setattr("engine.rules.placement.RUN", 1)


async def test_no_lease_ends_before_the_slowest_read_of_its_receive(engine: Engine, reads: Reads, in_turn: None) -> None:
    await engine.create_queue(BY, "dead", QueueSettings(partitions=1))
    await engine.create_queue(BY, "q", QueueSettings(partitions=2, redrive_policy=RedrivePolicy("dead", 1)))
    await knows(engine, alone=True)
    queue, number = engine.catalog.queues["q"], 0
    while len([unit for unit in queue.units if engine.parts.units.bodies.of.get(unit)]) < 2:
        await send(engine, "q", f"{number}")
        number += 1
    engine.parts.units.bodies.forget(queue.units[1], list(engine.parts.units.bodies.of[queue.units[1]]))
    reads.fails, reads.after_s = everything, 1.5
    slow = asyncio.create_task(receive(engine, "q", max=100, lease_ms=300))
    await asyncio.sleep(0.8)
    assert await receive(engine, "q", lease_ms=HOUR) == []
    got = await slow
    assert {d.partition for d in got} == {0}
    reads.fails = nothing
    engine.undelivered(got)
    await first_deliveries(engine, number)


async def test_a_partition_that_can_be_read_is_delivered_though_another_can_not(engine: Engine, reads: Reads, in_turn: None) -> None:
    await engine.create_queue(BY, "q", QueueSettings(partitions=4))
    await knows(engine, alone=True)
    await engine.send(BY, "q", [SendEntry(b"%d" % n) for n in range(4)])
    await send(engine, "q", *(f"{n}" for n in range(4, 40)))
    forget_bodies(engine)
    reads.fails = lambda partition, offset: partition == 1
    got = await receive(engine, "q", max=100, lease_ms=HOUR)
    assert got and {d.partition for d in got} <= {0, 2, 3}
    reads.fails = nothing
    rest = await first_deliveries(engine, 40 - len(got))
    assert {d.partition for d in rest} == {1}


async def test_of_a_group_nothing_is_delivered_before_what_can_not_be_read(engine: Engine, reads: Reads) -> None:
    await engine.create_queue(BY, "q", QueueSettings(fifo=True, partitions=1))
    await knows(engine, alone=True)
    await put(engine, "q", "a", "1", "2", "3", "4")
    (unit,) = engine.catalog.queues["q"].units
    engine.parts.units.bodies.forget(unit, [1])
    reads.fails = everything
    leased = await receive(engine, "q", lease_ms=HOUR)
    assert texts(leased) == ["1"]
    await asyncio.sleep(1.3)
    assert await receive(engine, "q") == []  # the first one is leased
    reads.fails = nothing
    await engine.release(BY, "q", [leased[0].handle])
    again = await receive(engine, "q", wait_ms=3000)
    assert texts(again) == ["1", "2", "3", "4"] and [d.receive_count for d in again] == [2, 1, 1, 1]


async def test_an_attempt_whose_client_has_gone_counts_nothing(engine: Engine, slow: Callable[[float], None]) -> None:
    await engine.create_queue(BY, "q", QueueSettings(fifo=True))
    await put(engine, "q", "a", "1", "2")
    slow(0.2)
    task = asyncio.create_task(engine.receive(BY, "q", None, 10, 0, HOUR, "k"))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.sleep(0.3)
    slow(0)
    first = await engine.receive(BY, "q", None, 10, 0, HOUR, "k")
    assert texts(first) == ["1", "2"] and [d.receive_count for d in first] == [1, 1]
    again = await engine.receive(BY, "q", None, 10, 0, HOUR, "k")
    assert [d.handle for d in again] == [d.handle for d in first]
    engine.undelivered(again)  # the answer before carried them
    await asyncio.sleep(0.3)
    await ack(engine, "q", again)


async def test_what_redis_has_is_what_the_journal_says(engine: Engine, reads: Reads, stack: Services) -> None:
    await engine.create_queue(BY, "q", QueueSettings(partitions=1))
    await engine.create_queue(BY, "fifo", QueueSettings(fifo=True, partitions=1))
    await knows(engine, alone=True)
    await send(engine, "q", *"abcdef")
    for group in "xyz":
        await put(engine, "fifo", group, "1", "2")
    for queue in ("q", "fifo"):
        await engine.release(BY, queue, [d.handle for d in await receive(engine, queue, max=2)])
        engine.undelivered(await receive(engine, queue, max=4, lease_ms=HOUR))

    async def nothing_lent() -> bool:
        return all([(await engine.get_queue(BY, queue)).tags[0].leased == 0 for queue in ("q", "fifo")])

    await eventually(nothing_lent)
    forget_bodies(engine)
    reads.fails = everything
    for queue in ("q", "fifo"):
        with pytest.raises(LogUnavailable):
            await receive(engine, queue, max=3, lease_ms=HOUR)
    reads.fails = nothing
    clean(await verify(engine))
    await drained(engine)
    wipe(stack, engine)
    counts = {}
    for queue, number in (("q", 6), ("fifo", 6)):
        got: list[Delivery] = []
        while len(got) < number:
            with contextlib.suppress(LogUnavailable):  # for a second after a body could not be read
                got += await receive(engine, queue, max=100, wait_ms=3000, lease_ms=HOUR)
        counts[queue] = sorted(d.receive_count for d in got)
    assert counts == {"q": [1, 1, 1, 1, 2, 2], "fifo": [1, 1, 1, 1, 2, 2]}
    clean(await verify(engine))


async def test_receives_do_not_fill_the_journal_while_nothing_can_be_read(once: Engine, reads: Reads) -> None:
    for n in range(5):
        await once.send(BY, "q", [SendEntry(b"%d" % (n * 100 + i)) for i in range(100)])
    forget_bodies(once)
    reads.fails = everything
    before = await entries(once)
    loop = asyncio.get_running_loop()
    end, refused = loop.time() + 3, 0

    async def ask(wait_ms: int) -> None:
        nonlocal refused
        while loop.time() < end:
            try:
                assert await receive(once, "q", wait_ms=wait_ms) == []
            except LogUnavailable:
                refused += 1
            await asyncio.sleep(0.002)

    await asyncio.gather(*(ask(wait_ms) for wait_ms in (0, 0, 20, 50, 100)))
    # About one look a second by each that was under way when the first failed; without a rest they
    # are thousands.
    assert await entries(once) - before < 60 and refused > 0
    reads.fails = nothing
    await asyncio.sleep(1.1)
    assert len(await drain(once, "q", expect=500)) == 500


async def test_redis_that_is_away_is_told_when_it_is_back(once: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await send(once, "q", *"abc")
    leased = await receive(once, "q", lease_ms=HOUR)
    real, refused = Store.give_back, 0

    async def away(*given: Any, **named: Any) -> Any:
        nonlocal refused
        refused += 1
        raise StateUnavailable("away")

    monkeypatch.setattr(Store, "give_back", away)
    once.undelivered(leased)
    await asyncio.sleep(0.5)
    monkeypatch.setattr(Store, "give_back", real)
    await first_deliveries(once, 3)
    assert refused > 1


async def test_a_worker_that_stops_gives_back_what_it_had_for_clients_that_are_gone(
    make_engine: MakeEngine, slow: Callable[[float], None]
) -> None:
    first, second = await make_engine(), await make_engine()
    await first.create_queue(BY, "q", QueueSettings(partitions=1))
    waiting = [asyncio.create_task(receive(first, "q", max=1, wait_ms=20_000, lease_ms=HOUR)) for _ in range(3)]
    await asyncio.sleep(0.3)
    slow(0.3)
    await first.send(BY, "q", [SendEntry(b"%d" % n) for n in range(3)])
    await asyncio.sleep(0.1)
    for task in waiting:
        task.cancel()
    await asyncio.gather(first.stop(), *waiting, return_exceptions=True)
    slow(0)
    got = await receive(second, "q", wait_ms=3000)
    assert [d.receive_count for d in got] == [1, 1, 1]


async def test_an_error_after_the_lease_leaves_nothing_leased(once: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong when deliveries are made of a lease."""
    await send(once, "q", *"abc")
    forget_bodies(once)

    async def broken(*given: Any) -> Any:
        raise KeyError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Log, "read_at", broken)
        for wait_ms in (0, 300):
            with contextlib.suppress(KeyError, EngineError):
                assert await receive(once, "q", wait_ms=wait_ms, lease_ms=HOUR) == []
    await first_deliveries(once, 3)
