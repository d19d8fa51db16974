"""What a worker keeps of its own sends: bounded, forgotten when settled, old before new."""

from __future__ import annotations

import asyncio

import pytest

from engine.rules.queue import Queue
from engine.window.body_source import OLD_S, OVERHEAD_BYTES, BodyCache, CachedBody
from schemas.records import Message
from state.keys import Unit
from tests.unit.records import queue_record

UNIT, OTHER = Unit("0123456789ab", 0), Unit("0123456789ab", 1)
SIZE = 100 + OVERHEAD_BYTES
QUEUE, FIFO = Queue(queue_record(), "lw"), Queue(queue_record("in-order", fifo=True), "lw")


def keep(bodies: BodyCache, unit: Unit, *offsets: int, tags: int = 1, queue: Queue = QUEUE) -> bool:
    """Keeps messages of 100 bytes; False = there was no room."""
    now = asyncio.get_running_loop().time()
    if not bodies.have_room(queue, 100 * len(offsets), len(offsets), now):
        return False
    bodies.keep(
        unit, [CachedBody(offset, Message(b"%d" % offset), 1_000, "md5", SIZE, tags, now) for offset in offsets]
    )
    return True


def alone(messages: int) -> BodyCache:
    """With room for so many messages."""
    bodies = BodyCache(SIZE * messages)
    bodies.is_only_worker = True
    return bodies


async def test_only_a_worker_that_is_alone_keeps() -> None:
    bodies = alone(10)
    bodies.is_only_worker = False
    assert not keep(bodies, UNIT, 1)
    bodies.is_only_worker = True
    assert keep(bodies, UNIT, 1) and bodies.of[UNIT][1].message.body == b"1" and not bodies.of.get(OTHER, {})


async def test_what_is_kept_elsewhere_is_not_kept_here() -> None:
    bodies = BodyCache(10 * SIZE, lambda queue: not queue.record.fifo)
    bodies.is_only_worker = True
    assert not keep(bodies, UNIT, 1) and keep(bodies, UNIT, 1, queue=FIFO)


async def test_what_every_tag_has_settled_is_kept_no_longer() -> None:
    bodies = alone(10)
    assert keep(bodies, UNIT, 1, 2, tags=2)
    bodies.settle(UNIT, [(1, 77), (1, 78), (2, 77), (9, 77)])
    assert list(bodies.of.get(UNIT, {})) == [2] and bodies.bytes == SIZE
    bodies.settle(OTHER, [(2, 78)])
    bodies.settle(UNIT, [(2, 78)])
    assert (dict(bodies.of.get(UNIT, {})), bodies.bytes) == ({}, 0)


async def test_what_does_not_fit_is_not_kept_until_there_is_room() -> None:
    bodies = alone(3)
    assert keep(bodies, UNIT, 1, 2) and not keep(bodies, OTHER, 1, 2) and keep(bodies, OTHER, 3)
    bodies.settle(UNIT, [(1, 7)])
    assert not keep(bodies, UNIT, 4, 5) and keep(bodies, UNIT, 6)
    assert bodies.bytes == 3 * SIZE


async def test_the_old_gives_way_to_the_new(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies, loop = alone(3), asyncio.get_running_loop()
    began = loop.time()
    assert keep(bodies, UNIT, 1)
    monkeypatch.setattr(loop, "time", lambda: began + 10)
    assert keep(bodies, OTHER, 2, 3) and not keep(bodies, UNIT, 4)
    monkeypatch.setattr(loop, "time", lambda: began + OLD_S + 1)
    assert keep(bodies, UNIT, 4) and (list(bodies.of[UNIT]), list(bodies.of[OTHER])) == ([4], [2, 3])
    monkeypatch.setattr(loop, "time", lambda: began + OLD_S + 11)
    assert keep(bodies, UNIT, 5, 6) and not bodies.of[OTHER] and bodies.bytes == 3 * SIZE


async def test_the_old_is_forgotten_when_others_may_have_acked_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies, loop = alone(9), asyncio.get_running_loop()
    assert keep(bodies, UNIT, 1)
    began = loop.time()
    monkeypatch.setattr(loop, "time", lambda: began + OLD_S + 1)
    assert keep(bodies, UNIT, 2)
    bodies.count(1)
    assert keep(bodies, UNIT, 3) and sorted(bodies.of[UNIT]) == [1, 2, 3]
    bodies.count(2)
    assert not keep(bodies, UNIT, 4) and sorted(bodies.of[UNIT]) == [2, 3]


async def test_an_offset_that_comes_again_is_counted_once() -> None:
    bodies = alone(3)
    assert keep(bodies, UNIT, 1) and keep(bodies, UNIT, 1)
    assert bodies.bytes == SIZE
    bodies.forget(UNIT, [1, 1])
    assert bodies.bytes == 0 and keep(bodies, UNIT, 1, 2, 3)
