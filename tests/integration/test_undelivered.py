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
from engine.errors import EngineError, LogUnavailable, StoreUnavailable
from engine.journal.outbox import Outbox
from engine.log import Log
from engine.shapes import Delivery, SendEntry
from schemas.records.settings import QueueSettings, RedrivePolicy
from state.errors import StateUnavailable
from state.leases import LeaseScripts
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, all_wait, eventually, knows, receive, send
from tests.integration.test_fifo import put, texts
from tests.integration.test_rebuild import drained, wipe
from tests.integration.test_verify import clean, verify
from tests.services import Services

HOUR = 3_600_000


@pytest.fixture
async def once(engine: Engine, queue: str) -> AsyncIterator[Engine]:
    """The engine has the queue, of which a message dies after one delivery."""
    dead = f"{queue}-dead"
    await engine.queues.create_queue(BY, dead, QueueSettings(partitions=1))
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, redrive_policy=RedrivePolicy(dead, 1)))
    await knows(engine, alone=True)
    yield engine
    assert await receive(engine, dead) == [], "a letter that nobody was ever given"


class Slow:
    """A worker hears of its leases `pause_s` after they were made; `leased` is set when one was."""

    def __init__(self) -> None:
        self.pause_s = 0.0
        self.leased = asyncio.Event()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    made, real = Slow(), LeaseScripts.receive

    async def late(*given: Any, **named: Any) -> Any:
        received = await real(*given, **named)
        if received.leased:
            made.leased.set()
            await asyncio.sleep(made.pause_s)
        return received

    monkeypatch.setattr(LeaseScripts, "receive", late)
    return made


class Reads:
    """Reads of Kafka for bodies: `fails` says which offsets can't be read now, after `after_s`."""

    def __init__(self) -> None:
        self.fails: Callable[[int, int], bool] = lambda partition, offset: False
        self.after_s = 0.0
        self.times = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    made, real = Reads(), Log.read_at

    async def read(self: Log, topic: Any, partition: int, offsets: Any, **options: Any) -> Any:
        made.times += 1
        if any(made.fails(partition, offset) for offset in offsets):
            await asyncio.sleep(made.after_s)
            raise LogUnavailable("Kafka does not answer a fetch")
        return await real(self, topic, partition, offsets, **options)

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
        engine.parts.units.window.bodies.forget_queue(queue)


async def entries(engine: Engine, queue: str) -> int:
    """Journal entries of a queue so far."""
    return sum([await engine.store.upkeep.last_seq(unit) for unit in engine.catalog.queues[queue].units])


async def first_deliveries(engine: Engine, queue: str, number: int, within_s: float = 8.0) -> list[Delivery]:
    """`number` messages, as they come; each for the first time as far as anybody was told."""
    got: list[Delivery] = []

    async def all_came() -> bool:
        with contextlib.suppress(LogUnavailable, StoreUnavailable):  # what goes back is told again within 1 s
            got.extend(await receive(engine, queue, max=100, lease_ms=HOUR))
        return len(got) >= number

    await eventually(all_came, within_s)
    assert [d.receive_count for d in got] == [1] * number
    return got


async def test_a_long_poll_that_ends_while_its_lease_is_made_gets_it(once: Engine, queue: str, slow: Slow) -> None:
    await send(once, queue, *"abc")
    slow.pause_s = 0.2
    got = await receive(once, queue, wait_ms=80, lease_ms=HOUR)
    assert texts(got) == ["a", "b", "c"] and [d.receive_count for d in got] == [1, 1, 1]


