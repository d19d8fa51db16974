"""A tag that is paused: nobody receives under it, whoever waits; all else goes on."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine.receive.poll import Leases
from engine.receive.waits.wait_list import LOOK_AGAIN_S
from schemas.records import Pause
from tests.engine.room import Room, bodies_of

PAUSE = Pause("me", 1)


def pause(room: Room, *, by_tag: bool = False) -> None:
    """The worker hears that the queue, or its tag, is paused."""
    record = room.queue.record
    if by_tag:
        room.put(replace(record, tags=[replace(room.tag, paused=PAUSE)]))
    else:
        room.put(replace(record, paused=PAUSE))


def resume(room: Room) -> None:
    """The worker hears that nothing is paused."""
    room.put(replace(room.queue.record, paused=None, tags=[replace(room.tag, paused=None)]))


@pytest.mark.parametrize("by_tag", [False, True])
async def test_nothing_is_received_until_it_is_resumed(room: Room, by_tag: bool) -> None:
    await room.send("a", "b")
    pause(room, by_tag=by_tag)
    waiting = await room.waiting(wait_s=30)
    calls = room.store.units.scripts.calls
    assert await room.receive() == []
    await room.wake()
    await room.hand.pass_s(2 * LOOK_AGAIN_S)
    await room.settled()
    assert not waiting.done()
    assert room.store.units.scripts.calls == calls, "Redis is asked for what nobody gets"
    resume(room)
    await room.settled()
    assert bodies_of(await waiting) == ["a", "b"]


async def test_a_wait_ends_in_time_with_nothing(room: Room) -> None:
    await room.send("a")
    pause(room)
    waiting = await room.waiting(wait_s=20)
    await room.hand.pass_s(20)
    assert await waiting == []


async def test_what_is_held_may_be_acked_extended_and_released(room: Room) -> None:
    await room.send("a", "b", "c")
    held = await room.receive(2)
    pause(room)
    assert await room.ack(held[0].handle) == [("ok", "")]
    assert await room.extend(60, held[1].handle) == [("ok", "")]
    assert await room.release(0, held[1].handle) == [("ok", "")]
    await room.send("d")
    assert await room.receive() == []
    resume(room)
    assert sorted(bodies_of(await room.receive())) == ["b", "c", "d"]


@pytest.mark.parametrize("wait_s", [0, 30])
async def test_what_was_leased_while_it_was_paused_goes_back_uncounted(
    room: Room, wait_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await room.send("a")
    poll = room.poller.poll

    async def leased_and_paused(*args: Any, **more: Any) -> Leases:
        leases = await poll(*args, **more)
        pause(room)
        return leases

    monkeypatch.setattr(room.poller, "poll", leased_and_paused)
    assert await room.receive(wait_s=wait_s) == []
    await room.settled()
    assert await room.states(0) == [("ready", 0)]
