"""Kafka no longer has what is open or was never loaded: expired entries, counts, an alarm, no
silence. And a topic that is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable, QueueRenewed
from engine.log import TopicSpec
from engine.queues.lives import topic_loss
from engine.rules.queue import Queue
from engine.shapes import ExtendEntry, Late, SendEntry
from schemas.records import JournalRecord
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.topics import queue_topic
from schemas.wire import decode
from tests.clock import Clock
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, knows, receive, send
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services

# BodyCache that don't fit into the window: the rest is stored, or open without its body.
SMALL = {"window_messages": 10, "window_bytes": 65_536, "kept_bytes": 0}


async def sent_many(engine: Engine, count: int, settings: QueueSettings, size: int = 0) -> None:
    """Messages 0 to count - 1, filled with spaces to `size` bytes."""
    await engine.queues.create_queue(BY, "q", settings)
    for start in range(0, count, 100):
        await engine.messages.send(
            BY, "q", [SendEntry((b"%d" % n).ljust(size)) for n in range(start, min(start + 100, count))]
        )


def topic(engine: Engine) -> str:
    return queue_topic(engine.settings.topic_prefix, "q")


async def expired_in_journal(engine: Engine) -> list[int]:
    """Offsets that the journal calls expired, in order."""
    await drained(engine)
    found: list[int] = []
    for partition in range(engine.settings.journal_partitions):
        chunk = await engine.log.fetch(engine.catalog.journal_topic, partition, 0, 100_000, 64_000_000)
        for record in chunk.records:
            value = decode(record.value or b"")
            assert isinstance(value, JournalRecord)
            found += [offset for entry in value.entries if entry.kind == "expired" for offset in entry.offsets]
    return sorted(found)


async def test_what_kafka_deleted_before_it_was_loaded_expires_by_name(make_engine: MakeEngine, caplog: Any) -> None:
    engine = await make_engine(**SMALL)
    await sent_many(engine, 300, QueueSettings(partitions=1))
    first = await receive(engine, "q", max=5)
    await ack(engine, "q", first)

    async def full_again() -> bool:
        return (await engine.queues.get_queue(BY, "q")).tags[0].stored == 300 - 5 - SMALL["window_messages"]

    await eventually(full_again)
    loaded = (await engine.queues.get_queue(BY, "q")).tags[0]
    cursor = 300 - loaded.stored
    assert 5 < cursor < 200
    with caplog.at_level(logging.ERROR):
        await engine.log.delete_records({(topic(engine), 0): 200})
        got = await drain(engine, "q", patience_ms=1000)
    assert {str(n) for n in range(200, 300)} <= set(got), "a message that Kafka has was not delivered"
    lost = {str(n) for n in range(5, 300)} - set(got)
    assert len(got) == len(set(got))
    assert await expired_in_journal(engine) == sorted(map(int, lost))
    assert engine.counts()["lost_to_retention_total"] == len(lost) >= 200 - cursor
    assert all(cursor <= int(n) < 200 for n in lost)
    assert any("action=expire" in r.getMessage() for r in caplog.records)
    info = (await engine.queues.get_queue(BY, "q")).tags[0]
    assert info.backlog == 0


async def test_an_idle_queue_is_watched_too(make_engine: MakeEngine, caplog: Any) -> None:
    engine = await make_engine(**SMALL)
    await sent_many(engine, 300, QueueSettings(partitions=1))
    await engine.parts.administration.watch.alarm_monitor.run_once()
    assert engine.alerts.alarms() == []
    await engine.log.delete_records({(topic(engine), 0): 300})
    await engine.parts.administration.watch.alarm_monitor.run_once()
    expired = await expired_in_journal(engine)
    # Those in the window are still open, maybe with their bodies; they are told of until they are
    # delivered.
    (alarm,) = engine.alerts.alarms()
    assert (alarm.kind, alarm.queue) == ("retention_passed", "q")
    assert 0 < alarm.number == 300 - len(expired) < 100
    got = await drain(engine, "q", patience_ms=500)
    await engine.parts.administration.watch.alarm_monitor.run_once()
    assert engine.alerts.alarms() == []
    assert len(got) + len(await expired_in_journal(engine)) == 300
    assert any("action=alarm kind=retention_passed queue=q" in r.getMessage() for r in caplog.records)


async def test_messages_near_the_end_of_retention_raise_an_alarm(own_engine: Engine, clock: Clock) -> None:
    await sent_many(own_engine, 3, QueueSettings(partitions=1, retention_ms=60_000))
    await send(own_engine, "q", "later", delay_ms=3_600_000)
    await own_engine.parts.administration.watch.alarm_monitor.run_once()
    assert own_engine.alerts.alarms() == []
    clock.pass_s(55)  # of this worker: no time of the log
    await own_engine.parts.administration.watch.alarm_monitor.run_once()
    assert [a for a in own_engine.alerts.alarms() if a.kind == "retention_near"] == []
    clock.pass_s(-55)
    clock.pass_at_kafka_s(55)
    await own_engine.parts.administration.watch.alarm_monitor.run_once()
    assert [(a.kind, a.queue, a.number) for a in own_engine.alerts.alarms()] == [("retention_near", "q", 3)]
    await drain(own_engine, "q", patience_ms=100)
    await own_engine.parts.administration.watch.alarm_monitor.run_once()
    assert own_engine.alerts.alarms() == [], "a delayed message is not late"


async def test_a_dying_message_that_kafka_deleted_expires_and_is_not_moved_for_ever(make_engine: MakeEngine) -> None:
    engine = await make_engine(**SMALL)
    await engine.queues.create_queue(BY, "dlq", QueueSettings())
    # So large that what is leased gives up its body.
    await sent_many(engine, 50, QueueSettings(partitions=1, redrive_policy=RedrivePolicy("dlq", 9)), 6000)
    held = await receive(engine, "q", max=100)
    await engine.log.delete_records({(topic(engine), 0): 50})
    for d in held:
        await engine.messages.kill(BY, "q", [d.handle])
    letters = await drain(engine, "dlq", patience_ms=500)
    expired = await expired_in_journal(engine)
    gone = {d.offset for d in held} & set(expired)
    assert gone and len(letters) + len(gone) == len(held)
    await drain(engine, "q", patience_ms=500)  # what the window had with its body

    async def nothing_left() -> bool:
        return (await engine.queues.get_queue(BY, "q")).tags[0].backlog == 0

    await eventually(nothing_left)


async def test_an_open_message_without_a_body_expires_when_it_is_due(make_engine: MakeEngine) -> None:
    engine = await make_engine(**SMALL)
    await sent_many(engine, 8, QueueSettings(partitions=1), 6000)
    held = await receive(engine, "q", max=100, lease_ms=200)
    await engine.log.delete_records({(topic(engine), 0): 8})
    got = await drain(engine, "q", patience_ms=500)
    expired = await expired_in_journal(engine)
    assert expired and len(got) + len(expired) == len(held)
    assert engine.counts()["lost_to_retention_total"] == len(expired)


async def test_a_rebuild_after_the_journal_was_truncated_is_right_from_the_snapshots(
    own_engine: Engine, stack: Services
) -> None:
    await sent_many(own_engine, 40, QueueSettings(partitions=1))
    await ack(own_engine, "q", await receive(own_engine, "q", max=30))
    await drained(own_engine)
    await own_engine.parts.base.snapshots.run_once()
    await truncate_journal(own_engine)
    wipe(stack, own_engine)
    assert len(await drain(own_engine, "q", expect=10)) == 10
    assert "journal_gaps_total" not in own_engine.counts() and own_engine.alerts.alarms() == []


async def test_a_journal_truncated_beyond_the_snapshots_is_told_and_loses_no_message(
    own_engine: Engine, stack: Services, caplog: Any
) -> None:
    await sent_many(own_engine, 40, QueueSettings(partitions=1))
    await ack(own_engine, "q", await receive(own_engine, "q", max=10))
    await drained(own_engine)
    await own_engine.parts.base.snapshots.run_once()
    await ack(own_engine, "q", await receive(own_engine, "q", max=10))
    await drained(own_engine)
    await truncate_journal(own_engine)
    wipe(stack, own_engine)
    # What was acked after the snapshots comes again; nothing is missing.
    assert len(await drain(own_engine, "q", expect=30)) == 30
    assert own_engine.counts()["journal_gaps_total"] >= 1
    assert "journal_gap" in {alarm.kind for alarm in own_engine.alerts.alarms()}
    assert any("records after the snapshots were deleted" in r.getMessage() for r in caplog.records)


async def truncate_journal(engine: Engine) -> None:
    name = engine.catalog.journal_topic
    ends = await engine.log.end_offsets([(name, p) for p in range(engine.settings.journal_partitions)])
    await engine.log.delete_records({part: end for part, end in ends.items() if end})


@pytest.mark.parametrize("remade", [False, True], ids=["deleted", "deleted and made anew"])
async def test_a_queue_whose_topic_was_deleted_is_renewed_and_says_so(
    own_engine: Engine, caplog: Any, remade: bool
) -> None:
    # So many that the new topic does not come to where the old one ended before it is noticed.
    await sent_many(own_engine, 200, QueueSettings(partitions=1))
    await ack(own_engine, "q", await receive(own_engine, "q", max=5))
    log, before = own_engine.log, own_engine.catalog.queues["q"]
    await log.delete_topics([before.topic])
    if remade:

        async def made_anew() -> bool:
            return (await log.create_topics([TopicSpec(before.topic, 1, 1, {})]))[before.topic] == "created"

        await eventually(made_anew)
    answered: list[str] = []

    async def sends_again() -> bool:
        body = f"new-{len(answered)}-{asyncio.get_running_loop().time()}"
        with contextlib.suppress(LogUnavailable):
            await send(own_engine, "q", body)
            answered.append(body)
        return len(answered) >= 3

    await eventually(sends_again, within_s=20)
    assert own_engine.catalog.queues["q"].incarnation != before.incarnation
    got = await drain(own_engine, "q", expect=len(answered))
    assert set(answered) <= set(got), "an answered send was lost"
    assert own_engine.counts()["topics_lost_total"] == 1
    assert own_engine.counts()["lost_with_topic_total"] == 195
    assert any("action=renew queue=q" in r.getMessage() for r in caplog.records)


async def test_a_handle_of_before_the_renewal_is_stale_at_every_worker(make_engine: MakeEngine) -> None:
    engine, other = await make_engine(), await make_engine()
    await sent_many(engine, 4, QueueSettings(partitions=1))
    old: list[str] = []
    while len(old) < 4:
        old += [d.handle for d in await receive(engine, "q", max=4)]
    before = engine.catalog.queues["q"]
    await engine.log.delete_topics([before.topic])

    async def renewed() -> bool:
        # The round of a worker may have been first.
        return (
            await engine.parts.administration.watch.topic_guard.check(before)
            or engine.catalog.queues["q"].incarnation != before.incarnation
        )

    await eventually(renewed, within_s=60)
    for worker in (engine, other):
        assert [r.status for r in await worker.messages.ack(BY, "q", old[:1])] == ["stale"]
        assert [r.status for r in await worker.messages.extend(BY, "q", [ExtendEntry(old[1], 1000)])] == ["stale"]
        assert [r.status for r in await worker.messages.release(BY, "q", old[2:3])] == ["stale"]
        assert [r.status for r in await worker.messages.ack(BY, "q", old[3:], late=Late.NEVER)] == ["stale"]


async def unheard(engine: Engine, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the queue's topic be lost and the queue be renewed; what it returns makes the worker
    forget that it has heard of the renewal, until it asks.
    """
    catalog, before = engine.catalog, engine.catalog.queues["q"]
    await engine.log.delete_topics([before.topic])

    async def renewed() -> bool:
        # The round of a worker may have been first.
        return (
            await engine.parts.administration.watch.topic_guard.check(before)
            or engine.catalog.queues["q"].incarnation != before.incarnation
        )

    await eventually(renewed, within_s=20)
    now, synced = catalog.queues["q"], catalog.sync

    async def sync() -> None:
        catalog.queues["q"] = catalog.by_incarnation[now.incarnation] = now
        catalog.by_incarnation.pop(before.incarnation, None)
        await synced()

    def forget() -> None:
        catalog.queues["q"] = catalog.by_incarnation[before.incarnation] = before
        catalog.by_incarnation.pop(now.incarnation, None)

    patch.setattr(catalog, "sync", sync)
    return forget


