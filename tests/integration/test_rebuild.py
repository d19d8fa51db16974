"""State from Kafka alone: journal and snapshots, adopted and distrusted Redis. Equal to what Redis
had, but for what was not drained.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import secrets
import time
import warnings
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import LogUnavailable, Rebuilding
from engine.journal.fold import TagState, UnitState
from engine.journal.outbox import LEASE_MS, Outbox
from engine.shapes import SendEntry
from engine.window.entry import load_entry
from runtime.deadline import state_until
from schemas.records import JournalEntry, JournalRecord, Message, OpenDelivery, Origin
from schemas.records.settings import QueueSettings
from schemas.wire import decode, encode
from state.errors import StateLost
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send
from tests.services import Services


def wipe(stack: Services, engine: Engine) -> None:
    """As FLUSHALL does, for this test's keys only (other tests share the server)."""
    client = redis.Redis.from_url(stack.redis_url)
    for key in client.scan_iter(f"{engine.settings.topic_prefix}:*"):
        client.delete(key)
    client.close()


async def drained(engine: Engine) -> None:
    """Returns when the journal has everything."""
    units = [unit for queue in engine.catalog.queues.values() for unit in queue.units]

    async def outboxes_are_empty() -> bool:
        return not any([await engine.store.upkeep.undrained(unit) for unit in units])

    await eventually(outboxes_are_empty)


async def messy_queue(engine: Engine) -> tuple[list[str], dict[str, Any]]:
    """200 messages: some acked out of order, some leased, some released, some delayed. (bodies
    still open, leased by body).
    """
    await engine.queues.create_queue(BY, "q", QueueSettings(lease_ms=60_000))
    for start in range(0, 200, 50):
        await engine.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(start, start + 50)])
    await send(engine, "q", "delayed", delay_ms=3_600_000)
    rest = random.Random(5)
    leased: dict[str, Any] = {}
    open_bodies = {str(n) for n in range(200)}
    for _ in range(8):
        got = await receive(engine, "q", max=15)
        done = [d for d in got if rest.random() < 0.6]
        await ack(engine, "q", done)
        open_bodies -= {d.message.body.decode() for d in done}
        for d in got:
            if d not in done and rest.random() < 0.5:
                await engine.messages.release(BY, "q", [d.handle], 0)
            elif d not in done:
                leased[d.message.body.decode()] = d
    # What was released may have been leased again since.
    leased = {
        b: d
        for b, d in leased.items()
        if (await engine.messages.peek(BY, "q", d.id, None)).receive_count == d.receive_count
    }
    return sorted(open_bodies), leased


async def test_counts_of_a_queue_that_nobody_uses_are_true_after_a_loss_when_asked_for_again(
    own_engine: Engine, stack: Services
) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=600_000))
    await send(own_engine, "q", *"abcdef")
    await send(own_engine, "q", *"gh", delay_ms=3_600_000)
    assert len(await receive(own_engine, "q", max=4)) == 4
    await drained(own_engine)
    own_engine.parts.units.owner._forget(own_engine.catalog.queues["q"].units[0])
    wipe(stack, own_engine)

    async def true() -> bool:
        (tag,) = (await own_engine.queues.get_queue(BY, "q")).tags
        return (tag.ready, tag.delayed, tag.leased, tag.stored) == (2, 2, 4, 0)

    await eventually(true)


async def test_a_queue_that_another_worker_does_not_get_done_holds_up_no_other(
    own_engine: Engine, stack: Services
) -> None:
    """Two workers that waited for each other's units in turn needed 7 s; meanwhile neither renewed
    leases nor drained its other queues.
    """
    for name in ("a", "b"):
        await own_engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
        await send(own_engine, name, "m")
    await drained(own_engine)
    unit, store = own_engine.catalog.queues["a"].units[0], own_engine.store
    ours = False
    while not ours:  # our own loaders may be faster
        wipe(stack, own_engine)
        ours = (await store.upkeep.own(unit, "another worker", lease_ms=6_000)).ours
    waiting = asyncio.create_task(receive(own_engine, "a"))
    await asyncio.sleep(0.3)
    began = time.monotonic()
    await ack(own_engine, "b", await receive(own_engine, "b", wait_ms=3000))
    assert time.monotonic() - began < 2
    other = own_engine.catalog.queues["b"].units[0]

    async def journaled() -> bool:
        return await store.upkeep.undrained(other) == 0

    await eventually(journaled, within_s=2)
    assert not waiting.done()
    with pytest.raises(Rebuilding):  # the other was lost; who asks again gets it rebuilt
        await waiting
    assert [d.message.body for d in await receive(own_engine, "a", wait_ms=5_000)] == [b"m"]


