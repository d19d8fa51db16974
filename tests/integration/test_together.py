"""What comes at the same time is asked for with one call to the window, and each caller gets what
it would have got alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import StoreUnavailable
from engine.journal.outbox import Journal
from engine.log import Log
from engine.shapes import SendEntry
from schemas.records import JournalEntry
from schemas.records.settings import QueueSettings
from schemas.vocabulary import EventKind
from state.errors import StateUnavailable
from state.keys import Unit
from state.leases import LeaseScripts
from tests.integration.drive import BY, all_wait, eventually, receive, send


@pytest.fixture
def calls(engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[Any]]:
    """`calls(verb)`: the answers of the queue's window to that verb from now on."""

    def of(verb: str) -> list[Any]:
        answers: list[Any] = []
        real = getattr(LeaseScripts, verb)

        async def counted(store: LeaseScripts, unit: Unit, *given: Any, **named: Any) -> Any:
            answer = await real(store, unit, *given, **named)
            if unit.incarnation == engine.catalog.queues[queue].incarnation:
                answers.append(answer)
            return answer

        monkeypatch.setattr(LeaseScripts, verb, counted)
        return answers

    return of


async def waiters(engine: Engine, queue: str, number: int, **given: Any) -> list[asyncio.Task[Any]]:
    """Receives that wait beside those that do already, and have seen that there is nothing."""
    in_all = int(engine.counts()["long_polls_waiting"]) + number
    tasks = [asyncio.create_task(receive(engine, queue, wait_ms=4000, **given)) for _ in range(number)]
    await all_wait(engine, in_all)
    return tasks