async def test_a_worker_that_has_not_heard_of_a_renewal_says_stale_too(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sent_many(own_engine, 2, QueueSettings(partitions=1))
    old = [d.handle for d in await receive(own_engine, "q", max=2)]
    forget = await unheard(own_engine, monkeypatch)
    verbs = own_engine.messages.ack(BY, "q", old), own_engine.messages.release(BY, "q", old)
    for verb in verbs:
        forget()
        assert [r.status for r in await verb] == ["stale", "stale"]


async def test_a_receive_that_has_not_heard_of_a_renewal_is_to_be_repeated(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sent_many(own_engine, 2, QueueSettings(partitions=1))
    forget = await unheard(own_engine, monkeypatch)
    forget()
    with pytest.raises(QueueRenewed, match="began a new life"):
        await receive(own_engine, "q")
    assert await receive(own_engine, "q") == []


async def test_a_handle_of_a_life_that_a_worker_has_not_heard_of_counts(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sent_many(own_engine, 1, QueueSettings(partitions=1))
    await own_engine.queues.create_queue(BY, "other", QueueSettings(partitions=1))
    (got,) = await receive(own_engine, "q", max=1)
    # What this worker knows is an earlier life.
    control = own_engine.catalog
    now = control.queues["q"]
    earlier = Queue(msgspec.structs.replace(now.record, incarnation="0" * 12), own_engine.settings.topic_prefix)
    control.queues["q"] = control.by_incarnation[earlier.incarnation] = earlier
    del control.by_incarnation[now.incarnation]

    async def sync() -> None:
        control.queues["q"] = control.by_incarnation[now.incarnation] = now
        control.by_incarnation.pop(earlier.incarnation, None)

    monkeypatch.setattr(control, "sync", sync)
    assert [r.status for r in await own_engine.messages.ack(BY, "other", [got.handle])] == ["invalid"]
    control.queues["q"] = control.by_incarnation[earlier.incarnation] = earlier
    del control.by_incarnation[now.incarnation]
    assert [r.status for r in await own_engine.messages.ack(BY, "q", [got.handle])] == ["ok"]


@pytest.mark.parametrize("less", ["ends", "partitions", "topics"])
async def test_a_broker_that_knows_less_for_a_while_renews_no_queue(
    own_engine: Engine, monkeypatch: Any, less: str
) -> None:
    await sent_many(own_engine, 20, QueueSettings(partitions=1))
    queue, log, over = own_engine.catalog.queues["q"], own_engine.log, asyncio.get_running_loop().time() + 2
    counts, ends = log.partition_count, log.end_offsets

    def knows_less(what: str) -> bool:
        return less == what and asyncio.get_running_loop().time() < over

    async def end_offsets(parts: Any) -> Any:
        return dict.fromkeys(parts, 0) if knows_less("ends") else await ends(parts)

    async def partition_count(topic: str) -> int | None:
        return None if knows_less("topics") else 0 if knows_less("partitions") else await counts(topic)

    monkeypatch.setattr(log, "end_offsets", end_offsets)
    monkeypatch.setattr(log, "partition_count", partition_count)
    assert not await own_engine.parts.administration.watch.topic_guard.check(queue)
    assert own_engine.catalog.queues["q"].incarnation == queue.incarnation
    assert len(await drain(own_engine, "q", expect=20)) == 20


async def test_a_queue_in_use_is_not_taken_for_one_whose_topic_is_short(
    engine: Engine, queue: str, monkeypatch: Any
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    found, log = engine.catalog.queues[queue], engine.log
    ends = log.end_offsets

    async def end_offsets(parts: Any) -> Any:
        answer = await ends(parts)
        await send(engine, queue, "one more")  # as other clients do, between any two steps
        return answer

    monkeypatch.setattr(log, "end_offsets", end_offsets)
    assert await engine.parts.administration.watch.topic_guard._fault(found) is None


async def test_a_look_that_takes_long_confirms_no_more_than_another(
    engine: Engine, queue: str, monkeypatch: Any
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    found, guard = engine.catalog.queues[queue], engine.parts.administration.watch.topic_guard
    monkeypatch.setattr(topic_loss, "LOOK_S", 0.01)
    monkeypatch.setattr(topic_loss, "LOOKS", {"short": 5})
    looks: list[str | None] = []

    async def fault(_: Queue) -> str | None:
        if len(looks) == 1:
            await asyncio.sleep(0.5)  # Kafka stood still
        looks.append(None if len(looks) == 3 else "short")
        return looks[-1]

    monkeypatch.setattr(guard, "_fault", fault)
    assert not await guard.check(found)
    assert looks == ["short", "short", "short", None]
    assert engine.catalog.queues[queue].incarnation == found.incarnation


async def test_a_broker_that_answers_with_an_older_end_expires_nothing(
    make_engine: MakeEngine, monkeypatch: Any
) -> None:
    engine = await make_engine()
    await knows(engine, alone=True)
    await sent_many(engine, 30, QueueSettings(partitions=1))
    # Only Kafka has the bodies from now on, as after a restart.
    engine.parts.units.window.bodies.forget_queue(engine.catalog.queues["q"])
    log, asked = engine.log, 0
    ends, read_at = log.end_offsets, log.read_at

    async def end_offsets(parts: Any) -> Any:
        return {part: min(end, 12) for part, end in (await ends(parts)).items()}

    async def older(topic: str, partition: int, offsets: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return {
            offset: record
            for offset, record in (await read_at(topic, partition, offsets, **options)).items()
            if offset < 12
        }

    monkeypatch.setattr(log, "end_offsets", end_offsets)
    monkeypatch.setattr(log, "read_at", older)
    got: list[str] = []
    with contextlib.suppress(LogUnavailable):
        while some := await receive(engine, "q", max=10):
            got += [delivery.message.body.decode().strip() for delivery in some]
            await ack(engine, "q", some)
    assert asked and len(got) < 30
    assert engine.parts.administration.watch.topic_guard._checking == {"q"}
    monkeypatch.setattr(log, "end_offsets", ends)
    monkeypatch.setattr(log, "read_at", read_at)

    async def all_came() -> bool:
        with contextlib.suppress(LogUnavailable):
            some = await receive(engine, "q", max=10)
            got.extend(delivery.message.body.decode().strip() for delivery in some)
            await ack(engine, "q", some)
        return len(got) >= 30

    await eventually(all_came)
    assert sorted(map(int, got)) == list(range(30))
    assert engine.counts().get("lost_to_retention_total", 0) == 0


async def test_a_queue_over_a_topic_that_was_truncated_before_has_lost_nothing(own_engine: Engine) -> None:
    log, name = own_engine.log, topic(own_engine)
    await log.create_topics([TopicSpec(name, 1, 1, {})])
    for n in range(10):
        await log.append(name, 0, b"%d" % n)
    await log.delete_records({(name, 0): 6})
    await own_engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    assert await drain(own_engine, "q", expect=4) == ["6", "7", "8", "9"]
    assert "lost_to_retention_total" not in own_engine.counts()
