"""What the holder of a handle may do, and until when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.errors import InvalidHandle, NotAllowedOnQueue, Rebuilding
from engine.meters.meters import NO_TAG
from engine.rules.fifo import group_digest
from engine.shapes import EntryResult, ExtendEntry, Late
from runtime.deadline import state_until
from schemas.identity import Handle
from schemas.records import TagRecord
from schemas.records.settings import RedrivePolicy
from schemas.vocabulary import Operation
from state.redis.connection import Connection
from tests.engine.room import Hand, Room, bodies_of
from tests.unit.records import queue_record

OK = ("ok", "")


def stale(reason: str) -> tuple[str, str]:
    return ("stale", reason)


async def leased(room: Room, lease_s: float = 5, body: str = "a", partition: int = 0) -> str:
    """The handle of a message that was just sent."""
    await room.send(body, partition=partition)
    (got,) = await room.receive(1, lease_s=lease_s)
    return got.handle


async def ordered(connection: Connection, hand: Hand) -> Room:
    """A FIFO queue with two messages of one group."""
    room = Room(connection, hand, fifo=True)
    await room.open()
    await room.send("a", "b", group=group_digest("g"))
    return room


# Ack


async def test_an_ack_settles_once_and_says_so_the_second_time(room: Room) -> None:
    handle = await leased(room)
    assert await room.ack(handle) == [OK]
    assert await room.ack(handle) == [stale("settled")]
    assert await room.states(0) == [("settled", 0)]
    assert [kind for kind, _ in await room.journal()] == ["leased", "acked"]
    await room.hand.pass_s(60)
    assert await room.receive() == []


async def test_the_time_in_hand_ends_with_an_ack_or_release_that_does_something(room: Room) -> None:
    acked, released, emptied, kept = [await leased(room) for _ in range(4)]
    await room.hand.pass_s(2)
    for _ in range(2):
        await room.ack(acked)
        await room.release(0, released)
    await room.extend(0, emptied)
    await room.extend(60, kept)
    times = room.meters.times
    for histogram, count in ((times.acked, 1), (times.released, 2)):
        assert sum(histogram.between) == count
        assert 2_000 * count <= histogram.sum_ms < 4_000 * count


async def test_a_late_ack_counts_until_somebody_else_has_the_message(room: Room) -> None:
    first, second = await leased(room), await leased(room, body="b")
    await room.hand.pass_s(5)
    assert await room.ack(first) == [OK]
    (again,) = await room.receive()
    assert bodies_of([again]) == ["b"]
    assert await room.ack(second) == [stale("superseded")]
    assert await room.states(1) == [("leased", 2)], "the one who has it keeps it"
    assert await room.ack(again.handle) == [OK]


async def test_who_does_not_count_late_acks_is_told_which_message_is_gone(room: Room) -> None:
    handle = await leased(room)
    await room.hand.pass_s(5)
    assert await room.ack(handle, late=Late.NEVER) == [("lapsed", "expired")]
    (again,) = await room.receive()
    assert await room.ack(handle, late=Late.NEVER) == [("lapsed", "superseded")]
    await room.ack(again.handle)
    assert await room.ack(handle, late=Late.NEVER) == [stale("settled")]


async def test_a_fifo_queue_counts_no_late_ack_where_the_queue_says(connection: Connection, hand: Hand) -> None:
    room = await ordered(connection, hand)
    (first,) = await room.receive(1, lease_s=5)
    await hand.pass_s(5)
    assert await room.ack(first.handle, late=Late.BY_QUEUE) == [("lapsed", "expired")]
    assert await room.ack(first.handle) == [OK]
    await room.close()


async def test_what_stands_behind_in_a_group_is_received_when_the_first_is_acked(
    connection: Connection, hand: Hand
) -> None:
    room = await ordered(connection, hand)
    (first,) = await room.receive(1)
    assert await room.receive() == []
    task = await room.waiting()
    await room.ack(first.handle)
    await room.settled()
    assert bodies_of(await task) == ["b"]
    await room.close()


async def test_answers_come_in_the_order_of_the_handles_whatever_their_partitions(room: Room) -> None:
    handles = [await leased(room, partition=n % 2) for n in range(4)]
    await room.ack(handles[2])
    assert await room.ack(handles[3], handles[2], handles[0]) == [OK, stale("settled"), OK]
    assert await room.ack(handles[1], handles[1]) == [OK, OK], "one that is given twice has one answer"
    assert room.meters._cells[room.queue.incarnation, 0, Operation.DELETE].messages == 4


async def test_an_ack_that_is_to_be_durable_waits_for_the_journal_and_so_does_its_repeat(
    connection: Connection, hand: Hand
) -> None:
    room = Room(connection, hand, durable_acks=True)
    await room.open()
    handle = await leased(room)
    await room.ack(handle)
    assert room.journaled == [(0, 2)], "leased was the first entry, acked the second"
    await room.ack(handle)
    assert room.journaled == [(0, 2)] * 2, "the journal may lack the entry of the first time"
    await room.close()


async def test_while_a_unit_is_lost_an_ack_does_nothing(room: Room) -> None:
    handle = await leased(room)
    await room.lose(0)
    with pytest.raises(Rebuilding):
        await room.ack(handle)
    await room.find(0)
    assert await room.states(0) == [("leased", 1)]
    assert await room.ack(handle) == [OK]


async def test_what_was_held_in_a_life_that_is_over_is_held_no_more(room: Room) -> None:
    handle = await leased(room)
    await room.lose(0)
    room.recovery.renewed.add(room.queue.incarnation)
    assert await room.ack(handle) == [stale("queue_remade")]
    assert await room.extend(5, handle) == [stale("queue_remade")]
    assert await room.release(0, handle) == [stale("queue_remade")]


# Handles of something else


async def test_a_handle_of_another_life_or_tag_or_partition_holds_nothing_and_says_why(room: Room) -> None:
    handle = Handle.parse(await leased(room), room.ids.secret)
    others = {
        "queue_remade": replace(handle, incarnation="f" * 12),
        "tag_gone": replace(handle, tag=7),
        "partition_gone": replace(handle, partition=9),
    }
    for reason, other in others.items():
        text = other.text(room.ids.secret)
        assert await room.ack(text, handle.text(room.ids.secret)) == [
            stale(reason),
            OK if reason == "queue_remade" else stale("settled"),
        ]
        assert await room.extend(1, text) == await room.release(0, text) == [stale(reason)]
    assert {metric.split('"')[1] for metric in room.handles.refusals.counts} == {*others, "settled"}
    assert (room.queue.incarnation, NO_TAG, Operation.DELETE) in room.meters._cells


async def test_a_handle_of_another_queue_or_of_nobody_is_none(room: Room) -> None:
    handle = await leased(room)
    tags = [TagRecord(0, "default", 1, 0, [0])]
    room.catalog.put("queue", "other", queue_record("other", 1, incarnation="e" * 12, tags=tags), 0)
    other = replace(Handle.parse(handle, room.ids.secret), incarnation="e" * 12).text(room.ids.secret)
    for bad in (other, "nonsense", handle[:-2] + "AA"):
        results = await room.handles.settlements.ack(room.queue, [bad], state_until())
        assert [(one.status, type(one.error)) for one in results] == [("invalid", InvalidHandle)]
        with pytest.raises(InvalidHandle):
            await room.handles.settlements.ack(room.queue, [handle, bad], state_until(), all_or_none=True)
    assert await room.states(0) == [("leased", 1)], "nothing was changed"


# Extend and release


async def test_an_extension_counts_from_now_and_nobody_has_the_message_meanwhile(room: Room) -> None:
    handle = await leased(room, lease_s=5)
    await room.hand.pass_s(4)
    assert await room.extend(5, handle) == [OK]
    await room.hand.pass_s(4.999)
    assert await room.receive() == []
    await room.hand.pass_s(0.001)
    assert len(await room.receive()) == 1
    assert await room.extend(5, handle) == [stale("superseded")]


async def test_an_extension_to_nothing_makes_a_message_receivable_and_leaves_its_handle_good_until_then(
    room: Room,
) -> None:
    handle = await leased(room)
    task = await room.waiting(wait_s=20)
    assert await room.extend(0, handle) == [OK]
    await room.wake()
    (again,) = await task
    assert again.receive_count == 2
    assert await room.ack(handle) == [stale("superseded")]


async def test_where_a_queue_says_so_an_extension_of_what_somebody_else_has_is_told_apart(room: Room) -> None:
    handle = await leased(room)
    await room.hand.pass_s(5)
    (again,) = await room.receive()
    assert await room.extend(5, handle, late=Late.BY_QUEUE) == [("superseded", "superseded")]
    await room.ack(again.handle)
    assert await room.extend(5, handle, late=Late.BY_QUEUE) == [stale("settled")]


async def test_a_lease_may_not_last_longer_in_all_than_its_dialect_says(room: Room) -> None:
    handle = await leased(room)
    await room.hand.pass_s(3)
    for lease_s, status in ((8, "invalid"), (7, "ok")):
        (result,) = await room.handles.leases.extend(
            room.queue, [ExtendEntry(handle, lease_s * 1000, in_all_s=10)], state_until()
        )
        assert result.status == status
    (state,) = await room.store.leases.states(room.units[0], 1, 0, [0])
    assert state.next_visible_at_ms == room.hand.now_ms + 7_000


async def test_a_handle_for_one_use_is_good_for_the_first_of_them(room: Room) -> None:
    await room.send("a")
    (got,) = await room.receive(lease_s=5)
    first = room.handles.handles.one_use(got)
    (result,) = await room.handles.leases.extend(room.queue, [ExtendEntry(first, 9_000, one_use=True)], state_until())
    assert result.status == "ok" and result.next_handle != first
    assert await room.ack(first) == [stale("used")]
    assert await room.ack(result.next_handle) == [OK]


async def test_a_released_message_comes_after_its_delay_and_its_count_stays(room: Room) -> None:
    handle = await leased(room)
    assert await room.release(3, handle) == [OK]
    assert await room.ack(handle) == [stale("released")]
    assert await room.receive() == []
    await room.hand.pass_s(3)
    (again,) = await room.receive()
    assert again.receive_count == 2
    assert await room.release(0, handle) == [stale("superseded")]
    assert await room.states(0) == [("leased", 2)]


async def test_who_waits_gets_what_is_released(room: Room) -> None:
    handle = await leased(room)
    task = await room.waiting()
    await room.release(0, handle)
    await room.settled()
    assert bodies_of(await task) == ["a"]


# Kill


async def test_nothing_is_killed_where_there_is_no_dead_letter_queue(room: Room) -> None:
    handle = await leased(room)
    with pytest.raises(NotAllowedOnQueue):
        await room.handles.kills.kill(room.queue, [handle])
    assert await room.states(0) == [("leased", 1)] and room.dead == []


async def test_what_is_killed_is_moved_once_and_received_by_nobody(connection: Connection, hand: Hand) -> None:
    room = Room(connection, hand, redrive_policy=RedrivePolicy("dead", 5))
    room.catalog.put("queue", "dead", queue_record("dead", 1, incarnation="d" * 12), 0)
    await room.open()
    handle = await leased(room)
    killed = [await room.handles.kills.kill(room.queue, [handle]) for _ in range(2)]
    assert killed == [[EntryResult(handle, "ok")], [EntryResult(handle, "stale", reason="dying")]]
    assert [(one.offset, one.count, one.reason) for one in room.dead] == [(0, 1, "killed")]
    await hand.pass_s(6)
    assert await room.receive() == []
    await room.close()
