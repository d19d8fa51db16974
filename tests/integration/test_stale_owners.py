"""A worker is stopped before it appends, another takes its place and acts, then it wakes: nothing
that it writes wins.

Two engines of one service in one process: the one that is stopped runs in a thread with a loop of
its own. The scenarios are those of `runtime.failpoints.BEFORE_APPEND`; each is also run with
a stale worker that does not look at its clock, as one that was stopped between the look and the
write: then only the readers can refuse.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

import engine
from engine.catalog.catalog import Change
from engine.engine import Engine
from engine.errors import QueueInUse, Rebuilding, TransactionDecided, TransactionNotFound, Unavailable
from engine.journal.fold import UnitState
from engine.recovery.verify import Verifier
from engine.settings import Settings
from engine.shapes import SendEntry
from engine.transactions.keeper import _keys
from engine.window.topic_retention import keep_ms
from runtime.clock import now_ms
from runtime.failpoints import BEFORE_APPEND, arm, disarm
from schemas.records import JournalRecord
from schemas.records.settings import DAY_MS, MAX_DELAY_MS, QueueSettings, RedrivePolicy
from schemas.vocabulary import TaskStatus
from schemas.wire import decode
from state.errors import Fenced
from state.redis.lock import Hold
from tests.clock import ScriptClock
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send, wait_less_for_movers
from tests.integration.test_far import HOUR_MS, filed, take
from tests.integration.test_keeping import kept_ms
from tests.integration.test_rebuild import drained, wipe
from tests.integration.test_transactions import GROUP, prepare
from tests.services import Services

T = TypeVar("T")
# What `Log` does to Kafka besides making topics, which are empty then.
WRITES = (
    "append",
    "append_many",
    "delete_topics",
    "delete_records",
    "delete_groups",
    "set_topic_config",
    "commit_group_offsets",
)
HOLD_MS = 1_200
# No event tells that nothing was written: a worker that woke gets this long to do its harm, some
# hundred times of what an append takes here.
WOKEN_S = 1.0


class Sleeper:
    """The engine that is stopped, in a thread of its own, at a failpoint that `stopped_at` arms."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="sleeper")
        self.engine = Engine(settings)
        self._file = folder / "stop"

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    async def stopped_at(self, point: str, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begins `work` and returns when the worker stands still at `point`; the task ends after
        `wake`.
        """
        arm(f"{point}=stop@{self._file}")
        task = asyncio.create_task(self.run(self._arming(work)))
        await eventually(self._has_stopped)
        return task

    async def _arming(self, work: Coroutine[Any, Any, T]) -> T:
        self._file.touch()
        return await work

    async def _has_stopped(self) -> bool:
        return self._file.with_name("stop.stopped").exists()

    def wake(self) -> None:
        disarm()
        self._file.with_name("stop.stopped").unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker that was stopped is waited for about a second; nothing is armed before and after."""
    for module in ("catalog.catalog", "journal.snapshots"):
        monkeypatch.setattr(f"engine.{module}.HOLD_MS", HOLD_MS)
    monkeypatch.setattr("engine.move.tasks.task_runner.LOCK_MS", HOLD_MS)
    monkeypatch.setattr("engine.transactions.keeper.HOLD_MS", HOLD_MS)
    monkeypatch.setattr("engine.transactions.finisher.TAKE_UP_MS", 800)
    monkeypatch.setattr("engine.loading.renewals.LEASE_MS", HOLD_MS)
    monkeypatch.setattr("engine.recovery.lives.REBUILD_LEASE_MS", HOLD_MS)
    monkeypatch.setattr("engine.loading.renewals.RENEW_S", HOLD_MS / 3000)
    wait_less_for_movers(monkeypatch, 800)
    yield
    disarm()


@pytest.fixture
async def sleeper(make_engine: MakeEngine, tmp_path: Path) -> AsyncIterator[Callable[[Engine], Awaitable[Sleeper]]]:
    started: list[Sleeper] = []

    async def start(beside: Engine) -> Sleeper:
        made = Sleeper(beside.settings, tmp_path)
        made.thread.start()
        started.append(made)
        await made.run(made.engine.start())
        return made

    yield start
    for each in started:
        each.wake()  # a test that has failed may have left it stopped
        await each.run(each.engine.stop())
        each.loop.call_soon_threadsafe(each.loop.stop)
        each.thread.join()
        each.loop.close()


Start = Callable[[Engine], Awaitable[Sleeper]]


async def outcome(task: asyncio.Task[Any]) -> BaseException | None:
    """How the woken worker's call ended."""
    await asyncio.wait({task}, timeout=20)
    assert task.done()
    return task.exception()


async def same_everywhere(make_engine: MakeEngine, *engines: Engine) -> None:
    """Every worker, also one that reads all from its beginning, has the same control records; and
    none is left to repair.
    """
    newest = await make_engine()

    async def repaired() -> bool:
        await newest.catalog.sync()
        return not newest.catalog._precedence.overwritten

    await eventually(repaired)
    known = newest.catalog
    for one in (each.catalog for each in engines):
        assert {name: queue.record for name, queue in one.queues.items()} == {
            name: queue.record for name, queue in known.queues.items()
        }
        assert (one.unfinished, one.generation) == (known.unfinished, known.generation)


async def a_setting(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings(delay_ms=0))
    one = await start(other)
    task = await one.stopped_at(
        "change.before_write", one.engine.queues.set_queue(BY, "q", QueueSettings(delay_ms=1_000))
    )
    await eventually(lambda: _has_its_turn(other.queues.set_queue(BY, "q", QueueSettings(delay_ms=2_000))))
    one.wake()
    assert isinstance(await outcome(task), QueueInUse)
    assert (await other.queues.get_queue(BY, "q")).delay_ms == 2_000
    await same_everywhere(make_engine, other)


async def _has_its_turn(change: Coroutine[Any, Any, Any]) -> bool:
    """Makes a change, unless the stopped worker still has the right to."""
    try:
        await change
    except QueueInUse:
        return False
    return True


async def a_purge(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await records_that_are_gone(other, start, "purge.before_delete", lambda one: one.queues.purge(BY, "q"))


async def a_trim(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    def trim(one: Engine) -> Coroutine[Any, Any, None]:
        return one.parts.units.window.topic_retention._delete_below(one.catalog.queues["q"], 0, 5)

    await records_that_are_gone(other, start, "trim.before_delete", trim)


async def records_that_are_gone(
    other: Engine, start: Start, point: str, work: Callable[[Engine], Coroutine[Any, Any, None]]
) -> None:
    """Those that the stopped worker is about to delete are gone with their queue, which is made
    anew meanwhile.
    """
    await other.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(other, "q", *"12345")
    one = await start(other)
    await one.run(one.engine.catalog.sync())
    task = await one.stopped_at(point, work(one.engine))
    await eventually(lambda: _has_its_turn(other.queues.delete_queue(BY, "q")))
    await other.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(other, "q", *"abcdefgh")
    one.wake()
    assert isinstance(await outcome(task), QueueInUse)
    await asyncio.sleep(WOKEN_S)
    assert await other.log.start_offsets([(other.catalog.queues["q"].topic, 0)]) == {
        (other.catalog.queues["q"].topic, 0): 0
    }
    assert await drain(other, "q", expect=8) == list("abcdefgh")


async def a_retention(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    one = await start(other)
    task = await one.stopped_at(
        "keep.before_set", one.engine.queues.set_queue(BY, "q", QueueSettings(retention_ms=DAY_MS))
    )
    await eventually(lambda: _has_its_turn(other.queues.set_queue(BY, "q", QueueSettings(retention_ms=3 * DAY_MS))))
    one.wake()
    assert await outcome(task) is None  # it had come before

    async def kept() -> bool:
        return await kept_ms(other, "q") >= keep_ms(3 * DAY_MS, MAX_DELAY_MS)

    await eventually(kept)
    await asyncio.sleep(WOKEN_S)
    assert await kept()
    assert (await other.queues.get_queue(BY, "q")).retention_ms == 3 * DAY_MS


async def a_creation_before_its_topic(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await a_creation(other, start, make_engine, stack, "create.begun")


async def a_creation(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services, point: str = "create.topic_made"
) -> None:
    one = await start(other)
    task = await one.stopped_at(point, one.engine.queues.create_queue(BY, "q", QueueSettings(lease_ms=5_000)))
    await other.queues.create_queue(BY, "q", QueueSettings(lease_ms=9_000))
    await send(other, "q", *"abc")
    one.wake()
    assert isinstance(await outcome(task), QueueInUse)
    assert (await other.queues.get_queue(BY, "q")).lease_ms == 9_000
    assert sorted(await drain(other, "q", expect=3)) == list("abc")
    await same_everywhere(make_engine, other)


async def a_deletion(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services, point: str = "delete.topic_deleted"
) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings())
    one = await start(other)
    task = await one.stopped_at(point, one.engine.queues.delete_queue(BY, "q"))
    # Who has not heard of the deletion answers a creation with the queue that is being deleted.
    await other.catalog.sync()
    await other.queues.create_queue(BY, "q", QueueSettings())
    await send(other, "q", *"abc")
    one.wake()
    assert isinstance(await outcome(task), QueueInUse)
    await asyncio.sleep(WOKEN_S)
    assert sorted(await drain(other, "q", expect=3)) == list("abc")
    await same_everywhere(make_engine, other)


async def a_deletion_before_its_topic_is_gone(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services
) -> None:
    await a_deletion(other, start, make_engine, stack, "delete.record_written")


async def snapshots(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services, point: str = "snapshot.before_append"
) -> None:
    await other.parts.base.snapshots.stop()
    for name in ("p", "q", "r"):
        await other.queues.create_queue(BY, name, QueueSettings(lease_ms=600_000))
        await other.messages.send(BY, name, [SendEntry(b"%d" % n) for n in range(60)])
        await ack(other, name, await receive(other, name, max=20))
    await drained(other)
    one = await start(other)
    task = await one.stopped_at(point, one.engine.parts.base.snapshots.run_once())
    for name in ("p", "q", "r"):
        await ack(other, name, await receive(other, name, max=20))
    await drained(other)
    await eventually(lambda: _takes(other))
    one.wake()
    await outcome(task)
    # The successor goes on: a position over what it believes to be there, though only this queue
    # has changed.
    await other.queues.create_queue(BY, "s", QueueSettings(partitions=1))
    await send(other, "s", "m")
    await ack(other, "s", await receive(other, "s"))
    await drained(other)
    await other.parts.base.snapshots.run_once()
    await nothing_is_forgotten(other, stack, {"p": 20, "q": 20, "r": 20})


async def _takes(other: Engine) -> bool:
    await other.parts.base.snapshots.run_once()
    return len(other.parts.base.snapshots._held) == other.catalog.journal_partitions


async def nothing_is_forgotten(other: Engine, stack: Services, left: dict[str, int]) -> None:
    """Snapshots say what the journal says from its beginning; and a rebuild brings back just what
    is left.
    """
    for partition in range(other.catalog.journal_partitions):
        # The last entries may come between the two reads.
        await eventually(partial(_is_told_alike, other, partition), within_s=10)
    wipe(stack, other)
    for name, count in left.items():
        assert len(await drain(other, name, expect=count, patience_ms=1_000)) == count, name


async def _is_told_alike(other: Engine, partition: int) -> bool:
    """Whether snapshots say of each unit what the journal says from its beginning."""
    scratch: dict[tuple[str, int], UnitState] = {}
    chunk = await other.log.fetch(other.catalog.journal_topic, partition, 0, 100_000, 64_000_000)
    for record in chunk.records:
        value = decode(record.value or b"")
        assert isinstance(value, JournalRecord)
        scratch.setdefault((value.incarnation, value.partition), UnitState()).apply(value)
    folded = await other.parts.base.reader.read(partition)
    names = [(unit.incarnation, unit.partition, 0) for unit in folded.units]
    mine = [history.snapshot(*name) for name, history in zip(names, folded.units.values(), strict=True)]
    return mine == [scratch[name[:2]].snapshot(*name) for name in names]


async def a_position(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await snapshots(other, start, make_engine, stack, "snapshot.before_position")


async def a_journal_entry(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services, lost: bool = False
) -> None:
    one = await start(other)
    await one.run(one.engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=600_000)))
    await one.run(one.engine.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(30)]))
    got = await one.run(receive(one.engine, "q", max=20))
    await one.run(drained(one.engine))
    await one.run(ack(one.engine, "q", got[:10]))
    task = await one.stopped_at("drain.before_append", asyncio.sleep(0))
    if lost:
        wipe(stack, other)
    await other.catalog.sync()
    if lost:
        # Between the rebuild and the first entry of the new life.
        await eventually(lambda: _is_rebuilt(other))
        one.wake()
        await outcome(task)
        await asyncio.sleep(WOKEN_S)
    await eventually(lambda: _acks(other, 5))
    await drained(other)
    if not lost:
        one.wake()
        await outcome(task)
        await asyncio.sleep(WOKEN_S)
    assert await other_verify(other) == []
    # Lost: the ten acks were in the outbox only. They are forgotten, and stay so (leased); the five
    # of the other are not.
    await backlog_is(other, 25 if lost else 15)
    await nothing_is_forgotten(other, stack, {"q": 5})
    await backlog_is(other, 20 if lost else 10)


async def _is_rebuilt(other: Engine) -> bool:
    with contextlib.suppress(Unavailable):
        await other.queues.get_queue(BY, "q")
    (unit,) = other.catalog.queues["q"].units
    return (await other.store.upkeep.own(unit, "nobody", lease_ms=0)).generation is not None


async def _acks(other: Engine, count: int) -> bool:
    try:
        got = await receive(other, "q", max=count, wait_ms=1_000)
    except Rebuilding:
        return False  # as a client that is told to come again
    await ack(other, "q", got)
    return len(got) == count


async def backlog_is(other: Engine, count: int) -> None:
    (tag,) = (await other.queues.get_queue(BY, "q")).tags
    assert tag.backlog == count


async def other_verify(other: Engine) -> list[Any]:
    base = other.parts.base
    verifier = Verifier(base.worker, base.log, base.store.upkeep, base.catalog, base.journal, base.reader)
    return (await verifier.run([other.catalog.queues["q"]])).differences


async def a_journal_entry_of_a_life_before(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services
) -> None:
    await a_journal_entry(other, start, make_engine, stack, lost=True)


async def a_rebuild(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services, point: str = "rebuild.before_append"
) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings(partitions=1, lease_ms=600_000))
    await other.messages.send(BY, "q", [SendEntry(b"%d" % n) for n in range(30)])
    await ack(other, "q", await receive(other, "q", max=10))
    await drained(other)
    one = await start(other)
    await one.run(one.engine.catalog.sync())
    for unit in other.catalog.queues["q"].units:
        other.parts.units.owner._forget(unit)
    wipe(stack, other)
    with pytest.MonkeyPatch.context() as patch:  # its clock is fast
        patch.setattr(
            "engine.recovery.lives.now_ms", lambda: now_ms() + HOUR_MS * (threading.current_thread() is one.thread)
        )
        task = await one.stopped_at(point, receive(one.engine, "q"))
    await eventually(lambda: _acks(other, 5))
    await drained(other)
    one.wake()
    await outcome(task)
    await asyncio.sleep(WOKEN_S)
    assert await other_verify(other) == []
    wipe(stack, other)
    # The woken receive may have leased ten of them, for ten minutes.
    assert len(await drain(other, "q", expect=5, patience_ms=1_000)) in (5, 15), "acked messages came back"


