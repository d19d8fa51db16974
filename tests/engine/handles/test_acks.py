"""Acks of many callers go together, and each is judged as if it had come alone."""

from __future__ import annotations

import asyncio

import pytest

from engine.handles.settlements import MOST, Acks
from engine.rules.linger import LINGER_S, MANY
from state.errors import StateLost
from state.replies import Acked
from tests.engine.room import Room


async def leased(room: Room, count: int) -> list[tuple[int, int]]:
    """Offset and nonce of messages of the first partition."""
    await room.send(*map(str, range(count)))
    received = await room.store.leases.receive(
        room.units[0],
        1,
        0,
        max=count,
        lease_ms=5_000,
        queue_lease_ms=1,
        max_receive_count=0,
        retention_ms=10**9,
        move_ms=1,
    )
    assert len(received.leased) == count
    return [(one.offset, received.nonce) for one in received.leased]


def ask(acks: Acks, room: Room, *pairs: tuple[int, int], late: bool = True) -> asyncio.Future[Acked]:
    return acks.ack(room.units[0], 1, 0, pairs, late=late)


async def test_what_comes_while_a_call_is_under_way_goes_by_the_next(room: Room) -> None:
    acks, pairs = Acks(room.store.leases, room.cache), await leased(room, 10)
    before = room.store.units.scripts.calls
    first = ask(acks, room, pairs[0])
    await asyncio.sleep(0)
    others = [ask(acks, room, pair) for pair in pairs[1:]]
    assert [one.words for one in await asyncio.gather(first, *others)] == [["ok"]] * 10
    assert room.store.units.scripts.calls - before == 2
    assert [offsets for kind, offsets in await room.journal() if kind == "acked"] == [[0], [*range(1, 10)]]


async def test_of_two_callers_with_one_handle_the_first_has_acked(room: Room) -> None:
    acks, (one, other) = Acks(room.store.leases, room.cache), await leased(room, 2)
    results = await asyncio.gather(ask(acks, room, one), ask(acks, room, one, other), ask(acks, room, other))
    assert [result.words for result in results] == [["ok"], ["settled", "ok"], ["settled"]]


async def test_who_counts_late_acks_and_who_does_not_are_not_mixed(room: Room) -> None:
    acks, (one, other) = Acks(room.store.leases, room.cache), await leased(room, 2)
    await room.hand.pass_s(5)
    strict, lenient = await asyncio.gather(ask(acks, room, one, late=False), ask(acks, room, other))
    assert (strict.words, lenient.words) == (["expired"], ["ok"])


async def test_a_caller_that_goes_takes_nobody_with_it(room: Room) -> None:
    acks, pairs = Acks(room.store.leases, room.cache), await leased(room, 3)
    first, gone, last = (ask(acks, room, pair) for pair in pairs)
    gone.cancel()
    assert [(await first).words, (await last).words] == [["ok"], ["ok"]]
    assert [state for state, _ in await room.states(0, 1, 2)] == ["settled"] * 3, "it had asked"


async def test_when_a_call_fails_all_of_its_callers_hear_it_and_the_next_ones_are_served(room: Room) -> None:
    acks, pairs = Acks(room.store.leases, room.cache), await leased(room, 3)
    await room.lose(0)
    outcomes = await asyncio.gather(*(ask(acks, room, pair) for pair in pairs), return_exceptions=True)
    assert [type(one) for one in outcomes] == [StateLost] * 3
    await room.find(0)
    assert (await ask(acks, room, *pairs)).words == ["ok"] * 3


async def test_a_call_has_a_bound(room: Room) -> None:
    acks = Acks(room.store.leases, room.cache)
    first = ask(acks, room, (0, 1))
    await asyncio.sleep(0)
    before = room.store.units.scripts.calls
    many = [ask(acks, room, *((offset, 1) for offset in range(n * 200, n * 200 + 200))) for n in range(5)]
    await first
    for one in many[:4]:
        await one
    await room.hand.pass_s(LINGER_S)  # a call of many waits a moment for more
    assert {word for one in many for word in (await one).words} == {"released"}, "the window has none of these"
    assert room.store.units.scripts.calls - before == -(-5 * 200 // (MOST // 200 * 200))


async def test_while_many_ack_a_call_waits_a_moment_for_more(room: Room) -> None:
    acks, pairs = Acks(room.store.leases, room.cache), await leased(room, 2 * MANY + 1)
    first = ask(acks, room, pairs[0])
    await asyncio.sleep(0)
    second = [ask(acks, room, pair) for pair in pairs[1 : MANY + 1]]
    await asyncio.gather(first, *second)  # together: many come at once
    calls = room.store.units.scripts.calls
    third = ask(acks, room, pairs[MANY + 1])
    for _ in range(20):
        await asyncio.sleep(0)
    assert room.store.units.scripts.calls == calls and not third.done()
    await room.hand.pass_s(LINGER_S)
    assert (await third).words == ["ok"]


@pytest.mark.parametrize("count", [1, 3])
async def test_the_entry_of_a_call_is_told_to_each_of_its_callers(room: Room, count: int) -> None:
    acks, pairs = Acks(room.store.leases, room.cache), await leased(room, count)
    assert [one.seq for one in await asyncio.gather(*(ask(acks, room, pair) for pair in pairs))] == [2] * count
    assert (await ask(acks, room, pairs[0])).seq == 2, "the journal may lack the entry of the first time"
