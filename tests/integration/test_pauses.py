"""Pauses of queues and tags: real Kafka and Redis, two workers, a loss of Redis, a restart."""

from __future__ import annotations

import asyncio

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, TagNotFound
from engine.rules.limits import MAX_REASON
from engine.shapes import SendEntry
from schemas.filters import Condition, Filter
from schemas.records import Attribute, Pause
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, all_wait, drain, eventually, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services


async def test_on_no_worker_anybody_receives_until_it_is_resumed(make_engine: MakeEngine) -> None:
    one, two = await make_engine(), await make_engine()
    await one.queues.create_queue(BY, "dead", QueueSettings())
    await one.queues.create_queue(BY, "q", QueueSettings(lease_ms=60_000, redrive_policy=RedrivePolicy("dead", 5)))
    await send(one, "q", *"abc")
    held = await receive(one, "q", max=2, wait_ms=5_000)
    paused = await two.queues.pause(BY, "q", reason="late")
    assert (paused.by, paused.reason) == (BY.id, "late")
    assert await one.queues.pause(BY, "q", reason="again") == paused, "the first pause holds"
    for engine in (one, two):
        await engine.catalog.sync()
        assert await receive(engine, "q", max=10) == []
        info = await engine.queues.get_queue(BY, "q")
        assert (info.paused, info.tags[0].paused) == (paused, None)
        assert [row.paused for row in await engine.queues.count_each(BY, "q")] == [True]
    waiting = [asyncio.create_task(receive(engine, "q", max=1, wait_ms=20_000)) for engine in (one, two)]
    for engine in (one, two):
        await all_wait(engine)
    await send(two, "q", "d")
    await ack(one, "q", held[:1])
    assert [r.status for r in await two.messages.kill(BY, "q", [held[1].handle])] == ["ok"]
    assert (await one.messages.peek(BY, "q", held[1].id, None)).state == "settled"
    assert not any(task.done() for task in waiting)
    await one.queues.resume(BY, "q")
    await one.queues.resume(BY, "q")
    got = [d.message.body.decode() for found in await asyncio.gather(*waiting) for d in found]
    assert sorted(got) == ["c", "d"]
    assert (await two.queues.get_queue(BY, "q")).paused is None
    assert await drain(one, "dead", expect=1) == [held[1].message.body.decode()]


async def test_a_pause_of_a_tag_is_its_own_and_stands_beside_that_of_its_queue(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    await engine.queues.create_tag(BY, queue, "t", 0, None, {})
    await send(engine, queue, "a")
    await engine.queues.pause(BY, queue, "t")
    assert len(await receive(engine, queue, wait_ms=5_000, lease_ms=0)) == 1
    assert await receive(engine, queue, tag="t") == []
    await engine.queues.pause(BY, queue)
    await engine.queues.resume(BY, queue)
    assert await receive(engine, queue, tag="t") == []
    _, made = await engine.queues.create_tag(BY, queue, "t", 0, None, {})
    assert not made, "an equal tag is there"
    await engine.queues.resume(BY, queue, "t")
    assert len(await receive(engine, queue, tag="t", wait_ms=5_000)) == 1
    with pytest.raises(TagNotFound):
        await engine.queues.pause(BY, queue, "none")
    for reason in ("x" * (MAX_REASON + 1), "two\nlines"):
        with pytest.raises(InvalidValue, match="reason"):
            await engine.queues.pause(BY, queue, reason=reason)
    assert (await engine.queues.get_queue(BY, queue)).paused is None


async def test_a_pause_outlives_redis_and_workers_but_no_copy_has_it(make_engine: MakeEngine, stack: Services) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(lease_ms=500))
    await send(engine, "q", "a", "b")
    await receive(engine, "q", max=1, wait_ms=5_000)
    paused = await engine.queues.pause(BY, "q", reason="late")
    await drained(engine)
    wipe(stack, engine)
    assert await receive(engine, "q", max=10, wait_ms=300) == []

    async def lapsed() -> bool:
        (tag,) = (await engine.queues.get_queue(BY, "q")).tags
        return (tag.ready + tag.stored, tag.leased) == (2, 0)

    await eventually(lapsed)
    other = await make_engine()
    assert isinstance(paused, Pause) and (await other.queues.get_queue(BY, "q")).paused == paused
    assert await receive(other, "q", max=10, wait_ms=300) == []
    assert (await engine.queues.copy_queue(BY, "q", "q2")).paused is None
    await other.queues.resume(BY, "q")
    assert len(await drain(other, "q", expect=2)) == 2


@pytest.mark.parametrize("kind", ["fifo", "priority", "filter"])
async def test_every_kind_of_receive_finds_nothing_and_is_served_after(engine: Engine, queue: str, kind: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(fifo=kind == "fifo" or None, priority=kind == "priority"))
    fifo = {"group": "g", "dedup_id": "1"} if kind == "fifo" else {}
    await engine.messages.send(BY, queue, [SendEntry(b"x", {"kind": Attribute("string", b"a")}, **fifo)])  # type: ignore[arg-type]
    wanted = Filter([Condition("kind", "string", b"a")]) if kind == "filter" else None
    await engine.queues.pause(BY, queue)
    for wait_ms in (0, 300):
        assert await engine.messages.receive(BY, queue, None, 10, wait_ms, None, "attempt", wanted) == []
    waiting = asyncio.create_task(engine.messages.receive(BY, queue, None, 10, 20_000, None, "attempt", wanted))

    async def waits() -> bool:
        return engine.parts.units.wait_lists.waiting == 1

    await eventually(waits)
    await engine.queues.resume(BY, queue)
    assert [d.message.body for d in await waiting] == [b"x"]
    if kind == "fifo":
        await engine.queues.pause(BY, queue)
        assert await engine.messages.receive(BY, queue, None, 10, 0, None, "attempt") == [], "not by a repeat either"
