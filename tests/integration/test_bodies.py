"""A worker that is alone keeps the bodies of what it sends; with another worker, after a restart or
a loss they come from Kafka.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from msgspec.structs import replace

from engine.engine import Engine
from engine.errors import Rebuilding
from engine.log import Log
from engine.shapes import SendEntry
from schemas.records import Attribute
from schemas.records.settings import QueueSettings, RedrivePolicy
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, all_wait, drain, eventually, knows, receive, send
from tests.integration.test_rebuild import wipe
from tests.services import Services


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets that are read from Kafka for deliveries."""
    found: list[int] = []
    real = Log.read_at

    async def counted(self: Log, topic: Any, partition: int, offsets: Any, **options: Any) -> Any:
        found.extend(offsets)
        return await real(self, topic, partition, offsets, **options)

    monkeypatch.setattr(Log, "read_at", counted)
    return found


async def test_what_is_purged_while_its_body_is_read_is_not_delivered(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await knows(own_engine, alone=True)
    await own_engine.messages.send(BY, "q", [SendEntry(b"before")])
    own_engine.parts.units.window.bodies.of.clear()
    read, reading, purged = Log.read_at, asyncio.Event(), asyncio.Event()

    async def slowly(self: Log, topic: Any, partition: int, offsets: Any, **options: Any) -> Any:
        found = await read(self, topic, partition, offsets, **options)
        reading.set()
        await purged.wait()
        return found

    monkeypatch.setattr(Log, "read_at", slowly)
    waiting = asyncio.create_task(receive(own_engine, "q", wait_ms=1_000))
    await asyncio.wait_for(reading.wait(), 5)
    await own_engine.queues.purge(BY, "q")
    purged.set()
    assert await waiting == []


async def in_window(engine: Engine, queue: str) -> int:
    """How many bodies the window has of a queue."""
    units = engine.catalog.queues[queue].units
    return sum([(await engine.store.upkeep.leftovers(unit))[0] for unit in units])


def kept(engine: Engine, queue: str) -> int:
    """How many bodies of a queue the worker has kept."""
    return sum(len(engine.parts.units.window.bodies.of.get(unit, ())) for unit in engine.catalog.queues[queue].units)


async def test_what_a_worker_alone_sends_does_not_go_to_redis_and_back(
    engine: Engine, queue: str, reads: list[int]
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    await knows(engine, alone=True)
    texts = [f"{n}" for n in range(40)]
    attribute = {"a": Attribute("string", b"1")}
    await engine.messages.send(BY, queue, [SendEntry(text.encode()) for text in texts[:20]])
    await asyncio.gather(
        *(engine.messages.send(BY, queue, [SendEntry(text.encode(), attribute)]) for text in texts[20:])
    )
    assert await in_window(engine, queue) == 0
    got = await receive(engine, queue, max=100, wait_ms=2000)
    again = await receive(engine, queue, max=100, wait_ms=500)
    assert sorted(d.message.body.decode() for d in (*got, *again)) == sorted(texts)
    assert {d.message.attributes.get("a") for d in (*got, *again)} == {None, attribute["a"]}
    assert all(d.body_md5 for d in (*got, *again)) and kept(engine, queue) == 40
    await ack(engine, queue, [*got, *again])
    assert (reads, kept(engine, queue)) == ([], 0)


async def test_a_message_that_comes_again_and_one_with_a_lease_of_its_own(
    engine: Engine, queue: str, reads: list[int]
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await knows(engine, alone=True)
    await send(engine, queue, "again")
    await send(engine, queue, "own", lease_ms=90_000)
    await send(engine, queue, "late", delay_ms=700)
    first = await receive(engine, queue, lease_ms=None)
    leases = {d.message.body: d.next_visible_at_ms - d.first_received_at_ms for d in first}
    assert leases == {b"again": 30_000, b"own": 90_000}
    await engine.messages.release(BY, queue, [d.handle for d in first])
    got: list[Any] = []
    while len(got) < 3:
        got += await receive(engine, queue, wait_ms=2000)
    assert sorted((d.message.body, d.receive_count) for d in got) == [(b"again", 2), (b"late", 1), (b"own", 2)]
    assert reads == []


async def test_a_dead_letter_is_moved_without_a_look_at_kafka(engine: Engine, queue: str, reads: list[int]) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dlq", QueueSettings(partitions=1))
    await engine.queues.create_queue(
        BY, queue, QueueSettings(partitions=1, redrive_policy=RedrivePolicy(f"{queue}-dlq", 9))
    )
    await knows(engine, alone=True)
    await send(engine, queue, "bad")
    await engine.messages.kill(BY, queue, [d.handle for d in await receive(engine, queue)])
    (letter,) = await receive(engine, f"{queue}-dlq", wait_ms=2000)
    assert (
        letter.message.body == b"bad"
        and letter.message.origin is not None
        and letter.message.origin.original_sent_at_ms > 0
    )
    assert reads == []


async def test_another_worker_reads_from_kafka_what_the_first_has_kept(
    make_engine: MakeEngine, reads: list[int]
) -> None:
    first = await make_engine()
    await first.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await knows(first, alone=True)
    await first.messages.send(BY, "q", [SendEntry(b"kept %d" % n) for n in range(30)])
    second = await make_engine()
    got = await receive(second, "q", max=100, wait_ms=2000)
    assert sorted(d.message.body for d in got) == sorted(b"kept %d" % n for n in range(30)) and len(reads) == 30
    await ack(second, "q", got)
    await knows(first, alone=False)
    await knows(second, alone=False)
    await first.messages.send(BY, "q", [SendEntry(b"there")])
    assert await in_window(first, "q") == 1
    assert [d.message.body for d in await receive(second, "q", wait_ms=2000)] == [b"there"] and len(reads) == 30
    await second.stop()
    await knows(first, alone=True)


async def test_a_worker_that_comes_is_told_what_it_may_have_missed(make_engine: MakeEngine) -> None:
    first, second = await make_engine(), await make_engine()
    await first.queues.create_queue(BY, "q", QueueSettings())
    await knows(first, alone=False)
    waiter = asyncio.create_task(receive(second, "q", wait_ms=20_000))
    await all_wait(second)
    first.store.units.note_alone(
        True
    )  # as if it had not seen the other one yet: it wakes nobody but those who wait here
    await send(first, "q", "missed")
    async with asyncio.timeout(3):
        assert [d.message.body for d in await waiter] == [b"missed"]


async def test_nothing_is_lost_with_the_worker_or_with_redis(make_engine: MakeEngine, stack: Services) -> None:
    first = await make_engine()
    await first.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await knows(first, alone=True)
    await first.messages.send(BY, "q", [SendEntry(b"a%d" % n) for n in range(50)])
    wipe(stack, first)
    await first.messages.send(BY, "q", [SendEntry(b"b%d" % n) for n in range(50)])
    await first.stop()
    second = await make_engine()

    async def serves() -> bool:
        with contextlib.suppress(Rebuilding):  # what the first had begun, it has left
            await second.messages.peek_next(BY, "q", None, 1)
            return True
        return False

    await eventually(serves)
    assert sorted(await drain(second, "q", expect=100)) == sorted(f"{batch}{n}" for batch in "ab" for n in range(50))


async def test_of_several_tags_each_gets_the_body(engine: Engine, queue: str, reads: list[int]) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    await engine.queues.create_tag(BY, queue, "audit", -1, None, {})
    await knows(engine, alone=True)
    await send(engine, queue, "a", "b", "c")
    for tag in (None, "audit"):
        assert sorted(await drain(engine, queue, tag, expect=3)) == ["a", "b", "c"]
    assert (reads, kept(engine, queue)) == ([], 0)


async def test_bodies_that_do_not_fit_go_into_the_window(make_engine: MakeEngine, reads: list[int]) -> None:
    engine = await make_engine(kept_bytes=20_000)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await knows(engine, alone=True)
    for n in range(10):
        await engine.messages.send(BY, "q", [SendEntry(b"%d" % n + b"." * 5000)])
    assert engine.parts.units.window.bodies.bytes <= 20_000 and await in_window(engine, "q") == 7
    assert (
        sorted(text[0] for text in await drain(engine, "q", expect=10)) == [str(n) for n in range(10)] and reads == []
    )


async def test_what_is_over_comes_no_second_time(engine: Engine, queue: str) -> None:
    """The window does not know when a message without a body was due, once it was leased."""
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, retention_ms=60_000))
    await knows(engine, alone=True)
    await send(engine, queue, "old", "young")
    old, young = sorted(await receive(engine, queue, max=2, lease_ms=1), key=lambda d: d.message.body)
    await asyncio.sleep(0.02)
    found, store, generation = engine.catalog.queues[queue], engine.store, engine.catalog.generation
    (unit,), tag = found.units, found.tags[0]
    received = await store.leases.receive(
        unit,
        generation,
        tag.id,
        max=2,
        lease_ms=None,
        queue_lease_ms=30_000,
        max_receive_count=0,
        retention_ms=60_000,
        move_ms=1,
    )
    engine.parts.units.window.bodies.of[unit][young.offset].sent_at_ms += 1_000
    then = replace(received, now_ms=old.sent_at_ms + store.units.keep_ms(60_000))
    made, faults = await engine.parts.messages.receives.deliveries.complete(found, tag, [(0, then)], None)
    assert [d.message.body for d in made] == [b"young"] and not faults
    states = await store.leases.states(unit, generation, tag.id, [old.offset, young.offset])
    assert [state.state for state in states] == ["settled", "leased"]