async def a_rebuild_that_another_worker_did_while_it_read(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services
) -> None:
    await a_rebuild(other, start, make_engine, stack, "rebuild.drained")


async def a_move(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await other.queues.create_queue(BY, "dlq", QueueSettings(partitions=1))
    await other.queues.create_queue(BY, "q", QueueSettings(partitions=1, redrive_policy=RedrivePolicy("dlq", 5)))
    await send(other, "q", "m")
    (got,) = await receive(other, "q")
    one = await start(other)
    await one.run(one.engine.catalog.sync())
    task = await one.stopped_at("move.held", one.engine.messages.kill(BY, "q", [got.handle]))

    async def moved() -> bool:
        await receive(other, "q")
        return (await other.queues.get_queue(BY, "dlq")).tags[0].backlog == 1

    await eventually(moved)
    one.wake()
    await outcome(task)
    await asyncio.sleep(WOKEN_S)
    assert await drain(other, "dlq", expect=1, patience_ms=1_000) == ["m"]
    assert await receive(other, "q") == []


async def a_redrive(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services, point: str = "redrive.claimed"
) -> None:
    await other.queues.create_queue(BY, "dlq", QueueSettings(partitions=1))
    await other.queues.create_queue(BY, "q", QueueSettings(partitions=1, redrive_policy=RedrivePolicy("dlq", 5)))
    await send(other, "q", *map(str, range(10)))
    await other.messages.kill(BY, "q", [d.handle for d in await receive(other, "q", max=10)])
    one = await start(other)
    await one.run(one.engine.catalog.sync())
    await other.parts.administration.tasks.stop()
    task = await one.stopped_at(point, one.engine.tasks.redrive(BY, "dlq", None, None, 0))
    await other.parts.administration.tasks.start()

    async def completed() -> bool:
        await other.catalog.sync()
        return [t.status for t in other.catalog.tasks.values()] == [TaskStatus.COMPLETED]

    await eventually(completed, within_s=20)
    one.wake()
    await outcome(task)
    await asyncio.sleep(WOKEN_S)
    assert await completed()
    assert sorted(await drain(other, "q", expect=10, patience_ms=1_000)) == [str(n) for n in range(10)]
    assert await drain(other, "dlq", patience_ms=500) == []
    # No second copies, which the window would know only until it has forgotten their keys.
    part = (other.catalog.queues["q"].topic, 0)
    assert await other.log.end_offsets([part]) == {part: 20}


async def a_move_of_a_redrive(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await a_redrive(other, start, make_engine, stack, "move.held")


async def a_half(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings())
    one = await start(other)
    await one.run(one.engine.catalog.sync())
    task = await one.stopped_at("transaction.before_prepare", prepare(one.engine, "q", "late"))
    mine = await prepare(other, "q", "mine")
    await other.transactions.commit(BY, mine.id)
    one.wake()
    assert await outcome(task) is None
    late = await other.transactions.get_transaction(BY, task.result().id)
    assert late.status == "open"
    assert await drain(other, "q", expect=1, patience_ms=1_000) == ["mine"]


async def a_decision(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings())
    half = await prepare(other, "q", "m")
    one = await start(other)
    task = await one.stopped_at("transaction.before_decide", one.engine.transactions.commit(BY, half.id))
    await other.transactions.rollback(BY, half.id)
    one.wake()
    assert isinstance(await outcome(task), TransactionDecided)
    for each in (other, await make_engine()):
        assert (await each.transactions.get_transaction(BY, half.id)).status == "rolled_back"
    assert await drain(other, "q", patience_ms=1_000) == []


async def a_decision_about_one_that_was_forgotten(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services
) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings())
    half = await prepare(other, "q", "m")
    one = await start(other)
    task = await one.stopped_at("transaction.before_decide", one.engine.transactions.commit(BY, half.id))
    await other.transactions.rollback(BY, half.id)
    transactions = other.parts.transactions
    await transactions.half_log.drop(half.id, _keys(transactions.book.of[half.id]))
    one.wake()
    assert isinstance(await outcome(task), TransactionNotFound)
    for each in (other, await make_engine()):
        await each.parts.transactions.half_log.sync_all()
        with pytest.raises(TransactionNotFound):
            await each.transactions.get_transaction(BY, half.id)
    assert await drain(other, "q", patience_ms=1_000) == []


async def a_copy(
    other: Engine, start: Start, make_engine: MakeEngine, stack: Services, point: str = "transaction.before_copy"
) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    half = await prepare(other, "q", "m", "n")
    one = await start(other)
    await one.run(one.engine.catalog.sync())
    task = await one.stopped_at(point, one.engine.transactions.commit(BY, half.id))

    async def taken_up() -> bool:
        return len((await other.transactions.get_transaction(BY, half.id)).message_ids) == 2

    await eventually(taken_up, 20)
    assert await drain(other, "q", expect=2, patience_ms=500) == ["m", "n"]
    one.wake()
    await outcome(task)
    await asyncio.sleep(WOKEN_S)
    assert await drain(other, "q", patience_ms=1_000) == []
    assert await other_verify(other) == []
    wipe(stack, other)
    assert await drain(other, "q", patience_ms=2_000) == []
    assert (await other.transactions.commit(BY, half.id)).message_ids == (
        await (await make_engine()).transactions.commit(BY, half.id)
    ).message_ids


async def an_end(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await a_copy(other, start, make_engine, stack, "transaction.before_done")


async def a_check(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings())
    await other.parts.transactions.keeper.stop()
    one = await start(other)
    half = await prepare(other, "q", "m", immunity_ms=1_500)

    async def kept() -> bool:
        return len(one.engine.parts.transactions.keeper._held) == other.catalog.journal_partitions

    await eventually(kept)
    # Nobody is asked before a member of the group asks for checks.
    asking = asyncio.ensure_future(other.transactions.check(BY, GROUP, 10, 20_000))
    task = await one.stopped_at("transaction.before_check", asyncio.sleep(0))
    await other.parts.transactions.keeper.start()
    (check,) = await asking
    one.wake()
    await outcome(task)
    await asyncio.sleep(2 * WOKEN_S)
    assert (check.number, (await other.transactions.get_transaction(BY, half.id)).checks) == (1, 1)
    assert await other.transactions.check(BY, GROUP, 10, 0) == [], "the same check was given twice"


async def a_pointer(other: Engine, start: Start, make_engine: MakeEngine, stack: Services) -> None:
    await other.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    one = await start(other)
    await one.run(one.engine.catalog.sync())
    await one.run(send(one.engine, "q", "m", delay_ms=HOUR_MS))
    task = await one.stopped_at("file.before_append", filed(one.engine))
    with pytest.MonkeyPatch.context() as patch:
        clock = ScriptClock(patch)
        await filed(other)
        clock.pass_s(3601)
        assert await take(other, 1) == ["m"]
        one.wake()
        assert isinstance(await outcome(task), Fenced)
        assert await take(other, 0) == []


SCENARIOS: dict[str, list[Callable[..., Awaitable[None]]]] = {
    "purge.before_delete": [a_purge],
    "trim.before_delete": [a_trim],
    "keep.before_set": [a_retention],
    "change.before_write": [a_setting],
    "create.begun": [a_creation_before_its_topic],
    "create.topic_made": [a_creation],
    "delete.topic_deleted": [a_deletion],
    "delete.record_written": [a_deletion_before_its_topic_is_gone],
    "snapshot.before_append": [snapshots],
    "snapshot.before_position": [a_position],
    "drain.before_append": [a_journal_entry, a_journal_entry_of_a_life_before],
    "rebuild.before_append": [a_rebuild, a_rebuild_that_another_worker_did_while_it_read],
    "move.held": [a_move, a_move_of_a_redrive],
    "redrive.claimed": [a_redrive],
    "transaction.before_prepare": [a_half],
    "transaction.before_decide": [a_decision, a_decision_about_one_that_was_forgotten],
    "transaction.before_copy": [a_copy],
    "transaction.before_done": [an_end],
    "transaction.before_check": [a_check],
    "file.before_append": [a_pointer],
}
# What a worker's clock may refuse, a reader must refuse as well: but for the deletion of a topic,
# which nobody reads.
BY_READERS = ("change.", "create.", "delete.topic_deleted", "snapshot.", "transaction.")
CASES = [
    pytest.param(
        scenario,
        asks,
        id=f"{scenario.__name__}{'' if asks else ', by readers only'}",
        marks=() if asks else pytest.mark.long,
    )
    for point, scenarios in SCENARIOS.items()
    for scenario in scenarios
    for asks in ((True, False) if point.startswith(BY_READERS) else (True,))
]


def test_there_is_a_scenario_for_each_failpoint_before_an_append() -> None:
    assert set(SCENARIOS) == set(BEFORE_APPEND)


def test_each_place_that_writes_to_kafka_is_known_here() -> None:
    """A new one needs a failpoint before it, and a scenario above; or a reason why it can't be
    late.
    """
    found = set()
    folder = Path(engine.__file__ or "").parent
    for path in (path for path in folder.rglob("*.py") if path.parent != folder / "log"):
        for function in (
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.AsyncFunctionDef)
        ):
            calls = [
                node.func
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            ]
            names = {(call.attr, ast.unparse(call.value)) for call in calls}
            if any(attr in WRITES and of.split(".")[-1] in ("log", "_log") for attr, of in names):
                found.add(f"{path.stem}.{function.name}")
    assert found == {
        "audit.start",  # settings that every worker asks for alike
        "audit._write",  # what a request came to, which is true whenever it comes; repeats are dropped
        "catalog._make_topics",  # settings that every worker asks for alike
        "catalog.append",
        "finisher._append",
        "half_log.append",
        "half_log.drop",  # tombstones of transactions that are over, whose ids never come again
        "mover._append",
        "outbox.append",
        # what a worker has counted in a minute, which is true whenever it comes; repeats are
        # dropped
        "reporter.append",
        "making.keep",  # of a topic that is adopted; what it is told for a while it keeps at least
        "making._adopt",  # deletes an empty topic; under `Change.check`, as `Deletions.finish`
        "renewals.commit",  # what Kafka's own tools show; the owner writes it again
        "making.finish",
        "queues.purge",
        # what charts show, by which nothing is decided; one that is older than what a successor has
        # saved is what a restored history ends with, until that changes
        "sampler.save",
        "sender._store",  # a sender is no owner: its message is what its client asked for, whenever it comes
        "snapshots._drop_replaced",  # tombstones of earlier epochs, which no reader uses after our position
        "snapshots._take",  # a mark: whoever appends it last begins the highest epoch
        "snapshots._write",
        "snapshots._write_unit",
        "tags.delete",  # a group of Kafka's, which shows a lag and nothing else
        "topic_retention._delete_below",
        "topic_retention._set",
        "wheel.append",  # a pointer that comes late, or again, says what is so (docs/decisions/0021)
    }


@pytest.mark.parametrize(("scenario", "asks"), CASES)
async def test_nothing_that_a_worker_writes_wins_when_it_was_stopped_and_another_acted(
    scenario: Callable[..., Awaitable[None]],
    asks: bool,
    make_engine: MakeEngine,
    sleeper: Start,
    stack: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not asks:  # it was stopped between the look at its clock and the write
        monkeypatch.setattr(Change, "check", lambda self: None)
        monkeypatch.setattr(Hold, "is_valid", property(lambda self: True))
    await scenario(await make_engine(journal_partitions=1), sleeper, make_engine, stack)
