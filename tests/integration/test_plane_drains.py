"""The plane drains outboxes with its own connections to Redis and Kafka, and gives that back to
Python when it can't.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.journal import outbox
from engine.journal.fold import UnitState
from engine.journal.outbox import DRAIN_ENTRIES, Outbox
from engine.log.client.plane_options import plane_options
from engine.log.shapes import Record
from engine.rules.queue import Queue
from engine.shapes import ExtendEntry
from runtime.failpoints import FailpointReached, arm, disarm
from schemas.records import JournalEntry
from schemas.records.settings import QueueSettings
from schemas.wire import encode
from state.errors import Fenced
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send
from tests.integration.planed import look_at, planed
from tests.integration.test_plane_formats import decoded, records_of
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

pytestmark = pytest.mark.usefixtures("library")


async def made(engine: Engine, **settings: Any) -> Queue:
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, **settings))
    return engine.catalog.queues["q"]


async def records(engine: Engine, queue: Queue) -> list[Record]:
    """The journal of the queue's first unit."""
    journal, unit = engine.parts.base.journal, queue.units[0]
    found = await records_of(engine, engine.catalog.journal_topic, journal.partition_of(unit))
    return [record for record in found if decoded(record).incarnation == unit.incarnation]


async def entries(engine: Engine, queue: Queue) -> list[JournalEntry]:
    return [entry for record in await records(engine, queue) for entry in decoded(record).entries]


def only_the_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python does not drain: what comes into the journal is the plane's."""

    async def refuse(_outbox: Outbox, _moved: int) -> None:
        raise LogUnavailable("only the plane drains in this test")

    monkeypatch.setattr(Outbox, "_drain_once", refuse)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes each time that Python drains by itself."""
    noted: list[int] = []
    drain_once = Outbox._drain_once

    async def note(own: Outbox, moved: int) -> Any:
        noted.append(moved)
        return await drain_once(own, moved)

    monkeypatch.setattr(Outbox, "_drain_once", note)
    return noted


async def owner_of(engine: Engine, queue: Queue) -> Outbox:
    """The outbox of the queue's first unit, once this worker owns it."""
    unit = queue.units[0]

    async def owns() -> bool:
        engine.parts.units.owner.note_use(queue, 0)
        return unit in engine.parts.units.owner.owned

    await eventually(owns)
    return engine.parts.units.owner.owned[unit].outbox


async def looked_at(engine: Engine, **settings: Any) -> tuple[Queue, Outbox]:
    """A new queue with the outbox of its first unit, whose journal the plane has found."""
    queue = await made(engine, **settings)
    own = await owner_of(engine, queue)
    await look_at(engine, queue, own._epoch)
    return queue, own


