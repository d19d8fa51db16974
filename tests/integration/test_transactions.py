"""Transactions in the engine: what is prepared is seen by nobody, what is committed by all,
once.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import (
    InvalidValue,
    LogUnavailable,
    MessageTooLarge,
    NotAllowedOnQueue,
    QueueNotFound,
    TooManyTransactions,
    TransactionDecided,
    TransactionGone,
    TransactionNotFound,
)
from engine.log import Appended
from engine.recovery.verify import Verifier
from engine.shapes import Principal, SendEntry, TransactionInfo
from engine.transactions.book import Transaction
from engine.transactions.copies import copies_in
from engine.transactions.finisher import TAKE_UP_MS, Finisher
from engine.transactions.half_log import HalfLog
from runtime.clock import now_ms
from schemas.records import Attribute, Message, Origin, TransactionRecord
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.vocabulary import COMMIT_SPAN_MS, Reason
from schemas.wire import encode
from state.clock.boot import boot_s
from tests.clock import Clock
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, receive, send
from tests.integration.test_rebuild import wipe
from tests.services import Services

GROUP = "payments"
SHORT = {"transaction_immunity_ms": 0, "transaction_interval_ms": 1_000}


async def prepare(
    engine: Engine, queue: str, *texts: str, group: str = GROUP, by: Principal = BY, immunity_ms: int | None = None
) -> TransactionInfo:
    return await engine.transactions.prepare(
        by, queue, group, [SendEntry(text.encode()) for text in texts], immunity_ms
    )


async def is_known(engine: Engine, half: TransactionInfo) -> bool:
    try:
        await engine.transactions.get_transaction(BY, half.id)
    except TransactionNotFound:
        return False
    return True


async def test_a_half_message_is_seen_by_nobody_until_its_commit_and_by_all_after(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2))
    await engine.queues.create_tag(BY, queue, "audit", 0, None, {})
    half = await prepare(engine, queue, "a")

    assert (half.status, half.messages, half.message_ids, half.principal) == ("open", 1, [], BY.id)
    assert await receive(engine, queue, wait_ms=300) == []
    assert (await engine.queues.get_queue(BY, queue)).tags[0].backlog == 0
    assert (await engine.messages.query(BY, queue, None, None, None, None, None, 10, None)).messages == []

    done = await engine.transactions.commit(BY, half.id)

    assert (done.status, done.reason, done.decided_by, len(done.message_ids)) == ("committed", "answered", BY.id, 1)
    (got,) = await receive(engine, queue, wait_ms=2_000)
    assert (got.message.body, got.id) == (b"a", done.message_ids[0])
    assert got.message.origin is not None
    assert (got.message.origin.original_id, got.message.origin.reason) == (half.id, Reason.COMMITTED)
    assert [d.message.body for d in await receive(engine, queue, tag="audit", wait_ms=2_000)] == [b"a"]


async def test_a_receive_that_waits_gets_a_commit_at_once(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    half = await prepare(engine, queue, "a")
    waiting = asyncio.create_task(receive(engine, queue, wait_ms=10_000))
    await asyncio.sleep(0.2)
    await engine.transactions.commit(BY, half.id)
    (got,) = await asyncio.wait_for(waiting, 3)
    assert got.message.body == b"a"


async def test_what_is_rolled_back_is_never_seen(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    half = await prepare(engine, queue, "a", "b")
    done = await engine.transactions.rollback(BY, half.id)
    assert (done.status, done.message_ids) == ("rolled_back", [])
    assert await drain(engine, queue, patience_ms=500) == []


async def test_an_answer_may_be_repeated_and_another_one_is_refused_with_what_was_decided(
    engine: Engine, queue: str
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    yes, no = await prepare(engine, queue, "yes"), await prepare(engine, queue, "no")
    first = await engine.transactions.commit(BY, yes.id)
    assert await engine.transactions.commit(BY, yes.id) == first
    with pytest.raises(TransactionDecided, match="was committed before"):
        await engine.transactions.rollback(BY, yes.id)
    await engine.transactions.rollback(BY, no.id)
    assert (await engine.transactions.rollback(BY, no.id)).status == "rolled_back"
    with pytest.raises(TransactionDecided, match="was rolled back before"):
        await engine.transactions.commit(BY, no.id)
    assert await drain(engine, queue, expect=1) == ["yes"]


async def test_answers_at_once_from_many_tasks_and_workers_send_once(make_engine: MakeEngine) -> None:
    engines = [await make_engine(), await make_engine()]
    await engines[0].queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await engines[1].catalog.sync()
    halves = [await prepare(engines[n % 2], "q", f"m{n}") for n in range(20)]

    async def answer(engine: Engine, half: TransactionInfo, commits: bool) -> str:
        with contextlib.suppress(TransactionDecided):
            return (await (engine.transactions.commit if commits else engine.transactions.rollback)(BY, half.id)).status
        return "refused"

    outcomes = await asyncio.gather(
        *[answer(e, half, commits) for half in halves for e in engines for commits in (True, False, True)]
    )

    decided = {half.id: (await engines[0].transactions.get_transaction(BY, half.id)).status for half in halves}
    assert set(outcomes) <= {"committed", "rolled_back", "refused"}
    for n, half in enumerate(halves):
        given = {outcome for outcome in outcomes[6 * n : 6 * n + 6] if outcome != "refused"}
        assert given == {decided[half.id]}
    committed = sorted(f"m{n}" for n, half in enumerate(halves) if decided[half.id] == "committed")
    assert sorted(await drain(engines[1], "q", expect=len(committed), patience_ms=1_000)) == committed


async def test_a_commit_repeated_on_another_worker_waits_for_the_first(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answers with the places of its copies: nobody else's may be before them."""
    engines = [await make_engine(), await make_engine()]
    await engines[0].queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await engines[1].catalog.sync()
    half = await prepare(engines[0], "q", "a")
    decided, goes_on, copied, ends = (asyncio.Event() for _ in range(4))
    first, second = (engine.parts.transactions.finisher for engine in engines)
    append_of_first, append_of_second = first._append, second._append

    async def append_late(*arguments: Any) -> Any:
        decided.set()
        await goes_on.wait()
        return await append_of_first(*arguments)

    async def append_and_stay(*arguments: Any) -> Any:
        found = await append_of_second(*arguments)
        copied.set()
        await ends.wait()
        return found

    monkeypatch.setattr(first, "_append", append_late)
    monkeypatch.setattr(second, "_append", append_and_stay)
    async with asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(engines[0].transactions.commit(BY, half.id))
        await decided.wait()
        repeated = tasks.create_task(engines[1].transactions.commit(BY, half.id))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(copied.wait(), 1)
        goes_on.set()
        await answer
        ends.set()
    (seen,) = await receive(engines[0], "q", wait_ms=5_000)
    assert repeated.result().message_ids == answer.result().message_ids == [seen.id]


