"""An answer has room for MAX_RECEIVE_BYTES: a receive stops there, and what it does not give is
neither leased nor counted. The same bound holds for pages of messages and for moves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from engine.engine import Engine
from engine.log import Log, value_bytes
from engine.rules.limits import MAX_RECEIVE_BYTES
from engine.shapes import Delivery, Peeked, SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.drive import BY, ack, eventually, knows, receive

LARGE = 4_000_000
FIT = MAX_RECEIVE_BYTES // LARGE
NUMBER = FIT + 3
RED = Filter([Condition("colour", "string", b"red")])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each reading of single messages had in memory."""
    found: list[int] = []
    real = Log.read_at

    async def counted(self: Log, *args: Any, **options: Any) -> Any:
        records = await real(self, *args, **options)
        found.append(value_bytes(records.values()))
        return records

    monkeypatch.setattr(Log, "read_at", counted)
    return found


@pytest.fixture(autouse=True)
async def room(engine: Engine, queue: str) -> AsyncIterator[None]:
    """Leaves the worker's memory of bodies as it was: the next test needs it."""
    yield
    await engine.queues.delete_queue(BY, queue)


def large(n: int, group: str | None = None) -> SendEntry:
    return SendEntry(b"%03d" % n + b"x" * (LARGE - 200), {"colour": Attribute("string", b"red")}, group=group)


async def filled(engine: Engine, queue: str, *, known: bool, in_memory: bool, fifo: bool = False) -> None:
    """Makes a queue with NUMBER large messages. `known`: the worker has delivered small ones
    before, so it expects no large ones; `in_memory`: it has their bodies.
    """
    for _ in range(5):
        await sent(engine, queue, known=known, fifo=fifo)
        bodies, found = engine.parts.units.window.bodies, engine.catalog.queues[queue]
        if not in_memory:
            bodies.forget_queue(found)
            return
        if sum(len(bodies.of.get(unit, ())) for unit in found.units) == NUMBER:
            return
        # On a busy machine a worker may not know for a moment that it is alone, and keeps none.
        await engine.queues.delete_queue(BY, queue)
    raise AssertionError("the worker keeps no bodies")


async def sent(engine: Engine, queue: str, *, known: bool, fifo: bool) -> None:
    await engine.queues.create_queue(
        BY,
        queue,
        QueueSettings(partitions=2, max_message_bytes=LARGE, lease_ms=60_000, fifo=fifo, content_dedup=fifo or None),
    )
    await knows(engine, alone=True)
    if known:
        await engine.messages.send(
            BY, queue, [SendEntry(b"small", {"colour": Attribute("string", b"red")}, group="g" if fifo else None)]
        )
        await ack(engine, queue, await receive(engine, queue, wait_ms=5_000))
    for n in range(NUMBER):
        await engine.messages.send(BY, queue, [large(n, f"g{n % 2}" if fifo else None)])


def numbers(deliveries: Sequence[Delivery | Peeked]) -> list[int]:
    return [int(one.message.body[:3]) for one in deliveries]


async def ready_and_leased(engine: Engine, queue: str) -> tuple[int, int]:
    (tag,) = (await engine.queues.get_queue(BY, queue)).tags
    return tag.ready, tag.leased


@pytest.mark.parametrize("wait_ms", [0, 5_000])
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("known", [True, False])
async def test_a_receive_stops_at_its_bytes(
    engine: Engine, queue: str, reads: list[int], known: bool, in_memory: bool, wait_ms: int
) -> None:
    await filled(engine, queue, known=known, in_memory=in_memory)
    first = await receive(engine, queue, max=100, wait_ms=wait_ms)
    assert 1 <= len(first) <= FIT
    assert await ready_and_leased(engine, queue) == (NUMBER - len(first), len(first))
    rest: list[Delivery] = []
    while len(rest) < NUMBER - len(first):
        some = await receive(engine, queue, max=100, wait_ms=wait_ms)
        assert 1 <= len(some) <= FIT
        rest += some
    assert sorted(numbers(first + rest)) == list(range(NUMBER))
    assert {one.receive_count for one in first + rest} == {1}, "what an answer had no room for has counted"
    assert bool(reads) != in_memory and max(reads, default=0) <= MAX_RECEIVE_BYTES + LARGE


@pytest.mark.parametrize("in_memory", [True, False])
async def test_groups_keep_their_order_when_a_receive_stops(
    engine: Engine, queue: str, reads: list[int], in_memory: bool
) -> None:
    await filled(engine, queue, known=True, in_memory=in_memory, fifo=True)
    got: list[Delivery] = []
    while len(got) < NUMBER:
        some = await receive(engine, queue, max=100, wait_ms=5_000)
        assert 1 <= len(some) <= FIT
        await ack(engine, queue, some)
        got += some
    for group in range(2):
        assert [n for n in numbers(got) if n % 2 == group] == [n for n in range(NUMBER) if n % 2 == group]
    assert {one.receive_count for one in got} == {1}
    assert max(reads, default=0) <= MAX_RECEIVE_BYTES + LARGE


@pytest.mark.parametrize("known", [True, False])
async def test_a_receive_with_a_filter_stops_too(engine: Engine, queue: str, reads: list[int], known: bool) -> None:
    await filled(engine, queue, known=known, in_memory=False)
    first = await engine.messages.receive(BY, queue, None, 100, 0, None, filter=RED)
    assert 1 <= len(first) <= FIT
    assert await ready_and_leased(engine, queue) == (NUMBER - len(first), len(first))
    rest: list[Delivery] = []
    while len(first) + len(rest) < NUMBER:
        some = await engine.messages.receive(BY, queue, None, 100, 5_000, None, filter=RED)
        assert 1 <= len(some) <= FIT
        rest += some
    assert sorted(numbers(first + rest)) == list(range(NUMBER))
    assert {one.receive_count for one in first + rest} == {1}
    assert max(reads) <= MAX_RECEIVE_BYTES + LARGE


async def test_pages_of_messages_stop_too(engine: Engine, queue: str, reads: list[int]) -> None:
    await filled(engine, queue, known=False, in_memory=False)
    peeked = await engine.messages.peek_next(BY, queue, None, 100)
    assert 1 <= len(peeked) <= FIT
    seen: list[int] = []
    page = await engine.messages.query(BY, queue, None, None, None, None, None, 100, None)
    while page.next:
        assert 1 <= len(page.messages) <= FIT
        seen += numbers(page.messages)
        page = await engine.messages.query(BY, queue, None, None, None, None, None, 100, page.next)
    assert sorted(seen + numbers(page.messages)) == list(range(NUMBER))
    assert max(reads) <= MAX_RECEIVE_BYTES + LARGE


async def test_large_dead_letters_are_moved_in_parts(engine: Engine, queue: str, reads: list[int]) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dead", QueueSettings(max_message_bytes=LARGE))
    await filled(engine, queue, known=False, in_memory=False)
    await engine.queues.set_queue(BY, queue, QueueSettings(redrive_policy=RedrivePolicy(f"{queue}-dead", 1)))
    got: list[Delivery] = []
    while len(got) < NUMBER:
        got += await engine.messages.receive(BY, queue, None, 100, 5_000, 1)
    reads.clear()

    async def moved() -> bool:
        await receive(engine, queue, max=100)
        (tag,) = (await engine.queues.get_queue(BY, f"{queue}-dead")).tags
        return tag.ready == NUMBER and await ready_and_leased(engine, queue) == (0, 0)

    await eventually(moved, 60)
    await engine.queues.delete_queue(BY, f"{queue}-dead")
    assert max(reads) <= MAX_RECEIVE_BYTES + LARGE
