"""A delivery that no answer carried is no delivery."""

from __future__ import annotations

import asyncio

import pytest

from engine.errors import Rebuilding
from engine.receive.returns import GIVE_BACK_S, REMEMBERED_S
from tests.engine.room import Room, bodies_of


async def test_what_goes_back_is_uncounted_and_at_its_place(room: Room) -> None:
    await room.send("a", "b")
    got = await room.receive(1)
    room.receiver.undelivered(got)
    await room.settled()
    assert await room.states(0, 1) == [("ready", 0), ("ready", 0)]
    assert room.counters.get("deliveries_returned_total") == 1

    await room.hand.pass_s(1)
    again = await room.receive()
    assert bodies_of(again) == ["a", "b"] and again[0].receive_count == 1
    assert again[0].first_received_at_ms == room.hand.now_ms


async def test_who_waits_gets_what_goes_back(room: Room) -> None:
    await room.send("a")
    got = await room.receive()
    task = await room.waiting()
    room.receiver.undelivered(got)
    await room.settled()
    assert bodies_of(await task) == ["a"]
    assert await room.states(0) == [("leased", 1)]


async def test_a_delivery_goes_back_once(room: Room) -> None:
    await room.send("a")
    got = await room.receive()
    for _ in range(2):
        await room.returns.give_back(room.queue, 0, got)
    assert await room.states(0) == [("ready", 0)]
    assert room.counters.get("deliveries_returned_total") == 1
    assert room.counters.get("deliveries_too_late_to_return_total") == 1


async def test_what_somebody_else_has_by_now_stays_with_them(room: Room) -> None:
    await room.send("a")
    old = await room.receive(lease_s=1)
    await room.hand.pass_s(1)
    (new,) = await room.receive()
    await room.returns.give_back(room.queue, 0, old)
    assert await room.states(0) == [("leased", 2)]
    assert room.counters.get("deliveries_too_late_to_return_total") == 1
    assert await room.ack(new.handle) == [("ok", "")]


async def test_redis_is_told_later_when_it_has_lost_the_unit_meanwhile(room: Room) -> None:
    await room.send("a")
    got = await room.receive()
    await room.lose(0)
    room.receiver.undelivered(got)
    with pytest.raises(Rebuilding):
        await room.until_tried()
    for pause_s in (0.05, 0.1):
        await room.hand.pass_s(pause_s)
    await room.find(0)
    assert await room.states(0) == [("leased", 1)]
    await room.hand.pass_s(1)
    await room.settled()
    assert await room.states(0) == [("ready", 0)]


async def test_it_is_not_told_for_ever(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    await room.send("a")
    got = await room.receive()
    await room.lose(0)
    task = asyncio.get_running_loop().create_task(room.returns.give_back(room.queue, 0, got))
    with pytest.raises(Rebuilding):
        await room.until_tried()
    await room.hand.pass_s(GIVE_BACK_S + 1)
    await task
    assert any("action=give_back" in line for line in caplog.messages)


async def test_a_worker_that_stops_does_not_try_again(room: Room) -> None:
    await room.send("a")
    got = await room.receive()
    await room.lose(0)
    room.returns.stop()
    await room.returns.give_back(room.queue, 0, got)
    await room.find(0)
    assert await room.states(0) == [("leased", 1)], "it comes again when its lease ends"


async def test_a_queue_that_began_a_new_life_has_nothing_to_take_back(room: Room) -> None:
    await room.send("a")
    got = await room.receive()
    await room.lose(0)
    room.recovery.renewed.add(room.queue.incarnation)
    await room.returns.give_back(room.queue, 0, got)
    assert room.counters.get("deliveries_returned_total") == 0


@pytest.mark.parametrize(("since_s", "state"), [(REMEMBERED_S - 1, ("ready", 0)), (REMEMBERED_S + 1, ("leased", 1))])
async def test_what_a_rebuild_has_brought_back_is_given_back_again(
    room: Room, since_s: float, state: tuple[str, int]
) -> None:
    await room.send("a")
    got = await room.receive(lease_s=30)
    await room.returns.give_back(room.queue, 0, got)
    await room.hand.pass_s(since_s)
    # The journal had the lease, and not its return.
    await room.restore(0, got)
    assert await room.states(0) == [("leased", 1)]
    room.returns.tell_again(room.units[0])
    await room.settled()
    assert await room.states(0) == [state]