async def test_a_worker_that_failed_to_carry_out_a_commit_goes_on_at_once(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it as for one that may be dead."""
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    half = await prepare(engine, queue, "a")

    async def fail(*_: Any) -> Any:
        raise LogUnavailable("Kafka did not answer")

    with monkeypatch.context() as away:
        away.setattr(engine.parts.transactions.finisher, "_append", fail)
        with pytest.raises(LogUnavailable):
            await engine.transactions.commit(BY, half.id)
    async with asyncio.timeout(TAKE_UP_MS / 2000):
        done = await engine.transactions.commit(BY, half.id)
    (seen,) = await receive(engine, queue, wait_ms=5_000)
    assert done.message_ids == [seen.id]


async def test_the_messages_of_a_transaction_come_together_in_their_order(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=4))
    texts = [str(n) for n in range(100)]
    done = await engine.transactions.commit(BY, (await prepare(engine, queue, *texts)).id)
    assert len(set(done.message_ids)) == 100
    assert await drain(engine, queue, expect=100) == texts


async def test_a_transaction_may_have_messages_of_several_priorities(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(priority=True))
    entries = [SendEntry(str(n).encode(), priority=n) for n in (9, 1, 5, 1)]
    half = await engine.transactions.prepare(BY, queue, GROUP, entries)
    done = await engine.transactions.commit(BY, half.id)
    assert len(set(done.message_ids)) == 4
    assert await drain(engine, queue, expect=4) == ["1", "1", "5", "9"]


async def test_attributes_and_own_leases_survive(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    entry = SendEntry(b"\xff", {"kind": Attribute("string", b"x")}, lease_ms=7_000, body_is_text=False)
    await engine.transactions.commit(BY, (await engine.transactions.prepare(BY, queue, GROUP, [entry])).id)
    (got,) = await receive(engine, queue, wait_ms=2_000)
    assert (got.message.body, got.message.attributes, got.message.lease_ms) == (b"\xff", entry.attributes, 7_000)


async def test_what_a_transaction_may_not_have_is_refused_and_stores_nothing(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(max_message_bytes=10))
    await engine.queues.create_queue(BY, f"{queue}.fifo", QueueSettings(fifo=True, content_dedup=True))
    with pytest.raises(NotAllowedOnQueue, match="FIFO"):
        await engine.transactions.prepare(BY, f"{queue}.fifo", GROUP, [SendEntry(b"a", group="g")])
    for entry, error in (
        (SendEntry(b"a", delay_ms=1), InvalidValue),
        (SendEntry(b"a", deliver_at_ms=now_ms() + 60_000), InvalidValue),
        (SendEntry(b"a" * 11), MessageTooLarge),
        (SendEntry(b"a", dedup_id="d"), InvalidValue),
    ):
        with pytest.raises(error):
            await engine.transactions.prepare(BY, queue, GROUP, [entry])
    for group, immunity_ms in (("", 0), ("a b", 0), (GROUP, -1), (GROUP, 43_200_001)):
        with pytest.raises(InvalidValue):
            await prepare(engine, queue, "a", group=group, immunity_ms=immunity_ms)
    assert await engine.transactions.list_transactions(BY, queue, None, 100) == []


@pytest.mark.parametrize("id", ["", "x", "0" * 31, "0" * 32, "0" * 32 + "/1", "G" * 32])
async def test_an_unknown_transaction_is_not_found(engine: Engine, id: str) -> None:
    for verb in (
        engine.transactions.commit,
        engine.transactions.rollback,
        engine.transactions.unknown,
        engine.transactions.get_transaction,
    ):
        with pytest.raises(TransactionNotFound):
            await verb(BY, id)


async def test_who_may_not_send_may_not_prepare_decide_or_look(make_engine: MakeEngine) -> None:
    engine = await make_engine(auth="required", admin_key_secret="s" * 20, **SHORT)
    owner, friend, stranger = Principal("owner"), Principal("friend"), Principal("stranger")
    await engine.queues.create_queue(owner, "q", QueueSettings())
    await engine.callers.grant(owner, "q", "friend", "send")
    with pytest.raises(QueueNotFound):
        await prepare(engine, "q", "a", by=stranger)
    half, other = await prepare(engine, "q", "a", by=friend), await prepare(engine, "q", "b", by=friend)
    for verb in (
        engine.transactions.commit,
        engine.transactions.rollback,
        engine.transactions.unknown,
        engine.transactions.get_transaction,
    ):
        with pytest.raises(TransactionNotFound):
            await verb(stranger, half.id)
    with pytest.raises(QueueNotFound):
        await engine.transactions.list_transactions(stranger, "q", None, 10)
    assert await engine.transactions.check(stranger, GROUP, 10, 2_500) == []
    assert {check.transaction.id for check in await engine.transactions.check(friend, GROUP, 10, 5_000)} <= {
        half.id,
        other.id,
    }
    await engine.callers.grant(owner, "q", "friend", "none")
    with pytest.raises(TransactionNotFound):
        await engine.transactions.commit(friend, half.id)
    assert (await engine.transactions.rollback(friend, half.id)).status == "rolled_back"
    assert (await engine.transactions.commit(owner, other.id)).status == "committed"


async def test_a_queue_that_was_deleted_or_made_anew_gets_nothing_of_before(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings())
    half, left = await prepare(engine, "q", "old"), await prepare(engine, "q", "left")
    await engine.transactions.get_transaction(BY, half.id)
    await engine.queues.delete_queue(BY, "q")
    with pytest.raises(TransactionGone):
        await engine.transactions.commit(BY, half.id)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    with pytest.raises(TransactionGone):
        await engine.transactions.commit(BY, half.id)

    async def ended() -> bool:
        return (await engine.transactions.get_transaction(BY, left.id)).reason == "queue_gone"

    await eventually(ended)
    with pytest.raises(TransactionGone):
        await engine.transactions.commit(BY, left.id)
    assert await drain(engine, "q", patience_ms=500) == []


async def test_a_purge_leaves_half_messages(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings())
    half = await prepare(engine, queue, "a")
    await engine.queues.purge(BY, queue)
    await engine.transactions.commit(BY, half.id)
    assert await drain(engine, queue, expect=1) == ["a"]


async def test_no_more_than_the_limit_is_open_in_a_queue(make_engine: MakeEngine) -> None:
    engine = await make_engine(transactions_per_queue=3, transactions_open=4)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await engine.queues.create_queue(BY, "r", QueueSettings())
    halves = [await prepare(engine, "q", str(n)) for n in range(3)]
    await engine.parts.transactions.half_log.sync_all()
    with pytest.raises(TooManyTransactions, match="queue 'q'"):
        await prepare(engine, "q", "one more")
    await prepare(engine, "r", "a")
    await engine.parts.transactions.half_log.sync_all()
    with pytest.raises(TooManyTransactions, match="the service"):
        await prepare(engine, "r", "b")
    await engine.transactions.rollback(BY, halves[0].id)
    await prepare(engine, "q", "one more")


async def test_a_committed_message_that_dies_is_a_dead_letter_as_any_other(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, f"{queue}-dlq", QueueSettings(partitions=1))
    await engine.queues.create_queue(BY, queue, QueueSettings(redrive_policy=RedrivePolicy(f"{queue}-dlq", 5)))
    done = await engine.transactions.commit(BY, (await prepare(engine, queue, "a")).id)
    await engine.messages.kill(BY, queue, [d.handle for d in await receive(engine, queue, wait_ms=2_000)])
    (dead,) = await receive(engine, f"{queue}-dlq", wait_ms=2_000)
    assert dead.message.origin is not None
    assert (dead.message.origin.original_id, dead.message.origin.reason) == (done.message_ids[0], "killed")


async def test_a_lost_redis_loses_no_transaction_and_sends_none_twice(make_engine: MakeEngine, stack: Services) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    halves = [await prepare(engine, "q", str(n)) for n in range(6)]
    for half in halves[:3]:
        await engine.transactions.commit(BY, half.id)
    wipe(stack, engine)
    for half in halves[:5]:
        await engine.transactions.commit(BY, half.id)
    await engine.transactions.rollback(BY, halves[5].id)
    assert sorted(await drain(engine, "q", expect=5, patience_ms=1_500)) == list("01234")


async def test_another_worker_knows_all_after_a_restart(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings())
    halves = [await prepare(engine, "q", str(n)) for n in range(4)]
    first = await engine.transactions.commit(BY, halves[0].id)
    await engine.transactions.rollback(BY, halves[1].id)
    other = await make_engine()
    assert await other.transactions.commit(BY, halves[0].id) == first
    with pytest.raises(TransactionDecided):
        await other.transactions.commit(BY, halves[1].id)
    await other.transactions.commit(BY, halves[2].id)

    async def heard() -> bool:
        return [t.id for t in await other.transactions.list_transactions(BY, "q", "open", 10)] == [halves[3].id]

    await eventually(heard)
    assert {t.status for t in await other.transactions.list_transactions(BY, "q", None, 10)} == {
        "open",
        "committed",
        "rolled_back",
    }
    with pytest.raises(InvalidValue):
        await other.transactions.list_transactions(BY, "q", "half", 10)
    assert sorted(await drain(other, "q", expect=2)) == ["0", "2"]


async def test_what_is_over_is_forgotten_in_time_and_its_records_are_dropped(
    make_engine: MakeEngine, clock: Clock
) -> None:
    engine = await make_engine(journal_partitions=1)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    yes, no = await prepare(engine, "q", "a"), await prepare(engine, "q", "b")
    await engine.transactions.commit(BY, yes.id)
    await engine.transactions.rollback(BY, no.id)
    with contextlib.suppress(TransactionDecided):
        await engine.transactions.rollback(BY, yes.id)
    clock.pass_at_kafka_s(3_601)

    async def forgotten() -> bool:
        found = [await is_known(engine, half) for half in (yes, no)]
        return not any(found)

    await eventually(forgotten)
    book = engine.parts.transactions.book
    assert (book.of, book.orphans(), book.kept_bytes, book.open_count) == ({}, [], 0, 0)
    assert not any(book.unfinished.values()) and not any(book.decided.values())
    half_log = engine.parts.transactions.half_log
    chunk = await engine.log.fetch(half_log.topic, 0, 0, 1_000, 1_000_000)
    left = {record.key: record.value for record in chunk.records}
    assert not any(left.values()), "each key ends in a tombstone"
    assert await drain(engine, "q", expect=1) == ["a"]


@pytest.mark.parametrize("set_s", [0, -3_600])
async def test_a_worker_that_slept_until_kafka_forgot_a_transaction_does_not_send_it_again(
    make_engine: MakeEngine, clock: Clock, monkeypatch: pytest.MonkeyPatch, set_s: int
) -> None:
    """Whatever its wall clock was set to meanwhile."""
    sleeper, other = await make_engine(), await make_engine()
    await other.queues.create_queue(BY, "q", QueueSettings())
    half = await prepare(other, "q", "a")
    assert (await sleeper.transactions.get_transaction(BY, half.id)).status == "open"
    half_log = sleeper.parts.transactions.half_log
    await half_log.stop()
    await sleeper.parts.transactions.keeper.stop()
    done = await other.transactions.commit(BY, half.id)
    assert await drain(other, "q", expect=1) == ["a"]
    # As if Kafka had dropped all that was written about it meanwhile.
    parts = [(half_log.topic, shard) for shard in range(half_log.shards)]
    ends = await sleeper.log.end_offsets(parts)
    half_log._applied = [ends[part] for part in parts]
    clock.pass_s(1_801 + set_s)
    monkeypatch.setattr("engine.transactions.half_log.boot_s", lambda: boot_s() + 1_801)
    assert (await sleeper.transactions.commit(BY, half.id)).message_ids == done.message_ids
    ends = await sleeper.log.end_offsets([(other.catalog.queues["q"].topic, partition) for partition in range(4)])
    assert sum(ends.values()) == 1, "a second copy was written"
    assert await drain(other, "q", patience_ms=1_000) == []


@pytest.mark.parametrize(("age_ms", "seen"), [(COMMIT_SPAN_MS - 10_000, ["a"]), (COMMIT_SPAN_MS + 1, [])])
async def test_a_copy_that_comes_too_late_after_its_attempt_is_received_by_nobody(
    make_engine: MakeEngine, stack: Services, age_ms: int, seen: list[str]
) -> None:
    """As of a worker that was stopped for so long that the window has forgotten the first copy."""
    engine = await make_engine(journal_partitions=1)
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    began_ms = now_ms() - age_ms
    origin = Origin("0" * 32 + "/0", "", "0" * 32, "q", "", Reason.COMMITTED, 0, 0, began_ms, began_ms)
    copy = encode(Message(b"a", sender="x", origin=origin))
    await engine.log.append(engine.catalog.queues["q"].topic, 0, copy)
    await send(engine, "q", "b")
    assert sorted(await drain(engine, "q", expect=len(seen) + 1, patience_ms=1_000)) == [*seen, "b"]
    base = engine.parts.base
    verifier = Verifier(base.worker, base.log, base.store.upkeep, base.catalog, base.journal, base.reader)
    assert (await verifier.run([engine.catalog.queues["q"]])).differences == []
    wipe(stack, engine)
    assert await drain(engine, "q", patience_ms=1_500) == []
    assert (await engine.queues.get_queue(BY, "q")).tags[0].backlog == 0


@pytest.mark.parametrize("forged", ["half", "half/", "half/x", "half/-1", "half/1.5", "half/²"])
async def test_a_copy_that_a_native_producer_made_up_counts_for_nothing(
    engine: Engine, queue: str, forged: str
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    topic = engine.catalog.queues[queue].topic
    for from_id in (forged, "half/0"):
        origin = Origin(from_id, "", "half", queue, "", Reason.COMMITTED, 0, 0, 0, now_ms())
        await engine.log.append(topic, 0, encode(Message(b"body", origin=origin)))
    found = await copies_in(engine.log, topic, 0, 0, {"half"})
    assert {index: place.offset for index, place in found["half"].items()} == {0: 1}


@pytest.mark.parametrize("ahead_s", [-300, 300])
@pytest.mark.parametrize(("age_s", "begins_anew"), [(0, False), (20, True)])
async def test_whether_a_decision_is_old_is_told_by_a_steady_clock(
    make_engine: MakeEngine,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    ahead_s: int,
    age_s: float,
    begins_anew: bool,
) -> None:
    """A worker whose clock is behind would take an old attempt for a fresh one."""
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    clock.pass_s(ahead_s)
    names: list[str] = []
    append, finish = HalfLog.append, Finisher.finish

    async def noted(self: HalfLog, record: TransactionRecord, name: str = "") -> Appended:
        names.append(name)
        return await append(self, record, name)

    async def slow(self: Finisher, one: Transaction, *, began_at: float | None) -> None:
        await finish(self, one, began_at=None if began_at is None else began_at - age_s)

    monkeypatch.setattr(HalfLog, "append", noted)
    monkeypatch.setattr(Finisher, "finish", slow)
    prepared = await prepare(engine, "q", "a")
    await engine.transactions.commit(BY, prepared.id)
    assert ("attempt" in names) == begins_anew
    assert await drain(engine, "q", expect=1) == ["a"]
