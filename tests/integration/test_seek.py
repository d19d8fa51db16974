"""A tag is sought: it begins anew at a time, as if it was new. Real Kafka and Redis."""

from __future__ import annotations

import asyncio
import time

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, NotAllowedOnQueue, QueueInUse, TagNotFound
from engine.queues.records import QueueRecords
from engine.queues.tags import MAX_NUMBER
from engine.shapes import SendEntry
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services


async def tagged(engine: Engine, queue: str, **settings: object) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(**settings))
    await engine.queues.create_tag(BY, queue, "t", 0, None, {})


async def later_ms(engine: Engine, queue: str, text: str) -> int:
    """Sends a message in a later ms than all before; when that was."""
    await asyncio.sleep(0.01)
    (sent,) = await send(engine, queue, text)
    await asyncio.sleep(0.01)
    return sent.sent_at_ms


async def test_what_was_sent_since_then_comes_again_and_nothing_else(engine: Engine, queue: str) -> None:
    await tagged(engine, queue, partitions=2, lease_ms=60_000)
    await send(engine, queue, "old", "older")
    at_ms = await later_ms(engine, queue, "at")
    await send(engine, queue, "new")
    assert sorted(await drain(engine, queue, "t", expect=4)) == ["at", "new", "old", "older"]
    await send(engine, queue, "open")
    (held,) = await receive(engine, queue, tag="t", wait_ms=5_000)
    info = await engine.queues.seek(BY, queue, "t", at_ms)
    assert (info.name, info.start_at_ms) == ("t", at_ms)
    results = await engine.messages.ack(BY, queue, [held.handle])
    assert [(result.status, result.reason) for result in results] == [("stale", "tag_gone")]
    got = [d for _ in range(3) for d in await receive(engine, queue, max=1, wait_ms=5_000, tag="t")]
    assert sorted(d.message.body.decode() for d in got) == ["at", "new", "open"]
    assert {d.receive_count for d in got} == {1}, "counts start over"
    await ack(engine, queue, got)
    assert await receive(engine, queue, tag="t", wait_ms=300) == []
    assert len(await drain(engine, queue, expect=5)) == 5, "the default tag has not changed"
    await engine.queues.seek(BY, queue, "t", 0)
    assert len(await drain(engine, queue, "t", expect=5)) == 5
    await engine.queues.seek(BY, queue, "t", 0)
    await engine.queues.seek(BY, queue, "t", -1)
    await send(engine, queue, "last")
    assert await drain(engine, queue, "t", expect=1) == ["last"]


@pytest.mark.parametrize("fifo", [False, True])
async def test_it_holds_on_every_worker_and_after_a_loss_of_redis(
    make_engine: MakeEngine, stack: Services, fifo: bool
) -> None:
    one, two = await make_engine(), await make_engine()
    await tagged(one, "q", partitions=1, fifo=fifo or None, lease_ms=60_000)

    async def sends(*texts: str) -> None:
        for text in texts:
            more = {"group": "g", "dedup_id": text} if fifo else {}
            await one.messages.send(BY, "q", [SendEntry(text.encode(), **more)])  # type: ignore[arg-type]

    await sends(*"abc")
    assert await drain(two, "q", "t", expect=3) == [*"abc"]
    await one.queues.pause(BY, "q", "t", "mending")
    await two.queues.seek(BY, "q", "t", 0)
    await one.catalog.sync()
    assert await receive(one, "q", tag="t", wait_ms=300) == [], "it is paused still"
    await one.queues.resume(BY, "q", "t")
    await sends("d", "a")  # FIFO: the last repeats one, for the new tag too
    first = await receive(one, "q", max=1, tag="t", wait_ms=5_000)
    assert [d.message.body for d in first] == [b"a"]
    await ack(one, "q", first)
    await drained(one)
    await drained(two)
    wipe(stack, one)
    left = ["b", "c", "d"] if fifo else ["b", "c", "d", "a"]
    assert await drain(two, "q", "t", expect=len(left)) == left


async def test_delays_count_from_the_send(engine: Engine, queue: str) -> None:
    await tagged(engine, queue, partitions=1)
    await send(engine, queue, "near", delay_ms=1_500)
    await send(engine, queue, "far", delay_ms=3_600_000)

    async def delayed() -> bool:
        tags = (await engine.queues.get_queue(BY, queue)).tags
        return [(tag.ready, tag.delayed, tag.stored) for tag in tags] == [(0, 2, 0)] * 2

    await eventually(delayed)
    began = time.monotonic()
    await engine.queues.seek(BY, queue, "t", 0)
    await eventually(delayed)
    assert await drain(engine, queue, "t", expect=1) == ["near"]
    assert time.monotonic() - began < 10


async def test_what_ends_in_between_has_changed_nothing(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tagged(engine, queue, partitions=2, lease_ms=60_000)
    await send(engine, queue, "a", "b")
    held = await receive(engine, queue, max=1, tag="t", wait_ms=5_000)

    async def refused(*_: object) -> None:
        raise QueueInUse("another worker came before")

    with monkeypatch.context() as patch:
        patch.setattr(QueueRecords, "write", refused)
        with pytest.raises(QueueInUse):
            await engine.queues.seek(BY, queue, "t", -1)
    await ack(engine, queue, held)
    assert len(await drain(engine, queue, "t", expect=1)) == 1
    await engine.queues.seek(BY, queue, "t", 0)
    assert len(await drain(engine, queue, "t", expect=2)) == 2


async def test_what_can_not_be_sought_is_refused(engine: Engine, queue: str) -> None:
    await tagged(engine, queue)
    await send(engine, queue, "x")
    with pytest.raises(NotAllowedOnQueue, match="default tag"):
        await engine.queues.seek(BY, queue, "default", 0)
    with pytest.raises(TagNotFound):
        await engine.queues.seek(BY, queue, "none", 0)
    for to_ms in (-2, int(time.time() * 1000) + 3_600_000):
        with pytest.raises(InvalidValue, match="to_ms"):
            await engine.queues.seek(BY, queue, "t", to_ms)
    assert engine.catalog.queues[queue].record.next_tag_id == 2 < MAX_NUMBER
