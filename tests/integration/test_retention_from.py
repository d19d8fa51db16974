"""Retention counts from when a message was due, or from its send, as the queue says: for whoever
receives or peeks, wherever the body comes from.
"""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from engine.engine import Engine
from engine.errors import InvalidValue
from engine.shapes import SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute
from schemas.records.settings import QueueSettings
from state.replies import Received
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, knows, receive, send
from tests.integration.test_retention import expired_in_journal

RETENTION_MS = 60_000
DELAY_MS = 150
RED = Filter([Condition("colour", "string", b"red")])


def settings(
    start: str | None = "send", *, fifo: bool | None = None, one_per_group: bool | None = None
) -> QueueSettings:
    return QueueSettings(
        partitions=1, retention_ms=RETENTION_MS, retention_from=start, fifo=fifo, one_per_group=one_per_group
    )


async def leased(engine: Engine, queue: str) -> Received:
    """What the window leases of a queue once something is due."""
    found, all_leased = engine.catalog.queues[queue], list[Received]()

    async def have_some() -> bool:
        received = await engine.store.leases.receive(
            found.units[0], engine.catalog.generation, 0,
            max=10, lease_ms=None, queue_lease_ms=30_000, max_receive_count=0, retention_ms=RETENTION_MS, move_ms=1,
        )  # fmt: skip
        all_leased.append(received)
        return bool(received.leased)

    await eventually(have_some)
    return all_leased[-1]


@pytest.mark.parametrize("place", ["memory", "window", "kafka"])
@pytest.mark.parametrize(("start", "left"), [(None, 1), ("due", 1), ("send", 0)])
async def test_a_delay_is_part_of_the_retention_if_that_counts_from_the_send(
    engine: Engine, queue: str, place: str, start: str | None, left: int
) -> None:
    """Times are those of the log, to the millisecond: the moment of the lease is set, not waited
    for.
    """
    await engine.queues.create_queue(BY, queue, settings(start))
    await knows(engine, alone=True)
    own_lease_ms = 30_000 if place == "window" else None  # then the window has the body
    (sent,) = await engine.messages.send(BY, queue, [SendEntry(b"x", delay_ms=DELAY_MS, lease_ms=own_lease_ms)])
    if place == "kafka":
        engine.parts.units.window.bodies.of.clear()
    received, found, deliveries = (
        await leased(engine, queue),
        engine.catalog.queues[queue],
        engine.parts.messages.receives.deliveries,
    )
    assert bool(received.leased[0].packed) is (place == "window")
    tag, over_ms = found.tags[0], sent.sent_at_ms + engine.store.units.keep_ms(RETENTION_MS)

    before = [(0, replace(received, now_ms=over_ms - 1))]
    at_hand = deliveries.from_memory(found, tag, before)
    assert (at_hand is None) is (place == "kafka") and (at_hand is None or len(at_hand) == 1)
    made, faults = await deliveries.complete(found, tag, before, None)
    assert len(made) == 1 and not faults, "it expired before its time"

    then = [(0, replace(received, now_ms=over_ms))]
    at_hand = deliveries.from_memory(found, tag, then)
    assert (at_hand is None) is (place == "kafka" or left == 0)
    made, faults = await deliveries.complete(found, tag, then, None)
    assert len(made) == left and not faults
    (state,) = await engine.store.leases.states(found.units[0], engine.catalog.generation, tag.id, [0])
    assert state.state == ("leased" if left else "settled")


def age(engine: Engine, queue: str, *offsets: int) -> None:
    """Makes what this worker has just sent older than the retention of its queue. The first message
    of a partition has offset 0.
    """
    (unit,) = engine.catalog.queues[queue].units
    for offset in offsets:
        engine.parts.units.window.bodies.of[unit][offset].sent_at_ms -= 2 * RETENTION_MS


async def backlog(engine: Engine, queue: str) -> int:
    return (await engine.queues.get_queue(BY, queue)).tags[0].backlog


@pytest.mark.parametrize("wait_ms", [0, 10_000])
async def test_what_stands_behind_messages_that_are_over_is_received_at_once(own_engine: Engine, wait_ms: int) -> None:
    engine, queue = own_engine, "q"
    await engine.queues.create_queue(BY, queue, settings())
    await knows(engine, alone=True)
    await send(engine, queue, "old-0", "old-1", "old-2", "young")
    age(engine, queue, 0, 1, 2)

    (got,) = await receive(engine, queue, max=1, wait_ms=wait_ms)
    assert (got.message.body, got.receive_count, await backlog(engine, queue)) == (b"young", 1, 1)

    async def are_told() -> bool:
        return await expired_in_journal(engine) == [0, 1, 2]

    await eventually(are_told)


@pytest.mark.parametrize("one_per_group", [False, True])
async def test_an_old_message_of_a_group_holds_back_nothing(engine: Engine, queue: str, one_per_group: bool) -> None:
    await engine.queues.create_queue(BY, queue, settings(fifo=True, one_per_group=one_per_group))
    await knows(engine, alone=True)
    for n in range(3):
        await engine.messages.send(BY, queue, [SendEntry(b"%d" % n, group="g", dedup_id=str(n))])
    age(engine, queue, 0, 1)
    (got,) = await receive(engine, queue, wait_ms=10_000)
    assert (got.message.body, await backlog(engine, queue)) == (b"2", 1)


async def test_a_receive_with_a_filter_passes_what_is_over(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, settings())
    await knows(engine, alone=True)
    red = {"colour": Attribute("string", b"red")}
    for text in (b"old", b"young"):
        await engine.messages.send(BY, queue, [SendEntry(text, attributes=red)])
    age(engine, queue, 0)
    (got,) = await engine.messages.receive(BY, queue, None, 1, 0, None, filter=RED)
    assert (got.message.body, await backlog(engine, queue)) == (b"young", 1)


async def test_a_peek_passes_what_is_over(engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await engine.queues.create_queue(BY, queue, settings())
    (old,) = await send(engine, queue, "old")
    await asyncio.sleep(0.05)
    (young,) = await send(engine, queue, "young")
    assert young.sent_at_ms > old.sent_at_ms
    for over_ms, shown in ((old.sent_at_ms - 1, b"old"), (old.sent_at_ms, b"young")):
        monkeypatch.setattr(
            engine.store.units, "now_ms", lambda at=over_ms: at + engine.store.units.keep_ms(RETENTION_MS)
        )
        assert [one.message.body for one in await engine.messages.peek_next(BY, queue, None, 1)] == [shown]


async def test_what_is_delayed_for_longer_than_its_retention_is_never_received(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, settings())
    found = engine.catalog.queues[queue]
    found.expires_ms = DELAY_MS // 3
    await send(engine, queue, "never", delay_ms=DELAY_MS)

    async def is_over() -> bool:
        assert await receive(engine, queue) == []
        return await backlog(engine, queue) == 0

    await eventually(is_over)


async def test_it_can_be_set_and_is_kept_by_a_restart(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings())
    assert (await engine.queues.get_queue(BY, "q")).retention_from == "due"
    await engine.queues.set_queue(BY, "q", QueueSettings(retention_from="send"))
    with pytest.raises(InvalidValue, match="retention_from must be due or send, given 'sent'"):
        await engine.queues.set_queue(BY, "q", QueueSettings(retention_from="sent"))
    await engine.stop()
    other = await make_engine()
    assert (await other.queues.get_queue(BY, "q")).retention_from == "send"
    assert await drain(other, "q", expect=0) == []
