"""Which partitions a poll asks, and what becomes of what may not be delivered again."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from engine.catalog.catalog import Catalog
from engine.errors import Rebuilding
from engine.receive.poll import Leases, Poll
from engine.rules.queue import Queue
from engine.window.entry import WriteThrough
from runtime.signals import Signal
from schemas.records.settings import RedrivePolicy
from state.packed import pack_body
from state.redis.connection import Connection
from state.replies import LoadEntry
from tests.engine.room import Hand, Room
from tests.unit.records import queue_record


async def poll(room: Room, max: int = 10, *, everywhere: bool, callers: int = 1) -> Leases:
    """What a poll has leased."""
    line = room.long_polls.list_of(room.queue, room.tag)
    return await room.poller.poll(Poll(room.queue, room.tag, line, 30_000), max, everywhere=everywhere, callers=callers)


def places(leases: Leases) -> list[tuple[int, int]]:
    """Partition and offset of each message."""
    return [(partition, one.offset) for partition, received in leases for one in received.leased]


async def test_a_partition_that_had_nothing_is_asked_when_it_was_woken_or_everywhere(room: Room) -> None:
    assert await poll(room, everywhere=False) == []
    await room.send("a", partition=1)
    assert await poll(room, everywhere=False) == [], "nothing is known of it"
    room.wait_lists.woken(room.queue.incarnation, 1)
    assert places(await poll(room, everywhere=False)) == [(1, 0)]

    await room.send("b", partition=0)
    assert await poll(room, everywhere=False) == []
    assert places(await poll(room, everywhere=True)) == [(0, 0)]


async def test_a_wake_up_while_a_partition_is_asked_is_not_forgotten(room: Room) -> None:
    await poll(room, everywhere=True)
    room.wait_lists.woken(room.queue.incarnation, 0)
    calls = room.store.units.scripts.calls
    asked = asyncio.get_running_loop().create_task(poll(room, everywhere=False))
    await room.until(lambda: room.store.units.scripts.calls > calls)
    room.wait_lists.woken(room.queue.incarnation, 0)  # the answer that is on its way does not know of it
    assert await asked == [] and room.store.units.scripts.calls == calls + 1
    await room.send("a", partition=0)
    assert places(await poll(room, everywhere=False)) == [(0, 0)]


async def test_one_caller_gets_the_oldest_first_and_several_share_all_partitions(room: Room) -> None:
    for partition, body in enumerate("abab"):
        await room.send(body, partition=partition % 2)
        await room.hand.pass_s(1)
    await poll(room, 1, everywhere=True)
    assert sorted(places(await poll(room, 2, everywhere=False))) == [(0, 1), (1, 0)]
    await room.hand.pass_s(60)
    assert sorted(places(await poll(room, 4, everywhere=True, callers=2))) == [(0, 0), (0, 1), (1, 0), (1, 1)]


async def test_of_messages_of_one_ms_those_behind_the_last_one_come_first(room: Room) -> None:
    for partition in (1, 0):
        await room.send("a", "b", "c", partition=partition)
    await room.hand.pass_s(1)
    found = places(await poll(room, 1, everywhere=True))
    while len(found) < 6:
        found += places(await poll(room, 1, everywhere=False))
    first = found[0][0]
    assert found == [(partition, offset) for partition in (first, 1 - first) for offset in range(3)]


async def test_several_callers_who_want_little_get_the_oldest_too(room: Room) -> None:
    await poll(room, everywhere=True)
    await room.send("a", partition=1)
    older_ms = room.hand.now_ms
    await room.hand.pass_s(1)
    await room.send("b", partition=0)
    room.wait_lists.woken(room.queue.incarnation, 1, older_ms)
    room.wait_lists.woken(room.queue.incarnation, 0, room.hand.now_ms)
    assert places(await poll(room, 1, everywhere=False, callers=2)) == [(1, 0)]


async def test_what_was_written_first_comes_first_though_kafka_is_ahead(room: Room) -> None:
    catalog, log = cast(Catalog, room.catalog), cast(Any, None)
    write = WriteThrough(log, room.store, catalog, room.cache, room.counters, room.receivable, Signal[[Queue]]()).write
    await poll(room, everywhere=True)
    kafka_ms = room.hand.now_ms + 500
    await write(room.queue, 1, [LoadEntry(0, pack_body(kafka_ms, kafka_ms, None, b"a"), "1")])
    await room.hand.pass_s(0.1)
    await room.send("b", partition=0)
    room.wait_lists.woken(room.queue.incarnation, 0, room.hand.now_ms)
    assert places(await poll(room, 1, everywhere=False)) == [(1, 0)]


async def test_what_was_received_too_often_dies_and_is_nobodys(connection: Connection, hand: Hand) -> None:
    dead = queue_record("dead", 1, incarnation="d" * 12)
    room = Room(connection, hand, redrive_policy=RedrivePolicy("dead", 1))
    room.catalog.put("queue", "dead", dead, 0)
    await room.open()
    await room.send("a", "b")
    assert len(await room.receive(1, lease_s=1)) == 1
    await room.hand.pass_s(1)

    assert [one.offset for one in await room.receive()] == [1]
    assert [(one.offset, one.count, one.reason) for one in room.dead] == [(0, 1, "exhausted")]
    assert await room.receive() == []
    await room.close()


async def test_without_its_dead_letter_queue_a_message_is_received_on(connection: Connection, hand: Hand) -> None:
    room = Room(connection, hand, redrive_policy=RedrivePolicy("dead", 1))
    await room.open()
    await room.send("a")
    for count in (1, 2, 3):
        (got,) = await room.receive(lease_s=1)
        assert got.receive_count == count
        await room.hand.pass_s(1)
    assert room.dead == []
    await room.close()


async def test_what_one_partition_has_leased_is_delivered_though_the_other_fails(room: Room) -> None:
    await poll(room, everywhere=True)
    await room.send("a", partition=0)
    await room.lose(1)
    for partition in (0, 1):
        room.wait_lists.woken(room.queue.incarnation, partition)
    assert places(await poll(room, everywhere=True, callers=2)) == [(0, 0)]
    with pytest.raises(Rebuilding):
        await poll(room, everywhere=True)