async def test_waits_shorter_than_a_read_get_what_is_read(
    once: Engine, queue: str, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(once, queue, *"abc")
    forget_bodies(once)
    read = Log.read_at

    async def slowly(*given: Any, **options: Any) -> Any:
        await asyncio.sleep(0.3)
        return await read(*given, **options)

    monkeypatch.setattr(Log, "read_at", slowly)
    assert texts(await receive(once, queue, wait_ms=20, lease_ms=HOUR)) == ["a", "b", "c"]
    assert await receive(once, queue, wait_ms=20) == []


@pytest.mark.parametrize("wait_ms", [0, 5_000])
async def test_a_client_that_goes_while_its_lease_is_made_counts_nothing(
    once: Engine, queue: str, slow: Slow, wait_ms: int
) -> None:
    await send(once, queue, *"abc")
    slow.pause_s = 0.2
    task = asyncio.create_task(receive(once, queue, wait_ms=wait_ms, lease_ms=HOUR))
    await slow.leased.wait()
    task.cancel()
    slow.pause_s = 0.0
    assert texts(await first_deliveries(once, queue, 3)) == ["a", "b", "c"]


async def test_what_an_answer_could_not_carry_is_given_back(once: Engine, queue: str) -> None:
    await send(once, queue, *"abc")
    leased = await receive(once, queue, lease_ms=HOUR)
    once.messages.undelivered(leased)
    again = await first_deliveries(once, queue, 3)
    assert texts(again) == ["a", "b", "c"]
    assert all(b.first_received_at_ms >= a.first_received_at_ms for a, b in zip(leased, again, strict=True))
    assert not {d.handle for d in leased} & {d.handle for d in again}
    once.messages.undelivered(leased)  # of before: it changes nothing
    await asyncio.sleep(0.2)
    await ack(once, queue, again)


@pytest.mark.parametrize("wait_ms", [0, 300])
async def test_bodies_that_can_not_be_read_are_no_deliveries(
    once: Engine, queue: str, reads: Reads, wait_ms: int
) -> None:
    await send(once, queue, *"abcde")
    forget_bodies(once)
    reads.fails = everything
    for _ in range(3):
        with pytest.raises(LogUnavailable):
            await receive(once, queue, wait_ms=wait_ms, lease_ms=HOUR)
    reads.fails = nothing
    assert texts(await first_deliveries(once, queue, 5)) == list("abcde")


async def test_a_lease_shorter_than_the_read_does_not_end_before_it(once: Engine, queue: str, reads: Reads) -> None:
    await send(once, queue, "m")
    forget_bodies(once)
    reads.fails, reads.after_s = everything, 1.0
    first = asyncio.create_task(receive(once, queue, lease_ms=300))
    await asyncio.sleep(0.5)
    assert await receive(once, queue, lease_ms=HOUR) == []
    with pytest.raises(LogUnavailable):
        await first
    reads.fails = nothing
    await first_deliveries(once, queue, 1)


@pytest.fixture
def in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each send goes to another partition."""
    monkeypatch.setattr("engine.rules.placement.RUN", 1)


async def test_no_lease_ends_before_the_slowest_read_of_its_receive(
    engine: Engine, queue: str, reads: Reads, in_turn: None
) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings(partitions=1))
    await engine.queues.create_queue(
        BY, queue, QueueSettings(partitions=2, redrive_policy=RedrivePolicy(f"{queue}-dead", 1))
    )
    await knows(engine, alone=True)
    units, number = engine.catalog.queues[queue].units, 0
    while len([unit for unit in units if engine.parts.units.window.bodies.of.get(unit)]) < 2:
        await send(engine, queue, f"{number}")
        number += 1
    engine.parts.units.window.bodies.forget(units[1], list(engine.parts.units.window.bodies.of[units[1]]))
    reads.fails, reads.after_s = everything, 1.5
    slow = asyncio.create_task(receive(engine, queue, max=100, lease_ms=300))
    await asyncio.sleep(0.8)
    assert await receive(engine, queue, lease_ms=HOUR) == []
    got = await slow
    assert {d.partition for d in got} == {0}
    reads.fails = nothing
    engine.messages.undelivered(got)
    await first_deliveries(engine, queue, number)


async def test_a_partition_that_can_be_read_is_delivered_though_another_can_not(
    engine: Engine, queue: str, reads: Reads, in_turn: None
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=4))
    await knows(engine, alone=True)
    await engine.messages.send(BY, queue, [SendEntry(b"%d" % n) for n in range(4)])
    await send(engine, queue, *(f"{n}" for n in range(4, 40)))
    forget_bodies(engine)
    reads.fails = lambda partition, offset: partition == 1
    got = await receive(engine, queue, max=100, lease_ms=HOUR)
    assert got and {d.partition for d in got} <= {0, 2, 3}
    reads.fails = nothing
    rest = await first_deliveries(engine, queue, 40 - len(got))
    assert {d.partition for d in rest} == {1}


async def test_of_a_group_nothing_is_delivered_before_what_can_not_be_read(
    engine: Engine, queue: str, reads: Reads
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True, partitions=1))
    await knows(engine, alone=True)
    await put(engine, queue, "a", "1", "2", "3", "4")
    (unit,) = engine.catalog.queues[queue].units
    engine.parts.units.window.bodies.forget(unit, [1])
    reads.fails = everything
    leased = await receive(engine, queue, lease_ms=HOUR)
    assert texts(leased) == ["1"]
    await asyncio.sleep(1.3)
    assert await receive(engine, queue) == []  # the first one is leased
    reads.fails = nothing
    await engine.messages.release(BY, queue, [leased[0].handle])
    again = await receive(engine, queue, wait_ms=3000)
    assert texts(again) == ["1", "2", "3", "4"] and [d.receive_count for d in again] == [2, 1, 1, 1]


async def test_an_attempt_whose_client_has_gone_counts_nothing(engine: Engine, queue: str, slow: Slow) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True))
    await put(engine, queue, "a", "1", "2")
    slow.pause_s = 0.2
    task = asyncio.create_task(engine.messages.receive(BY, queue, None, 10, 0, HOUR, "k"))
    await slow.leased.wait()
    task.cancel()
    slow.pause_s = 0.0
    first = await engine.messages.receive(BY, queue, None, 10, 3000, HOUR, "k")
    assert texts(first) == ["1", "2"] and [d.receive_count for d in first] == [1, 1]
    again = await engine.messages.receive(BY, queue, None, 10, 0, HOUR, "k")
    assert [d.handle for d in again] == [d.handle for d in first]
    engine.messages.undelivered(again)  # the answer before carried them
    await asyncio.sleep(0.3)
    await ack(engine, queue, again)


async def test_an_attempt_that_no_answer_carried_is_not_leased_anew_before_it_is_given_back(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=True))
    await put(engine, queue, "a", "1", "2")
    first = await engine.messages.receive(BY, queue, None, 10, 0, HOUR, "k")
    real, tell = LeaseScripts.give_back, asyncio.Event()

    async def later(*given: Any, **named: Any) -> Any:
        await tell.wait()
        return await real(*given, **named)

    monkeypatch.setattr(LeaseScripts, "give_back", later)
    engine.messages.undelivered(first)
    second = asyncio.create_task(engine.messages.receive(BY, queue, None, 10, 0, HOUR, "k"))
    assert not (await asyncio.wait([second], timeout=0.5))[0], "it waits until Redis was told"
    tell.set()
    again = await second
    assert texts(again) == ["1", "2"] and [d.receive_count for d in again] == [1, 1]
    await asyncio.sleep(0.3)
    await ack(engine, queue, again)


async def test_what_redis_has_is_what_the_journal_says(own_engine: Engine, reads: Reads, stack: Services) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await own_engine.queues.create_queue(BY, "fifo", QueueSettings(fifo=True, partitions=1))
    await knows(own_engine, alone=True)
    await send(own_engine, "q", *"abcdef")
    for group in "xyz":
        await put(own_engine, "fifo", group, "1", "2")
    for queue in ("q", "fifo"):
        await own_engine.messages.release(BY, queue, [d.handle for d in await receive(own_engine, queue, max=2)])
        own_engine.messages.undelivered(await receive(own_engine, queue, max=4, lease_ms=HOUR))

    async def nothing_leased() -> bool:
        return all([(await own_engine.queues.get_queue(BY, queue)).tags[0].leased == 0 for queue in ("q", "fifo")])

    await eventually(nothing_leased)
    forget_bodies(own_engine)
    reads.fails = everything
    for queue in ("q", "fifo"):
        with pytest.raises(LogUnavailable):
            await receive(own_engine, queue, max=3, lease_ms=HOUR)
    reads.fails = nothing
    clean(await verify(own_engine))
    await drained(own_engine)
    wipe(stack, own_engine)
    counts = {}
    for queue, number in (("q", 6), ("fifo", 6)):
        got: list[Delivery] = []
        while len(got) < number:
            with contextlib.suppress(LogUnavailable):  # for a second after a body could not be read
                got += await receive(own_engine, queue, max=100, wait_ms=3000, lease_ms=HOUR)
        counts[queue] = sorted(d.receive_count for d in got)
    assert counts == {"q": [1, 1, 1, 1, 2, 2], "fifo": [1, 1, 1, 1, 2, 2]}
    clean(await verify(own_engine))


async def test_receives_do_not_fill_the_journal_while_nothing_can_be_read(
    once: Engine, queue: str, reads: Reads
) -> None:
    for n in range(5):
        await once.messages.send(BY, queue, [SendEntry(b"%d" % (n * 100 + i)) for i in range(100)])
    forget_bodies(once)
    reads.fails = everything
    before = await entries(once, queue)
    loop = asyncio.get_running_loop()
    end, refused = loop.time() + 3, 0

    async def ask(wait_ms: int) -> None:
        nonlocal refused
        while loop.time() < end:
            try:
                assert await receive(once, queue, wait_ms=wait_ms) == []
            except LogUnavailable:
                refused += 1
            await asyncio.sleep(0.002)

    await asyncio.gather(*(ask(wait_ms) for wait_ms in (0, 0, 20, 50, 100)))
    # About one look a second by each that was under way when the first failed; without a rest they
    # are thousands.
    assert await entries(once, queue) - before < 60 and refused > 0
    reads.fails = nothing
    await first_deliveries(once, queue, 500)


async def test_redis_that_is_away_is_told_when_it_is_back(
    once: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(once, queue, *"abc")
    leased = await receive(once, queue, lease_ms=HOUR)
    real, refused = LeaseScripts.give_back, 0

    async def away(*given: Any, **named: Any) -> Any:
        nonlocal refused
        refused += 1
        raise StateUnavailable("away")

    monkeypatch.setattr(LeaseScripts, "give_back", away)
    once.messages.undelivered(leased)

    async def refused_again() -> bool:
        return refused > 1

    await eventually(refused_again)
    with pytest.raises(StoreUnavailable, match="away"):  # it is nobody's and can't be leased
        await receive(once, queue)
    monkeypatch.setattr(LeaseScripts, "give_back", real)
    await first_deliveries(once, queue, 3)


async def test_what_a_receive_has_leased_is_delivered_though_its_next_look_fails(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(priority=True))
    await engine.messages.send(BY, queue, [SendEntry(b"first", priority=1)])
    await engine.messages.send(BY, queue, [SendEntry(b"second", priority=9)])
    real, probes = LeaseScripts.probe, 0

    async def once_only(*given: Any, **named: Any) -> Any:
        if probes:
            raise StateUnavailable("away")
        return await real(*given, **named)

    leases = LeaseScripts.receive

    async def leased(*given: Any, **named: Any) -> Any:
        nonlocal probes
        received = await leases(*given, **named)
        probes += len(received.leased)
        return received

    monkeypatch.setattr(LeaseScripts, "probe", once_only)
    monkeypatch.setattr(LeaseScripts, "receive", leased)
    monkeypatch.setattr("engine.receive.poll.Poller._shares", _one_of_the_first)
    got = await receive(engine, queue, max=10, lease_ms=HOUR)
    assert texts(got) == ["first"]


async def _one_of_the_first(poller: Any, poll: Any, partitions: Any, wanted: int) -> dict[int, int]:
    """As if the partition of the first priority alone had something; the next look asks anew."""
    await poller._ask_when(poll, partitions, wanted)
    return {partitions[0]: 1}


async def test_a_worker_that_stops_gives_back_what_it_had_for_clients_that_are_gone(
    make_engine: MakeEngine, slow: Slow
) -> None:
    first, second = await make_engine(), await make_engine()
    await first.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    waiting = [asyncio.create_task(receive(first, "q", max=1, wait_ms=20_000, lease_ms=HOUR)) for _ in range(3)]
    await all_wait(first, 3)
    slow.pause_s = 0.3
    await first.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(3)])
    await slow.leased.wait()
    for task in waiting:
        task.cancel()
    await asyncio.gather(first.stop(), *waiting, return_exceptions=True)
    slow.pause_s = 0.0
    got = await receive(second, "q", wait_ms=3000)
    assert [d.receive_count for d in got] == [1, 1, 1]


async def test_an_error_after_the_lease_leaves_nothing_leased(
    once: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong when deliveries are made of a lease."""
    await send(once, queue, *"abc")
    forget_bodies(once)

    async def broken(*given: Any, **options: Any) -> Any:
        raise KeyError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(Log, "read_at", broken)
        for wait_ms in (0, 300):
            with contextlib.suppress(KeyError, EngineError):
                assert await receive(once, queue, wait_ms=wait_ms, lease_ms=HOUR) == []
    await first_deliveries(once, queue, 3)


async def test_what_was_given_back_stays_so_though_redis_is_lost_before_the_journal_has_it(
    own_engine: Engine, stack: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has the lease and not the return: a rebuild by it alone counts the delivery, and
    the message dies though nobody was given it.
    """
    engine = own_engine
    await engine.queues.create_queue(BY, "dead", QueueSettings(partitions=1))
    await engine.queues.create_queue(
        BY, "q", QueueSettings(partitions=1, lease_ms=1_000, redrive_policy=RedrivePolicy("dead", 1))
    )
    await send(engine, "q", "m")
    lost = await receive(engine, "q")
    await drained(engine)

    async def behind(outbox: Outbox) -> int:
        return 0

    monkeypatch.setattr(Outbox, "drain", behind)
    engine.parts.messages.receives.receiver.undelivered(lost)
    await eventually(lambda: _none_is_leased(engine))
    wipe(stack, engine)
    monkeypatch.undo()
    (got,) = await receive(engine, "q", wait_ms=8_000)
    assert (got.message.body, got.receive_count) == (b"m", 1)
    await ack(engine, "q", [got])
    assert await receive(engine, "dead", wait_ms=300) == []


async def _none_is_leased(engine: Engine) -> bool:
    (tag,) = (await engine.queues.get_queue(BY, "q")).tags
    return tag.leased == 0