@pytest.mark.parametrize("snapshots", [False, True], ids=["journal alone", "with snapshots"])
async def test_a_wiped_queue_is_as_it_was(own_engine: Engine, stack: Services, snapshots: bool) -> None:
    open_bodies, leased = await messy_queue(own_engine)
    if snapshots:
        await drained(own_engine)
        await own_engine.parts.base.snapshots.run_once()
    (extra,) = await receive(own_engine, "q", max=1)
    await ack(own_engine, "q", [extra])
    await drained(own_engine)
    before = (await own_engine.queues.get_queue(BY, "q")).tags[0]
    wipe(stack, own_engine)
    await receive(own_engine, "q", max=1, lease_ms=1)
    await eventually(lambda: _stored(own_engine, 0))
    after = (await own_engine.queues.get_queue(BY, "q")).tags[0]
    assert (before.backlog, before.leased, before.delayed) == (after.backlog, after.leased, after.delayed)
    for body, d in leased.items():
        assert [r.status for r in await own_engine.messages.ack(BY, "q", [d.handle])] == ["ok"], body
    left = sorted(set(open_bodies) - set(leased) - {extra.message.body.decode()})
    assert sorted(await drain(own_engine, "q", expect=len(left), patience_ms=500)) == left


async def test_a_short_poll_right_after_a_loss_finds_what_is_there_and_the_counts_are_true_at_once(
    own_engine: Engine, stack: Services
) -> None:
    open_bodies, _ = await messy_queue(own_engine)
    await drained(own_engine)
    before = (await own_engine.queues.get_queue(BY, "q")).tags[0]
    for _ in range(3):
        wipe(stack, own_engine)
        got = await receive(own_engine, "q", max=5, wait_ms=0, lease_ms=1)
        assert len(got) == 5
        await drained(own_engine)
        wipe(stack, own_engine)
        after = (await own_engine.queues.get_queue(BY, "q")).tags[0]
        assert after.backlog == before.backlog
        assert after.ready + after.delayed + after.leased + after.stored == after.backlog == len(open_bodies) + 1


async def _stored(engine: Engine, count: int) -> bool:
    return (await engine.queues.get_queue(BY, "q")).tags[0].stored == count


async def test_receive_counts_survive_a_wipe(own_engine: Engine, stack: Services) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings())
    await send(own_engine, "q", "m")
    for count in (1, 2, 3):
        (got,) = await receive(own_engine, "q", wait_ms=3000, lease_ms=30)
        assert got.receive_count == count
        await drained(own_engine)
        wipe(stack, own_engine)
    (got,) = await receive(own_engine, "q", wait_ms=3000)
    assert got.receive_count == 4


@pytest.mark.parametrize("who", ["the owner", "another worker"])
async def test_a_durable_ack_survives_a_wipe_right_after_its_answer(
    make_engine: MakeEngine, stack: Services, who: str
) -> None:
    owner, other = await make_engine(), await make_engine()
    await owner.queues.create_queue(BY, "q", QueueSettings(durable_acks=True, partitions=1))
    await send(owner, "q", *map(str, range(20)))
    await eventually(lambda: _owns(owner))
    worker = owner if who == "the owner" else other
    for _ in range(4):
        got = await receive(worker, "q", max=5, wait_ms=2000)
        await ack(worker, "q", got)
        wipe(stack, owner)
    assert await drain(owner, "q", patience_ms=500) == []


async def _owns(engine: Engine) -> bool:
    return bool(engine.parts.units.owner.owned)


