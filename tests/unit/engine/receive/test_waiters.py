"""Wait lists: who is served by one call, what is left over, and when there is something to ask."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from engine.errors import LogUnavailable, QuotaExceeded
from engine.receive.waits.wait_list import FOREVER, LOOK_AGAIN_S, MAX_PARALLEL, MAX_PER_CALL, WaitList
from engine.receive.waits.wait_lists import WaitLists
from engine.receive.waits.waiter import Waiter
from engine.rules.limits import MAX_RECEIVE_BYTES
from engine.rules.queue import Queue
from engine.rules.rights import NOBODY, Asker, WaitBound
from engine.shapes import Delivery
from runtime import deadline
from runtime.background import Background
from schemas.records import Attribute, Message, TagRecord
from state.replies import Probed
from tests.unit.records import queue_record

DEFAULT = TagRecord(0, "default", 1, 0, [0, 0])
QUEUE = Queue(
    queue_record(partitions=2, tags=[DEFAULT]),
    "lw",
)


async def nobody(line: WaitList) -> bool:
    """Serves none."""
    return False


def waiter(max: int = 1, lease_ms: int | None = None) -> Waiter:
    return Waiter(max, lease_ms, asyncio.get_running_loop().create_future())


def future_of(one: Waiter) -> asyncio.Future[list[Delivery]]:
    """What `waiter` gave it."""
    assert isinstance(one.served, asyncio.Future)
    return one.served


def waiting(*waiters: Waiter, partitions: int = 2) -> WaitList:
    found = WaitList(0, partitions, nobody, Background())
    found.waiters.extend(waiters)
    return found


def deliveries(count: int) -> list[Delivery]:
    return [Delivery(f"id{n}", f"handle{n}", Message(b"%d" % n), 1, 1, 1, 1, 0, n, "", "") for n in range(count)]


def probed(wait_ms: int | None, head_ms: int | None) -> Probed:
    return Probed(wait_ms, head_ms, cursor=0, open=0, in_flight=0, bodies=0, bytes=0, seen=0, hungry=False, times=[])


async def test_one_call_serves_those_with_one_lease_up_to_its_messages() -> None:
    first, second, other = waiter(MAX_PER_CALL - 1), waiter(1), waiter(1, lease_ms=5)
    line = waiting(first, second, other, partitions=1)
    assert line.pop_batch(alone=False) == [first, second]
    assert line.pop_batch(alone=False) == [other] and not line.waiters


async def test_waiters_who_want_much_are_served_side_by_side_but_not_all() -> None:
    all_of_them = [waiter(MAX_PER_CALL) for _ in range(MAX_PARALLEL + 2)]
    line = waiting(*all_of_them, partitions=8)
    assert line.pop_batch(alone=False) == all_of_them[:MAX_PARALLEL]


async def test_who_has_gone_is_passed_over_and_alone_means_one() -> None:
    gone, first, second = waiter(), waiter(), waiter()
    future_of(gone).cancel()
    line = waiting(gone, first, second)
    assert line.pop_batch(alone=True) == [first]
    line.requeue([first])
    assert list(line.waiters) == [first, second]


async def test_messages_go_to_waiters_in_order_and_what_is_left_to_those_behind() -> None:
    first, second, behind = waiter(2), waiter(2), waiter(2)
    line = waiting(behind)
    future_of(first).cancel()
    assert line.deliver([first, second], deliveries(3), fifo=False) == []
    assert [d.offset for d in future_of(second).result()] == [0, 1]
    assert [d.offset for d in future_of(behind).result()] == [2]


async def test_in_a_fifo_queue_what_a_gone_waiter_leaves_goes_to_nobody_behind() -> None:
    first, behind = waiter(2), waiter(2)
    line = waiting(behind)
    future_of(first).cancel()
    assert [d.offset for d in line.deliver([first], deliveries(2), fifo=True)] == [0, 1]
    assert not behind.served.done() and list(line.waiters) == [behind]


async def test_a_waiter_whose_time_ends_while_it_is_served_waits_for_that() -> None:
    one = waiter()
    one.busy = True
    one.give_up()
    assert not one.served.done()
    one.rest()
    assert future_of(one).result() == []


async def test_a_wake_up_during_a_look_is_not_overwritten_by_what_the_look_saw() -> None:
    line, now = waiting(), 10.0
    line.looked_at = now
    line.learn(0, 0, probed(None, None), now)
    line.learn(1, 0, probed(500, 700), now)
    assert line.oldest([0, 1], now) == [] and line.next_look() == pytest.approx(10.5)
    before = line.wakes[0]
    line.note_due(0, 600, now)
    line.learn(0, before, probed(None, None), now)
    assert line.oldest([0, 1], now) == [0] and line.next_look() == 0.0
    line.forget(1)
    assert line.oldest([0, 1], now) == [1, 0], "nothing is known of it, so it is asked first"


async def test_partitions_that_rest_are_not_asked_and_everything_is_asked_now_and_then() -> None:
    line, now = waiting(), 10.0
    line.looked_at = now
    for partition in (0, 1):
        line.learn(partition, 0, probed(None, None), now)
    assert line.due == [FOREVER, FOREVER] and line.next_look() == now + LOOK_AGAIN_S
    assert (line.stale(now + LOOK_AGAIN_S - 0.1), line.stale(now + LOOK_AGAIN_S)) == (False, True)
    line.rests[1] = now + 1
    assert line.awake([0, 1], now) == [0]
    assert line.awake([0, 1], now + 1) == [0, 1] and not line.rests


async def test_a_queue_that_is_gone_tells_who_waits_that_there_is_nothing() -> None:
    lists = WaitLists()
    line, one = lists.for_tag(QUEUE, DEFAULT, nobody), waiter()
    assert line is lists.for_tag(QUEUE, DEFAULT, nobody) and not lists.waits(QUEUE)
    line.waiters.append(one)
    assert lists.waits(QUEUE) and [*lists] == [line]
    lists.drop_queue(QUEUE.incarnation)
    assert future_of(one).result() == [] and not lists.waits(QUEUE) and [*lists] == []


def test_a_receive_counts_under_each_of_its_bounds_or_under_none() -> None:
    lists, check, at = WaitLists(), NOBODY.check, (QUEUE.incarnation, DEFAULT.id)
    one = Asker((WaitBound("queue 'q'", 2), WaitBound("account 'a'", 1)), check)
    other = Asker((WaitBound("queue 'q'", 2),), check)
    lists.enter(one, at)
    with pytest.raises(QuotaExceeded, match="1 receives of account 'a' may wait at a worker"):
        lists.enter(one, at)
    lists.enter(other, at)
    with pytest.raises(QuotaExceeded, match="2 receives of queue 'q' may wait at a worker") as refused:
        lists.enter(other, at)
    assert (refused.value.field, refused.value.limit, lists.waiting, lists.most_waiting) == ("waits", 2, 2, 2)
    assert lists.waiting_at == {at: 2}
    lists.leave(one, at)
    lists.enter(other, at)
    for _ in range(2):
        lists.leave(other, at)
    assert (lists.waiting, lists.most_waiting, lists.waiting_at) == (0, 0, {})


def test_a_call_leases_what_an_answer_has_room_for_if_messages_are_like_the_last() -> None:
    line, attributes = WaitList(0, 2, nobody, Background()), {"a": Attribute("string", b"x" * 93)}
    assert line.fits(MAX_RECEIVE_BYTES // 3) == 3 and line.fits(2 * MAX_RECEIVE_BYTES) == 1
    some = [structs.replace(one, message=Message(b"", attributes=attributes)) for one in deliveries(2)]
    assert line.have_room(some)
    assert line.fits(1) == MAX_RECEIVE_BYTES // 100
    assert line.have_room([]) and line.fits(1) == MAX_RECEIVE_BYTES // 100, "what brought nothing told something"
    assert line.have_room([structs.replace(some[0], message=Message(b""))])
    assert line.fits(1_000_000) == MAX_RECEIVE_BYTES, "empty messages count as unknown"
    assert line.fit == line.fits(1)
    large = [structs.replace(one, message=Message(bytes(MAX_RECEIVE_BYTES // 2 + 1))) for one in some]
    assert not line.have_room(large) and line.fit == 1
    assert line.have_room([structs.replace(some[0], message=Message(bytes(MAX_RECEIVE_BYTES + 1)))]), (
        "one has room always"
    )


async def test_a_waiter_whose_time_is_over_waits_for_what_is_under_way_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadline, "MESSAGES_S", 0.05)
    slow, served = waiter(), waiter()
    for one in (slow, served):
        one.busy = True
        one.give_up()
        assert not one.served.done()
    served.rest()
    assert await future_of(served) == [] and served.end is None
    with pytest.raises(LogUnavailable, match=r"took 0\.05 s longer than it was to wait"):
        await future_of(slow)
    slow.rest()


async def test_nobody_who_waits_at_the_bound_asks_before_its_time_though_a_partition_rests() -> None:
    line, now = waiting(waiter()), asyncio.get_running_loop().time()
    line.full_until = now + 1
    assert line.next_look() == now + 1
    line.rests[1] = now + 0.5
    assert line.next_look() == now + 1
