"""What becomes of a message whose body can't be read, or whose receiver goes before it has come."""

from __future__ import annotations

import asyncio

import pytest

from engine.errors import LogUnavailable
from engine.receive.deliveries import HOLD_MS, READ_S
from engine.receive.returns import REST_MS
from engine.rules.fifo import group_digest
from engine.window.body_source import CachedBody
from schemas.records import Message
from state.redis.connection import Connection
from tests.engine.room import Hand, Room, bodies_of


async def test_a_body_that_cannot_be_read_gives_its_message_back_uncounted_to_rest(room: Room) -> None:
    await room.send("a", in_window=False)
    room.bodies.fails.set()
    with pytest.raises(LogUnavailable):
        await room.receive()
    assert await room.states(0) == [("delayed", 0)], "nobody had it, and nobody is to have it at once"

    with pytest.raises(LogUnavailable):
        await room.receive()
    assert room.bodies.reads == 1, "its partition rests"
    await room.hand.pass_s(REST_MS / 1000)
    with pytest.raises(LogUnavailable):
        await room.receive()
    assert room.bodies.reads == 2
    assert [kind for kind, _ in await room.journal()] == ["leased", "returned"] * 2


async def test_what_can_be_read_is_delivered(room: Room) -> None:
    await room.send("a", in_window=False, partition=0)
    await room.send("b", partition=1)
    room.bodies.fails.set()
    assert bodies_of(await room.receive()) == ["b"]
    assert await room.states(0, partition=0) == [("delayed", 0)]
    assert await room.states(0, partition=1) == [("leased", 1)]


async def test_a_body_that_this_worker_has_kept_need_not_be_read(room: Room) -> None:
    await room.send("a", in_window=False)
    room.cache.keep(room.units[0], [CachedBody(0, Message(b"kept"), room.hand.now_ms, "digest", 4, 1, 0.0)])
    (got,) = await room.receive()
    assert (got.message.body, got.body_md5, room.bodies.reads) == (b"kept", "digest", 0)


async def test_a_receiver_that_goes_while_a_body_is_read_has_received_nothing(room: Room) -> None:
    await room.send("a", in_window=False)
    task = asyncio.get_running_loop().create_task(room.receive())
    await room.until(lambda: room.bodies.reads == 1)
    assert await room.states(0) == [("leased", 1)]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    room.bodies.fails.set()
    await room.settled()
    assert await room.states(0) == [("delayed", 0)]


async def test_a_receiver_that_goes_while_its_lease_is_written_has_received_nothing(room: Room) -> None:
    await room.send("a")
    await room.receive(lease_s=1)
    await room.hand.pass_s(1)
    calls = room.store.units.scripts.calls
    task = asyncio.get_running_loop().create_task(room.receive())
    await room.until(lambda: room.store.units.scripts.calls > calls)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await room.settled()
    assert await room.states(0) == [("ready", 1)], "the first receive had it"
    assert [kind for kind, _ in await room.journal()] == ["leased", "lapsed", "leased", "returned"]


async def test_a_receiver_that_goes_with_its_answer_has_received_nothing(room: Room) -> None:
    """The long poll was served, and its caller goes before it has heard of that."""
    task = await room.waiting()
    await room.send("a")
    room.wait_lists.woken(room.queue.incarnation, 0)
    line = room.long_polls.list_of(room.queue, room.tag)
    (waiter,) = line.waiters
    await room.until(waiter.served.done)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await room.settled()
    assert await room.states(0) == [("ready", 0)]
    assert [kind for kind, _ in await room.journal()] == ["leased", "returned"]


async def test_a_read_that_takes_too_long_is_given_up(room: Room) -> None:
    await room.send("a", in_window=False)
    task = asyncio.get_running_loop().create_task(room.receive())
    await room.until(lambda: room.bodies.reads == 1)
    await room.hand.pass_s(READ_S - 0.1)
    assert not task.done()
    await room.hand.pass_s(0.1)
    with pytest.raises(LogUnavailable, match="does not answer"):
        await task
    await room.settled()
    assert await room.states(0) == [("delayed", 0)]


async def test_a_short_lease_does_not_end_while_the_body_is_read(room: Room) -> None:
    await room.send("a", in_window=False)
    task = asyncio.get_running_loop().create_task(room.receive(lease_s=1))
    await room.until(lambda: room.bodies.reads == 1)
    await room.hand.pass_s(2)
    assert await room.states(0) == [("leased", 1)]
    (state,) = await room.store.leases.states(room.units[0], 1, 0, [0])
    assert state.next_visible_at_ms == room.hand.now_ms - 2_000 + HOLD_MS
    task.cancel()


async def test_in_a_fifo_queue_nothing_passes_a_message_that_cannot_be_read(connection: Connection, hand: Hand) -> None:
    room = Room(connection, hand, fifo=True)
    await room.open()
    await room.send("a", in_window=False, group=group_digest("g"))
    await room.send("b", group=group_digest("g"))
    room.bodies.fails.set()
    with pytest.raises(LogUnavailable):
        await room.receive()
    await room.settled()
    assert [count for _, count in await room.states(0, 1)] == [0, 0]
    await room.close()


async def test_two_long_polls_wait_for_one_body_and_the_second_is_served_meanwhile(room: Room) -> None:
    first = await room.waiting(1)
    await room.send("a", in_window=False)
    room.wait_lists.woken(room.queue.incarnation, 0)
    await room.until(lambda: room.bodies.reads == 1)
    second = asyncio.get_running_loop().create_task(room.receive(1, wait_s=20))
    await room.send("b")
    room.wait_lists.woken(room.queue.incarnation, 0)
    assert bodies_of(await second) == ["b"]
    assert not first.done()
    first.cancel()