async def test_a_worker_does_not_end_its_own_rebuild(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(own_engine, "q", "m")
    await eventually(lambda: _owns(own_engine))
    (unit,) = own_engine.catalog.queues["q"].units
    loaders = own_engine.parts.units.owner
    own_engine.parts.base.rebuilder._held.add(unit)
    loaders._used[unit] -= 1000
    loaders._renewals._due_at.clear()
    await loaders._own_all()
    owned = await own_engine.store.upkeep.own(unit, "another", lease_ms=1000)
    assert not owned.ours and owned.number > LEASE_MS, "given up as idle, or its lease shortened"
    own_engine.parts.base.rebuilder._held.discard(unit)
    loaders._used[unit] -= 1000
    await loaders._own_all()

    async def given_up() -> bool:
        return unit not in loaders.owned

    await eventually(given_up)


async def test_a_rebuild_keeps_no_queue_longer_than_any_owner_does(own_engine: Engine, stack: Services) -> None:
    """A worker that died after it had rebuilt a queue nobody used was its owner for 10 s: what
    others answered meanwhile was in Redis only (the second harness, seed 3).
    """
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await send(own_engine, "q", "m")
    await drained(own_engine)
    queue = own_engine.catalog.queues["q"]
    for unit in queue.units:
        own_engine.parts.units.owner._forget(unit)
    wipe(stack, own_engine)
    await own_engine.parts.base.rebuilder.recover(queue, state_until())
    for unit in queue.units:
        owned = await own_engine.store.upkeep.own(unit, "another", lease_ms=1000)
        assert owned.ours or owned.number <= LEASE_MS, owned


async def test_a_load_that_is_dropped_before_it_began_leaves_nothing_unawaited(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(own_engine, "q", "m")
    await eventually(lambda: _owns(own_engine))
    loaders = own_engine.parts.units.owner
    (loader,) = loaders.owned.values()
    loaders._loads.pop(loader.unit, None)
    loader.cursors = {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaders._load_if_short(loader)
        assert loader.unit in loaders._loads
        loaders._drop(loader.unit)
        await asyncio.sleep(0)
        gc.collect()
    assert [str(one.message) for one in told] == []


async def test_snapshots_are_what_a_scan_from_the_beginning_gives(own_engine: Engine) -> None:
    await messy_queue(own_engine)
    await drained(own_engine)
    await own_engine.parts.base.snapshots.run_once()
    await send(own_engine, "q", "more")
    await ack(own_engine, "q", await receive(own_engine, "q"))
    await drained(own_engine)
    await own_engine.parts.base.snapshots.run_once()
    for partition in range(own_engine.settings.journal_partitions):
        folded = await own_engine.parts.base.reader.read(partition)
        scratch: dict[Any, UnitState] = {}
        chunk = await own_engine.log.fetch(own_engine.catalog.journal_topic, partition, 0, 100_000, 64_000_000)
        for record in chunk.records:
            value = decode(record.value or b"")
            assert isinstance(value, JournalRecord)
            scratch.setdefault((value.incarnation, value.partition), UnitState()).apply(value)
        assert folded.offset == chunk.next_offset
        for unit, history in folded.units.items():
            mine = history.snapshot(unit.incarnation, unit.partition, 0)
            assert mine == scratch[(unit.incarnation, unit.partition)].snapshot(unit.incarnation, unit.partition, 0)
            assert decode(encode(mine)) == mine


@pytest.mark.long
async def test_a_snapshot_of_half_a_million_deliveries_is_written_and_one_that_is_too_large_leaves_the_one_before(
    own_engine: Engine,
) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(own_engine, "q", "a")
    await receive(own_engine, "q")
    await drained(own_engine)
    snapshots, reader = own_engine.parts.base.snapshots, own_engine.parts.base.reader
    (unit,) = own_engine.catalog.queues["q"].units
    await snapshots.run_once()
    partition, held = next((p, held) for p, held in snapshots._held.items() if unit in held.folded.units)
    folded = held.folded

    async def read_back(size: int) -> int:
        rows = {n: OpenDelivery(n, 1_000_000 + n, 1, 1_795_313_164_012, 0, 1_795_313_164_012 + n) for n in range(size)}
        folded.units[unit].tag(0).deliveries = rows
        folded.changed.add(unit)
        await snapshots._write(partition, held)
        back = (await reader.read(partition)).units[unit].tag(0).deliveries
        assert back == {n: rows[n] for n in range(len(back))}
        return len(back)

    assert await read_back(500_000) == 500_000
    position = await reader.read(partition)
    assert await read_back(900_000) == 500_000
    assert (await reader.read(partition)).offset == position.offset


async def test_a_unit_whose_journal_has_all_is_not_asked_at_every_tick(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    moved: list[int] = []
    drain = Outbox.drain

    async def noted(outbox: Outbox) -> int:
        moved.append(await drain(outbox))
        return moved[-1]

    monkeypatch.setattr(Outbox, "drain", noted)
    await send(own_engine, "q", "m")
    await ack(own_engine, "q", await receive(own_engine, "q"))
    await asyncio.sleep(2)
    # Two entries, in one go or in two, and the floor, once somebody counts what is in all queues;
    # what another worker does is looked for twice a second.
    assert 2 <= sum(moved) <= 3
    assert len(moved) <= 8


async def test_snapshots_of_much_wait_until_much_has_changed(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.journal.reader.ALWAYS_BELOW", 100)
    snapshots = own_engine.parts.base.snapshots
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=60_000))

    async def leased(count: int) -> float:
        await send(own_engine, "q", *map(str, range(count)))
        left = count
        while left:
            left -= len(await receive(own_engine, "q", max=min(left, 50), wait_ms=3000))
        await drained(own_engine)
        before = own_engine.parts.base.counters.values.get("snapshots_total", 0)
        await snapshots.run_once()
        return own_engine.parts.base.counters.values.get("snapshots_total", 0) - before

    assert [await leased(100), await leased(100), await leased(20), await leased(20)] == [1, 1, 0, 0]
    # 240 are held; 40 have changed. What was not written is in what a rebuild reads, and in the
    # next snapshot.
    (unit,) = own_engine.catalog.queues["q"].units
    folded = [
        await own_engine.parts.base.reader.read(partition)
        for partition in range(own_engine.settings.journal_partitions)
    ]
    assert [len(one.units[unit].tag(0).deliveries) for one in folded if unit in one.units] == [240]
    assert await leased(200) == 1
    assert await leased(5) == 0
    monkeypatch.setattr("engine.journal.reader.MAX_AGE_MS", 0)
    assert await leased(0) == 1


async def test_a_deleted_queue_leaves_no_snapshot(own_engine: Engine) -> None:
    await messy_queue(own_engine)
    await drained(own_engine)
    await own_engine.parts.base.snapshots.run_once()
    await own_engine.queues.delete_queue(BY, "q")
    await own_engine.queues.create_queue(BY, "p", QueueSettings())
    await send(own_engine, "p", *map(str, range(8)))
    await ack(own_engine, "p", await receive(own_engine, "p", max=100))
    await drained(own_engine)
    for partition in range(own_engine.settings.journal_partitions):
        folded = own_engine.parts.base.snapshots._held[partition].folded
        folded.changed.update(folded.units)
    await own_engine.parts.base.snapshots.run_once()
    alive = {q.incarnation for q in own_engine.catalog.queues.values()}
    for partition in range(own_engine.settings.journal_partitions):
        # The journal still tells of the deleted queue; the snapshots do not.
        snapshots = await own_engine.log.fetch(own_engine.catalog.snapshot_topic, partition, 0, 10_000, 64_000_000)
        last = {r.key: r.value for r in snapshots.records}
        assert {k.decode().split("/")[0] for k, v in last.items() if v and k and not k.startswith(b"position")} <= alive


@pytest.fixture
async def own_redis(
    stack: Services, tmp_path: Path, make_engine: MakeEngine
) -> AsyncIterator[tuple[Engine, Path, Callable[[], None]]]:
    """An engine on a redis-server of its own, its AOF, and a kill -9 that starts it again."""
    import subprocess

    from facade.programs.stack.processes.ports import free_port
    from facade.programs.stack.processes.programs import find_redis_server
    from facade.programs.stack.processes.settings import REDIS_OPTIONS

    port = free_port()
    options = (word for name, value in REDIS_OPTIONS.items() for word in (f"--{name}", value))
    command = [str(find_redis_server()), "--port", str(port), "--dir", str(tmp_path), *options]
    running: list[Any] = []

    def start() -> None:
        running.append(subprocess.Popen([*command, "--bind", "127.0.0.1"], stdout=subprocess.DEVNULL))

    def again() -> None:
        running[-1].kill()
        running[-1].wait()
        start()

    async def answers() -> bool:
        with redis.Redis(port=port) as client, contextlib.suppress(redis.ConnectionError):
            return bool(client.ping())
        return False

    start()
    try:
        await eventually(answers)
        engine = await make_engine(redis_url=f"redis://127.0.0.1:{port}/0")
        yield engine, tmp_path, again
        await engine.stop()
    finally:
        running[-1].kill()
        running[-1].wait()


def append_only_file(folder: Path) -> Path:
    found = list(folder.rglob("appendonly*.incr.aof")) or list(folder.glob("appendonly.aof"))  # of a Redis before 7
    assert len(found) == 1, found
    return found[0]


async def test_redis_started_again_with_all_its_state_is_adopted(own_redis: Any) -> None:
    engine, _, again = own_redis
    open_bodies, leased = await messy_queue(engine)
    generation = engine.catalog.generation
    again()
    for body, d in leased.items():
        await eventually(lambda d=d: _acks(engine, d))  # type: ignore[misc]
        open_bodies.remove(body)
    assert engine.catalog.generation == generation + 1
    assert engine.counts().get("rebuilds_total", 0) == 0
    assert sorted(await drain(engine, "q", expect=len(open_bodies), patience_ms=500)) == open_bodies


async def _acks(engine: Engine, d: Any) -> bool:
    from engine.errors import Unavailable

    try:
        return [r.status for r in await engine.messages.ack(BY, "q", [d.handle])] == ["ok"]
    except Unavailable:
        return False


async def test_redis_with_an_older_state_is_noticed_and_rebuilt(own_redis: Any) -> None:
    engine, folder, again = own_redis
    await engine.queues.create_queue(BY, "q", QueueSettings(lease_ms=60_000))
    await send(engine, "q", *map(str, range(20)))
    await drained(engine)
    file = append_only_file(folder)
    older = file.read_bytes()
    acked = await receive(engine, "q", max=12)
    await ack(engine, "q", acked)
    held = await receive(engine, "q", max=3)
    await drained(engine)
    replaced = folder / f"{secrets.token_hex(3)}.aof"
    replaced.write_bytes(older)
    replaced.rename(file)
    again()
    for d in held:
        await eventually(lambda d=d: _acks(engine, d))  # type: ignore[misc]
    rest = {str(n) for n in range(20)} - {d.message.body.decode() for d in [*acked, *held]}
    assert sorted(await drain(engine, "q", patience_ms=500)) == sorted(rest)
    assert engine.counts()["rebuilds_total"] >= 1


def test_a_history_forgets_repeated_entries_and_rises_over_what_is_settled() -> None:
    entries = [
        JournalEntry(1, 5, "leased", 0, [0, 1, 2], [100, 100, 100]),
        JournalEntry(2, 6, "acked", 0, [1, 2]),
        JournalEntry(3, 7, "released", 0, [0], [50]),
        JournalEntry(4, 8, "leased", 0, [0], [200]),
    ]
    unit = UnitState()
    assert unit.apply(JournalRecord("q", "i", 0, entries))
    assert not unit.apply(JournalRecord("q", "i", 0, entries[1:3]))
    tag = unit.tag(0)
    assert (tag.floor, tag.settled, tag.deliveries[0].count, tag.deliveries[0].nonce) == (0, {1, 2}, 2, 4)
    unit.apply(JournalRecord("q", "i", 0, [JournalEntry(5, 9, "acked", 0, [0])]))
    assert tag.raise_floor(0) == 3 and tag.settled == set() and tag.deliveries == {}
    tag.apply(JournalEntry(6, 9, "floor", 0, [10]))
    assert tag.floor == 10
    assert TagState.from_snapshot(tag.snapshot(0)).floor == 10


async def test_a_unit_that_lost_everything_is_not_opened_as_if_it_were_new(own_engine: Engine, stack: Services) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(own_engine, "q", "1")
    await ack(own_engine, "q", await receive(own_engine, "q"))
    wipe(stack, own_engine)
    unit = own_engine.catalog.queues["q"].units[0]
    with pytest.raises(StateLost):
        await own_engine.store.upkeep.open(unit, own_engine.catalog.generation, [(0, 0)], serving=True)


async def test_nonces_given_out_before_a_loss_are_not_given_out_again(own_engine: Engine, stack: Services) -> None:
    """Also when nothing of a life came to the journal, twice."""
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=60_000))
    await send(own_engine, "q", "1")
    handles = []
    for _ in range(3):
        (d,) = await receive(own_engine, "q", wait_ms=5000)
        handles.append(d.handle)
        wipe(stack, own_engine)  # at once: nothing was drained
    await receive(own_engine, "q", wait_ms=5000)
    assert len(set(handles)) == 3
    assert {r.status for r in await own_engine.messages.ack(BY, "q", handles)} == {"stale"}


async def test_a_durable_ack_is_not_answered_when_the_state_was_lost_before_the_journal_had_it(
    own_engine: Engine, stack: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, durable_acks=True))
    await send(own_engine, "q", "1")
    (d,) = await receive(own_engine, "q")
    await drained(own_engine)
    settle = own_engine.store.leases.ack

    async def ack_and_wipe(*given: Any, **named: Any) -> Any:
        acked = await settle(*given, **named)
        wipe(stack, own_engine)
        return acked

    monkeypatch.setattr(own_engine.store.leases, "ack", ack_and_wipe)
    with pytest.raises(LogUnavailable, match="lost before the journal"):
        await own_engine.messages.ack(BY, "q", [d.handle])
    monkeypatch.undo()
    assert [r.status for r in await own_engine.messages.ack(BY, "q", [d.handle])] == ["ok"]