async def test_the_plane_writes_what_python_would(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await make_engine(plane="auto")
    async with planed(engine):
        queue, _ = await looked_at(engine)
        only_the_plane(monkeypatch)
        before = engine.parts.base.counters.get("journal_entries_total")
        for _ in range(3):
            await send(engine, "q", "a", "b", "c")
            assert len(await drain(engine, "q", expect=3)) == 3
        await drained(engine)
        found = await records(engine, queue)
        listed = [entry for record in found for entry in decoded(record).entries]
        assert {entry.kind for entry in listed} >= {"leased", "acked"}
        first = listed[0].seq
        assert [entry.seq for entry in listed] == list(range(first, first + len(listed))), "in order, each once"
        assert [record.value for record in found] == [encode(decoded(record)) for record in found]
        assert engine.parts.base.counters.get("journal_entries_total") - before == len(listed)
        monkeypatch.undo()


async def test_a_durable_ack_is_answered_when_the_plane_has_written_it(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine(plane="auto")
    async with planed(engine):
        queue, _ = await looked_at(engine, durable_acks=True)
        only_the_plane(monkeypatch)
        for body in ("a", "b", "c"):
            await send(engine, "q", body)
            (delivery,) = await receive(engine, "q", wait_ms=5_000)
            await ack(engine, "q", [delivery])
            acked = [
                offset for entry in await entries(engine, queue) if entry.kind == "acked" for offset in entry.offsets
            ]
            assert delivery.offset in acked, "the journal has it when the ack is answered"
        monkeypatch.undo()


async def test_acks_that_the_plane_has_written_survive_a_wipe(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, stack: Services
) -> None:
    engine = await make_engine(plane="auto")
    async with planed(engine):
        await looked_at(engine)
        only_the_plane(monkeypatch)
        await send(engine, "q", *map(str, range(40)))
        first = await receive(engine, "q", max=25, wait_ms=2_000)
        gone = [delivery.message.body.decode() for delivery in first]
        await ack(engine, "q", first)
        await drained(engine)
        monkeypatch.undo()
        wipe(stack, engine)
        left = await drain(engine, "q", expect=40 - len(gone))
        assert gone
        assert sorted([*gone, *left], key=int) == [str(n) for n in range(40)]


async def test_scripts_that_redis_has_forgotten_are_loaded_again(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, stack: Services
) -> None:
    engine = await make_engine(plane="auto")
    async with planed(engine):
        await looked_at(engine, durable_acks=True)
        only_the_plane(monkeypatch)
        with redis.Redis.from_url(stack.redis_url) as client:
            for body in map(str, range(5)):
                await send(engine, "q", body)
                found = await receive(engine, "q", wait_ms=5_000)
                await asyncio.to_thread(client.script_flush)
                await ack(engine, "q", found)
        monkeypatch.undo()


async def test_much_is_moved_in_rounds(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await make_engine(plane="auto")
    async with planed(engine):
        queue = await made(engine)
        await send(engine, "q", "a")
        (delivery,) = await receive(engine, "q", wait_ms=5_000)
        own = await owner_of(engine, queue)
        await look_at(engine, queue, own._epoch)
        only_the_plane(monkeypatch)
        monkeypatch.setattr(outbox, "ROUNDS", 2)
        many = 3 * DRAIN_ENTRIES + 10
        async with own._draining:  # nobody drains meanwhile
            for _ in range(0, many, 50):
                await asyncio.gather(
                    *(engine.messages.extend(BY, "q", [ExtendEntry(delivery.handle, 600_000)]) for _ in range(50))
                )
        await own.drain()
        assert own.waiting_since_ms == 0
        await drained(engine)
        seqs = [entry.seq for entry in await entries(engine, queue)]
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
        assert len(seqs) >= many
        monkeypatch.undo()


async def test_an_owner_of_before_appends_nothing_by_the_plane(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine(plane="auto")
    async with planed(engine):
        queue = await made(engine)
        unit, journal = queue.units[0], engine.parts.base.journal
        own = await owner_of(engine, queue)
        await look_at(engine, queue, own._epoch)
        only_the_plane(monkeypatch)
        await send(engine, "q", "a")
        await ack(engine, "q", await receive(engine, "q", wait_ms=5_000))
        await drained(engine)
        async with own._draining:
            await send(engine, "q", "b")
            await receive(engine, "q", wait_ms=5_000)
            assert await engine.store.upkeep.undrained(unit)
            before = await entries(engine, queue)
            stale = Outbox(journal, "q", unit, own._epoch - 1)
            with pytest.raises(Fenced):
                await stale.drain()
            assert await entries(engine, queue) == before
        await drained(engine)
        monkeypatch.undo()


@pytest.mark.parametrize("point", ["drain.before_append", "drain.appended", "drain.before_done"])
async def test_what_was_appended_and_not_confirmed_is_appended_again_and_counts_once(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    engine = await make_engine(plane="auto")
    async with planed(engine):
        queue, own = await looked_at(engine)
        only_the_plane(monkeypatch)
        await drained(engine)
        async with own._draining:
            await send(engine, "q", "a", "b")
            await ack(engine, "q", await receive(engine, "q", wait_ms=5_000))
            again = Outbox(engine.parts.base.journal, "q", queue.units[0], own._epoch)
            arm(f"{point}=raise")
            try:
                with pytest.raises(FailpointReached):
                    await again.drain()
            finally:
                disarm()
        await drained(engine)
        monkeypatch.undo()
        found = [decoded(record) for record in await records(engine, queue)]
        seqs = [entry.seq for record in found for entry in record.entries]
        assert (len(seqs) > len(set(seqs))) is (point != "drain.before_append"), "it is in the journal twice"
        state, once = UnitState(), UnitState()
        for record in found:
            state.apply(record)
        for seq in sorted(set(seqs)):
            once.apply(next(record for record in found if any(e.seq == seq for e in record.entries)), seq)
        assert state.snapshot("0", 0, 1) == once.snapshot("0", 0, 1)


async def test_python_drains_when_the_plane_does_not_reach_kafka(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine(plane="auto", send_timeout_ms=1_000)
    monkeypatch.setattr(engine.plane, "_kafka", lambda: plane_options("127.0.0.1:1", "t", 1_000, {}))
    noted = counted(monkeypatch)
    async with planed(engine):
        queue, own = await looked_at(engine)
        noted.clear()
        async with own._draining:
            await send(engine, "q", "a")
            await ack(engine, "q", await receive(engine, "q", wait_ms=5_000))
            again = Outbox(engine.parts.base.journal, "q", queue.units[0], own._epoch)
            with pytest.raises(LogUnavailable):
                await again.drain()
            assert again.waiting_since_ms > 0
            assert noted == []
            assert await again.drain() > 0
        assert noted
        assert again.waiting_since_ms == 0
        assert "acked" in [entry.kind for entry in await entries(engine, queue)]


async def test_python_goes_on_when_the_plane_stops(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await make_engine(plane="auto")
    noted = counted(monkeypatch)
    async with planed(engine):
        queue, own = await looked_at(engine)
        noted.clear()
        for number in range(20):
            await send(engine, "q", str(number))
            found = await receive(engine, "q", wait_ms=5_000)
            if number == 10:
                draining = asyncio.gather(*(own.drained() for _ in range(3)))
                await engine.plane.stop()
                await draining
            await ack(engine, "q", found)
    await drained(engine)
    assert noted
    acked = {offset for entry in await entries(engine, queue) if entry.kind == "acked" for offset in entry.offsets}
    assert len(acked) == 20


async def test_a_unit_moves_between_two_workers_with_planes(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = [await make_engine(plane="auto") for _ in range(2)]
    async with planed(engines[0]), planed(engines[1]):
        queue = await made(engines[0])
        await eventually(lambda: _knows(engines[1]))
        only_the_plane(monkeypatch)
        await look_at(engines[0], queue, (await owner_of(engines[0], queue))._epoch)
        await look_at(engines[1], queue, 0)  # another's: it can look, and sees that it is another's
        bodies = []
        for turn in range(4):
            await send(engines[turn % 2], "q", *(f"{turn}-{n}" for n in range(5)))
            bodies += await drain(engines[turn % 2], "q", expect=5)
            unit = queue.units[0]
            old, new = engines[turn % 2], engines[(turn + 1) % 2]
            epoch = await new.store.upkeep.seize(unit, new.parts.base.worker, lease_ms=3_000)
            assert epoch > 0
            old.parts.units.owner.note_use(queue, 0)
        assert len(bodies) == len(set(bodies)) == 20
        await eventually(lambda: _is_journaled(engines[0], queue, 20))
        seqs = [entry.seq for entry in await entries(engines[0], queue)]
        fresh = list(dict.fromkeys(seqs))
        assert fresh == sorted(fresh), "what comes out of turn would count for nobody"
        monkeypatch.undo()


async def _knows(engine: Engine) -> bool:
    return "q" in engine.catalog.queues


async def _is_journaled(engine: Engine, queue: Queue, many: int) -> bool:
    acked = {offset for entry in await entries(engine, queue) if entry.kind == "acked" for offset in entry.offsets}
    return len(acked) == many
