"""Who gets what, and when: short and long polls of one worker."""

from __future__ import annotations

import asyncio

import pytest

from engine.errors import NotAuthorised, QuotaExceeded
from engine.receive.waits.wait_list import LOOK_AGAIN_S
from engine.rules.rights import Asker, WaitBound
from tests.engine.room import Room, bodies_of


async def test_a_short_poll_takes_the_oldest_of_all_partitions_and_each_once(room: Room) -> None:
    await room.send("a", partition=1)
    await room.hand.pass_s(1)
    await room.send("b", partition=0)
    await room.hand.pass_s(1)
    await room.send("c", partition=1)

    assert bodies_of(await room.receive(2)) == ["a", "b"]
    assert bodies_of(await room.receive(2)) == ["c"]
    assert await room.receive(2) == []


async def test_a_message_is_with_one_until_its_lease_is_over(room: Room) -> None:
    await room.send("a")
    (first,) = await room.receive(lease_s=5)
    await room.hand.pass_s(4.999)
    assert await room.receive() == []
    await room.hand.pass_s(0.001)
    (again,) = await room.receive()
    assert (first.receive_count, again.receive_count, again.id) == (1, 2, first.id)
    assert first.handle != again.handle


async def test_receives_at_once_share_the_messages_and_no_two_have_one(room: Room) -> None:
    await room.send(*map(str, range(20)), partition=0)
    await room.send(*map(str, range(20, 40)), partition=1)
    answers = await asyncio.gather(*(room.receive(7) for _ in range(8)))
    got = [body for answer in answers for body in bodies_of(answer)]
    assert sorted(map(int, got)) == list(range(40))


async def test_a_long_poll_is_served_when_something_wakes_it(room: Room) -> None:
    task = await room.waiting()
    await room.send("a")
    await room.settled()
    assert not task.done(), "nobody has said that there is something"
    await room.wake()
    assert bodies_of(await task) == ["a"]


async def test_a_lost_wake_up_costs_some_seconds(room: Room) -> None:
    task = await room.waiting(wait_s=20)
    await room.send("a")
    await room.hand.pass_s(LOOK_AGAIN_S - 0.1)
    await room.settled()
    assert not task.done()
    await room.hand.pass_s(0.1)
    await room.settled()
    assert bodies_of(await task) == ["a"]


async def test_a_long_poll_is_served_when_the_lease_of_another_ends(room: Room) -> None:
    await room.send("a")
    await room.receive(lease_s=2)
    task = await room.waiting()
    await room.hand.pass_s(1.9)
    await room.settled()
    assert not task.done()
    await room.hand.pass_s(0.1)
    await room.settled()
    (got,) = await task
    assert got.receive_count == 2


async def test_a_long_poll_ends_with_nothing_when_its_time_is_over(room: Room) -> None:
    task = await room.waiting(wait_s=3)
    await room.hand.pass_s(2.9)
    await room.settled()
    assert not task.done()
    await room.hand.pass_s(0.1)
    assert await task == [] and room.wait_lists.waiting == 0


async def test_who_came_first_is_served_first(room: Room) -> None:
    tasks = [await room.waiting(1) for _ in range(3)]
    for body in "abc":
        await room.send(body)
        await room.wake()
    assert [bodies_of(await task) for task in tasks] == [["a"], ["b"], ["c"]]


async def test_several_who_wait_share_what_comes_at_once(room: Room) -> None:
    tasks = [await room.waiting(1) for _ in range(3)]
    await room.send("a", "b")
    await room.wake()
    assert [task.done() for task in tasks] == [True, True, False]
    assert [bodies_of(await task) for task in tasks[:2]] == [["a"], ["b"]]
    tasks[2].cancel()


async def test_who_has_gone_leaves_the_message_to_those_behind(room: Room) -> None:
    first, second = await room.waiting(1), await room.waiting(1)
    first.cancel()
    await asyncio.sleep(0)
    await room.send("a")
    await room.wake()
    assert bodies_of(await second) == ["a"]
    assert await room.states(0) == [("leased", 1)]


async def test_who_lost_the_right_while_waiting_gets_nothing(room: Room) -> None:
    lost = False

    def check() -> None:
        if lost:
            raise NotAuthorised("no more")

    task = await room.waiting(asker=Asker((), check))
    lost = True
    await room.hand.pass_s(1.5)
    await room.send("a")
    await room.wake()
    with pytest.raises(NotAuthorised):
        await task
    await room.settled()
    assert await room.states(0) == [("ready", 0)], "nobody has had it"


async def test_no_more_wait_than_a_bound_allows(room: Room) -> None:
    asker = Asker((WaitBound("queue 'q'", 1),), lambda: None)
    task = await room.waiting(asker=asker)
    with pytest.raises(QuotaExceeded):
        await room.receive(wait_s=1, asker=asker)
    task.cancel()
    await asyncio.sleep(0)
    again = await room.waiting(asker=asker)
    assert not again.done(), "who has gone does not count"
    again.cancel()


async def test_when_the_worker_stops_all_who_wait_hear_that_there_is_nothing(room: Room) -> None:
    tasks = [await room.waiting() for _ in range(3)]
    room.wait_lists.stop()
    assert await asyncio.gather(*tasks) == [[], [], []]
    await room.send("a")
    await room.wake()
    assert await room.states(0) == [("ready", 0)]