async def test_the_copy_of_a_move_that_counts_is_the_same_after_a_loss(own_engine: Engine, stack: Services) -> None:
    """The first in the log does, though the later one came to the window before it: it may have
    been delivered before a loss.
    """
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=60_000))
    queue = own_engine.catalog.queues["q"]
    await send(own_engine, "q", "first")
    origin = Origin("from", "default", "from", "source", "default", "killed", 1, 1, 1, 1)
    copies = [Message(b"copy %d" % n, origin=origin, sender="t") for n in range(2)]
    rows: Any = await own_engine.log.append_many(queue.topic, 0, [encode(m) for m in copies])
    entries = [load_entry(queue, a.offset, a.timestamp_ms, m, encode(m)) for a, m in zip(rows, copies, strict=True)]
    for entry in reversed(entries):
        await own_engine.parts.units.window.write_through.write(queue, 0, [entry])
    for _ in range(2):
        await drained(own_engine)
        await own_engine.parts.base.snapshots.run_once()
        wipe(stack, own_engine)
        assert await receive(own_engine, "q", max=1, wait_ms=3000, lease_ms=1) != []
    assert sorted(await drain(own_engine, "q", expect=2)) == ["copy 0", "first"]


async def test_what_lies_beyond_the_cursor_after_a_rebuild_is_loaded_without_new_traffic(
    own_engine: Engine, stack: Services
) -> None:
    """The worker that owns the unit rebuilds it: its loader must not believe the cursors of
    before.
    """
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(own_engine, "q", *(str(n) for n in range(20)))
    assert len(await receive(own_engine, "q", max=5, lease_ms=1)) == 5
    await eventually(lambda: _known_to_the_end(own_engine))
    with redis.Redis.from_url(stack.redis_url) as client:
        (visible,) = client.scan_iter(f"{own_engine.settings.topic_prefix}:*:visible:0")
        client.zpopmin(visible)
    assert sorted(await drain(own_engine, "q", expect=20), key=int) == [str(n) for n in range(20)]


async def _known_to_the_end(engine: Engine) -> bool:
    loaders = list(engine.parts.units.owner.owned.values())
    return bool(loaders) and all(
        loader.cursors and not loader.lags(loader.end) and loader.end == 20 for loader in loaders
    )


async def test_a_slower_drain_does_not_take_back_what_a_faster_one_has_noted(own_engine: Engine) -> None:
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(own_engine, "q", "1", "2")
    store, unit = own_engine.store, own_engine.catalog.queues["q"].units[0]
    for _ in range(2):
        await ack(own_engine, "q", await receive(own_engine, "q", max=1))
    await drained(own_engine)
    epoch = next(iter(own_engine.parts.units.owner.owned.values())).epoch
    _, before = await store.upkeep.drained_seq(unit)
    await store.upkeep.drain(unit, epoch, done_seq=before - 1, max=1)
    assert await store.upkeep.drained_seq(unit) == (0, before)