async def test_all_who_wait_are_served_by_one_call(
    engine: Engine, queue: str, calls: Callable[[str], list[Any]]
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    *tasks, last = await waiters(engine, queue, 9, max=1)
    answers = calls("receive")
    await engine.messages.send(BY, queue, [SendEntry(b"%d" % n) for n in range(8)])
    got = [await task for task in tasks]
    await asyncio.sleep(0.2)
    assert not last.done()
    last.cancel()
    assert [len(one) for one in got] == [1] * 8
    assert {one[0].message.body for one in got} == {b"%d" % n for n in range(8)}
    # Not once more for the last one either, though Redis told us, too, of what we had loaded
    # ourselves.
    assert len(answers) == 1 and len(answers[0].leased) == 8


async def test_who_asks_for_another_lease_gets_it(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    short, long = (
        await waiters(engine, queue, 1, max=1, lease_ms=2000),
        await waiters(engine, queue, 1, max=1, lease_ms=90_000),
    )
    before_ms = time.time() * 1000
    await engine.messages.send(BY, queue, [SendEntry(b"a"), SendEntry(b"b")])
    for task, lease_ms in ((short[0], 2000), (long[0], 90_000)):
        (one,) = await task
        assert lease_ms - 100 < one.next_visible_at_ms - before_ms < lease_ms + 1500


async def test_a_waiter_that_wants_more_than_there_is_leaves_the_rest_in_line(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    tasks = await waiters(engine, queue, 3, max=10)
    await engine.messages.send(BY, queue, [SendEntry(b"%d" % n) for n in range(12)])
    assert sorted([len(await tasks[0]), len(await tasks[1])]) == [2, 10]
    await send(engine, queue, "last")
    assert [one.message.body for one in await tasks[2]] == [b"last"]


async def test_acks_of_many_callers_are_one_call(engine: Engine, queue: str, calls: Callable[[str], list[Any]]) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    await engine.messages.send(BY, queue, [SendEntry(b"%d" % n) for n in range(20)])
    got = await receive(engine, queue, max=20)
    await engine.messages.ack(BY, queue, [got[0].handle])
    answers = calls("ack")
    words = await asyncio.gather(*(engine.messages.ack(BY, queue, [one.handle]) for one in (*got, got[19])))
    assert [one[0].status for one in words] == ["stale", *["ok"] * 19, "stale"]
    assert [one[0].handle for one in words] == [one.handle for one in (*got, got[19])]
    assert len(answers) == 1


async def test_an_acker_that_goes_away_takes_nobody_along(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    await engine.messages.send(BY, queue, [SendEntry(b"%d" % n) for n in range(3)])
    got = await receive(engine, queue, max=3)
    tasks = [asyncio.create_task(engine.messages.ack(BY, queue, [one.handle])) for one in got]
    await asyncio.sleep(0)
    tasks[0].cancel()
    assert [(await task)[0].status for task in tasks[1:]] == ["ok", "ok"]
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]


async def test_a_long_poll_on_a_line_that_was_looked_at_asks_nothing(
    engine: Engine, queue: str, calls: Callable[[str], list[Any]]
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    assert await receive(engine, queue, wait_ms=300) == []
    looks, receives = calls("probe"), calls("receive")
    began = time.monotonic()
    assert await receive(engine, queue, wait_ms=300) == []
    assert time.monotonic() - began > 0.29
    # Loaders look at the window of queues with traffic, too: at most ten times a second at each of
    # four partitions.
    assert not receives
    assert len(looks) <= 16


async def test_who_comes_when_redis_is_away_is_told_and_who_waits_goes_on(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    (old,) = await waiters(engine, queue, 1)
    real = LeaseScripts.receive

    async def away(*given: Any, **named: Any) -> Any:
        raise StateUnavailable("away")

    monkeypatch.setattr(LeaseScripts, "receive", away)
    engine.parts.units.window.receivable("", -1, 0)
    for incarnation in engine.catalog.by_incarnation:
        engine.parts.units.window.receivable(incarnation, -1, 0)
    with pytest.raises(StoreUnavailable):
        await receive(engine, queue, wait_ms=4000)
    assert not old.done()
    monkeypatch.setattr(LeaseScripts, "receive", real)
    await send(engine, queue, "m")
    assert [one.message.body for one in await old] == [b"m"]


async def clients(number: int, times: int, one: Callable[[int], Any]) -> None:
    """`number` clients that each call `one` `times` times; what they do with an answer takes each
    another time, far less than a linger.
    """

    async def client(n: int) -> None:
        for _ in range(times):
            await one(n)
            for _ in range(n):
                await asyncio.sleep(0)

    await asyncio.gather(*(client(n) for n in range(number)))


@pytest.fixture
def long_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long enough for the slowest machine; what is judged is who waits for whom."""
    for module in ("send.sender", "handles.settlements", "receive.waits.wait_list"):
        monkeypatch.setattr(f"engine.{module}.LINGER_S", 0.03)


@pytest.mark.usefixtures("long_linger")
async def test_many_senders_share_groups_of_nearly_all_of_them(
    engine: Engine, queue: str, calls: Callable[[str], list[Any]]
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    groups = calls("load")
    await clients(32, 20, lambda n: engine.messages.send(BY, queue, [SendEntry(b"%d" % n)]))
    # 640 sends: 20 groups if each had everybody; without a linger 64.
    assert len(groups) <= 32


async def test_senders_leave_time_to_those_who_receive_and_wait_for_nobody_else(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.rules.linger.SEND_PART", 1e6)
    monkeypatch.setattr("engine.rules.linger.SEND_LINGER_S", 0.45)
    await engine.queues.create_queue(BY, queue, QueueSettings())

    async def took_s() -> float:
        began = time.monotonic()
        await clients(32, 4, lambda n: engine.messages.send(BY, queue, [SendEntry(b"%d" % n)]))
        return time.monotonic() - began

    alone = await took_s()
    assert len(await receive(engine, queue, max=1, wait_ms=1000)) == 1
    # At least two of the groups, the second and the third, come while much is done at once.
    assert alone < 0.45 and await took_s() > 0.9


@pytest.mark.usefixtures("long_linger")
async def test_many_ackers_share_calls_of_nearly_all_of_them(
    engine: Engine, queue: str, calls: Callable[[str], list[Any]]
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    handles = []
    for _ in range(7):
        await engine.messages.send(BY, queue, [SendEntry(b"%d" % n) for n in range(100)])
        handles += [one.handle for one in await receive(engine, queue, max=100)]
    answers = calls("ack")
    await clients(32, 20, lambda _: engine.messages.ack(BY, queue, [handles.pop()]))
    assert len(answers) <= 40


@pytest.mark.usefixtures("long_linger")
async def test_many_receivers_share_calls_of_nearly_all_of_them(
    engine: Engine, queue: str, calls: Callable[[str], list[Any]]
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    for _ in range(7):
        await engine.messages.send(BY, queue, [SendEntry(b"%d" % n) for n in range(100)])
    answers = calls("receive")
    await clients(32, 20, lambda _: receive(engine, queue, max=1, wait_ms=2000))
    assert sum(len(answer.leased) for answer in answers) >= 640  # some may be leased ahead
    assert len(answers) <= 40


async def test_nobody_who_is_alone_waits_for_company(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lingered: list[float] = []

    async def sleep(seconds: float) -> None:
        if seconds:
            lingered.append(seconds)

    await engine.queues.create_queue(BY, queue, QueueSettings())
    for module in ("send.sender", "handles.settlements", "receive.waits.wait_list"):
        monkeypatch.setattr(f"engine.{module}.asyncio", _Asyncio(sleep))
    for many in (100, 1, 10, 1):
        await engine.messages.send(BY, queue, [SendEntry(b"m") for _ in range(many)])
        got = await receive(engine, queue, max=100, wait_ms=1000)
        assert len(got) == many
        await engine.messages.ack(BY, queue, [one.handle for one in got])
    assert lingered == []


class _Asyncio:
    """asyncio with another sleep."""

    def __init__(self, sleep: Callable[[float], Any]) -> None:
        self.sleep = sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)


async def test_what_comes_while_the_journal_is_written_goes_with_the_next_write(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await own_engine.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(20)])
    handles = [one.handle for one in await receive(own_engine, "q", max=20)]

    async def owned() -> bool:
        return bool(own_engine.parts.units.owner.owned)

    await eventually(owned)
    await asyncio.gather(*(service.stop() for service in own_engine.parts.units.owner._services))  # nobody else drains
    (loader,) = own_engine.parts.units.owner.owned.values()
    await own_engine.messages.ack(BY, "q", [handles.pop()])
    while await loader.outbox.drain():
        pass
    written: list[int] = []
    real = Journal.append

    async def meanwhile(self: Journal, queue: str, unit: Unit, entries: list[JournalEntry]) -> None:
        written.append(len(entries))
        await real(self, queue, unit, entries)
        if handles:
            await own_engine.messages.ack(BY, "q", [handles.pop()])

    monkeypatch.setattr(Journal, "append", meanwhile)
    await own_engine.messages.ack(BY, "q", [handles.pop()])
    assert await loader.outbox.drain() == 1
    assert written == [1]
    assert await loader.outbox.drain() == 1
    handles.clear()
    assert await loader.outbox.drain() == 1
    assert await loader.outbox.drain() == 0


async def test_an_append_that_hangs_holds_up_the_journal_of_no_other_unit(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_queue, quick_queue = f"{queue}-slow", f"{queue}-quick"
    written: set[tuple[str, str]] = set()
    hanging, goes_on = asyncio.Event(), asyncio.Event()
    real = Journal.append

    async def slow(self: Journal, queue: str, unit: Unit, entries: list[JournalEntry]) -> None:
        if queue == slow_queue:
            hanging.set()
            await goes_on.wait()
        await real(self, queue, unit, entries)
        written.update((queue, entry.kind) for entry in entries)

    for name in (slow_queue, quick_queue):
        await engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
        await engine.messages.send(BY, name, [SendEntry(b"1")])
    slow_handle, quick_handle = [(await receive(engine, name))[0].handle for name in (slow_queue, quick_queue)]
    monkeypatch.setattr(Journal, "append", slow)
    await engine.messages.ack(BY, slow_queue, [slow_handle])
    async with asyncio.timeout(5):
        await hanging.wait()
    await engine.messages.ack(BY, quick_queue, [quick_handle])

    async def quick_is_written() -> bool:
        return (quick_queue, EventKind.ACKED) in written

    await eventually(quick_is_written, within_s=3)
    assert (slow_queue, EventKind.ACKED) not in written
    goes_on.set()


async def test_sends_that_waited_for_kafka_rest_no_longer_than_others(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (queue, f"{queue}-other"):
        await engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
        await send(engine, name, "first")
    real = Log.append_many

    async def after_a_while(self: Log, topic: str, partition: int, values: Sequence[bytes]) -> Any:
        if b"during" in values[0]:
            await asyncio.sleep(1.5)  # Kafka was away
        return await real(self, topic, partition, values)

    monkeypatch.setattr(Log, "append_many", after_a_while)
    during = asyncio.create_task(send(engine, queue, "during"))
    await asyncio.sleep(0.2)
    behind = asyncio.create_task(send(engine, queue, "behind"))

    async def others() -> None:
        while not during.done():
            await send(engine, f"{queue}-other", "m")
            await asyncio.sleep(0.05)

    await others()
    began = asyncio.get_running_loop().time()
    await behind
    assert asyncio.get_running_loop().time() - began < 1
