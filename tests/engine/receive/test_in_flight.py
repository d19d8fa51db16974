"""A queue with `max_in_flight`: receives of one worker give no more while so many are leased."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from engine.errors import Rebuilding
from engine.receive.waits.wait_list import LOOK_AGAIN_S
from state.redis.connection import Connection
from state.replies import AtOnce
from tests.engine.room import Hand, Room


@pytest.fixture
async def bounded(connection: Connection, hand: Hand) -> Room:
    """Ten messages in two partitions, of which three may be in flight."""
    room = Room(connection, hand, max_in_flight=3)
    await room.open()
    for partition in (0, 1):
        await room.send(*"abcde", partition=partition)
    return room


async def test_no_more_are_given_until_one_is_settled(bounded: Room) -> None:
    first = await bounded.receive(10)
    assert len(first) == 3
    assert await bounded.receive(10) == []
    assert await bounded.ack(first[0].handle) == [("ok", "")]
    assert len(await bounded.receive(10)) == 1
    assert await bounded.receive(10) == []
    await bounded.close()


async def test_receives_at_once_get_three_in_all(bounded: Room) -> None:
    got = await asyncio.gather(*(bounded.receive(2) for _ in range(8)))
    assert sum(map(len, got)) == 3
    waiting = [await bounded.waiting(1) for _ in range(4)]
    assert not any(task.done() for task in waiting)
    await bounded.close()
    assert await asyncio.gather(*waiting) == [[]] * 4


@pytest.mark.parametrize("how", ["ack", "release", "expiry", "give back"])
async def test_who_waits_at_the_bound_is_served_soon_after_one_is_free(bounded: Room, how: str) -> None:
    held = await bounded.receive(10, lease_s=30)
    waiting = await bounded.waiting(10, wait_s=60)
    await bounded.hand.pass_s(1)
    await bounded.settled()
    assert not waiting.done()
    if how == "ack":
        await bounded.ack(held[0].handle)
    elif how == "release":
        await bounded.release(20, held[0].handle)
    elif how == "give back":
        bounded.receiver.undelivered(held[:1])
    else:
        await bounded.hand.pass_s(29)
    await bounded.settled()
    await bounded.hand.pass_s(0.05)
    assert len(await waiting) == (3 if how == "expiry" else 1)
    await bounded.close()


async def test_a_bound_that_changes_holds_from_the_next_receive_on(bounded: Room) -> None:
    held = await bounded.receive(10)
    bounded.put(replace(bounded.queue.record, max_in_flight=2))
    await bounded.ack(held[0].handle)
    assert await bounded.receive(10) == [], "two are leased still"
    await bounded.ack(held[1].handle)
    assert len(await bounded.receive(10)) == 1
    bounded.put(replace(bounded.queue.record, max_in_flight=0))
    assert len(await bounded.receive(10)) == 6
    await bounded.close()


async def test_while_a_partition_is_lost_nothing_is_given_of_another(bounded: Room) -> None:
    await bounded.lose(1)
    with pytest.raises(Rebuilding):
        await bounded.receive(10)
    await bounded.find(1)
    assert len(await bounded.receive(10)) == 3
    await bounded.close()


async def test_who_waits_at_the_bound_asks_some_times_a_second(bounded: Room) -> None:
    """Of each partition once in 50 ms, however many wait."""
    await bounded.receive(10)
    waiting = [await bounded.waiting(1) for _ in range(20)]
    calls = bounded.store.units.scripts.calls
    for _ in range(100):
        await bounded.hand.pass_s(0.01)
        await bounded.settled()
    assert 20 <= bounded.store.units.scripts.calls - calls <= 2 * 2 * (20 + round(1 / LOOK_AGAIN_S) + 2)
    assert not any(task.done() for task in waiting)
    await bounded.close()
    await asyncio.gather(*waiting)


async def test_a_lease_that_has_ended_is_not_taken_up_again_by_an_extend(bounded: Room) -> None:
    held = await bounded.receive(10, lease_s=10)
    assert [status for status, _ in await bounded.extend(30, held[0].handle)] == ["ok"]
    await bounded.hand.pass_s(10)
    assert len(await bounded.receive(10)) == 2
    assert await bounded.extend(30, held[1].handle, held[2].handle) == [("stale", "expired")] * 2
    await bounded.hand.pass_s(20)
    assert await bounded.extend(30, held[0].handle) == [("stale", "expired")]
    assert await bounded.ack(held[0].handle) == [("ok", "")], "what was worked on late is done"
    await bounded.close()


async def test_the_oldest_come_first_though_each_ack_frees_one_place(connection: Connection, hand: Hand) -> None:
    room = Room(connection, hand, max_in_flight=1)
    await room.open()
    for body in "abc":
        await room.send(body, partition=1)
        await hand.pass_s(1)
    for body in "xyz":
        await room.send(body, partition=0)
        await hand.pass_s(1)
    found = []
    for number in range(6):
        (one,) = await room.receive(1, wait_s=20 * (number % 2))
        found.append(one.message.body.decode())
        await room.ack(one.handle)
    assert "".join(found) == "abcxyz"
    await room.close()


async def test_the_first_priority_comes_first_though_it_fills_the_bound(connection: Connection, hand: Hand) -> None:
    room = Room(connection, hand, max_in_flight=1, priority=True)
    await room.open()
    for partition, bodies in ((1, "xyz"), (0, "abc")):
        await room.send(*bodies, partition=partition)
    found = []
    for _ in range(6):
        (one,) = await room.receive(1)
        found.append(one.message.body.decode())
        assert await room.receive(1) == []
        await room.ack(one.handle)
    assert "".join(found) == "abcxyz"
    await room.close()


async def test_an_ack_serves_who_waits_at_this_worker_at_once(bounded: Room) -> None:
    held = await bounded.receive(10)
    waiting = await bounded.waiting(10, wait_s=60)
    await bounded.ack(held[0].handle)
    await bounded.settled()
    assert len(await waiting) == 1
    await bounded.close()


async def test_a_look_at_the_bound_asks_one_partition(bounded: Room) -> None:
    held = await bounded.receive(10)
    calls = bounded.store.units.scripts.calls
    for _ in range(5):
        assert await bounded.receive(10) == []
    assert bounded.store.units.scripts.calls - calls == 5
    waiting = await bounded.waiting(10, wait_s=60)
    calls = bounded.store.units.scripts.calls
    for partition in (0, 1):
        await bounded.wake(partition)
    assert bounded.store.units.scripts.calls == calls, "a load frees no place"
    await bounded.ack(held[0].handle)
    assert len(await waiting) == 1
    await bounded.close()


async def test_a_partition_that_has_no_such_tag_any_more_holds_nothing(bounded: Room) -> None:
    meta = bounded.store.units.of(bounded.units[0]).meta
    await bounded.store.upkeep.close(bounded.units[0], bounded.tag.id)
    leased = await bounded.store.leases.receive(
        bounded.units[1],
        1,
        bounded.tag.id,
        max=10,
        lease_ms=None,
        queue_lease_ms=30_000,
        max_receive_count=0,
        retention_ms=1_000_000_000,
        move_ms=30_000,
        at_once=AtOnce(0, 0, 3, 2),
    )
    assert len(leased.leased) == 3
    assert await bounded.store.units.scripts.ask("HGET", meta, "generation") == b"1", "it serves other tags on"
    await bounded.close()
