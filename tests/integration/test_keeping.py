"""The topic of a queue keeps records for as long as its settings and its delayed messages need, and
nothing delayed is lost by that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import NotAllowedOnQueue
from engine.loading import loader
from engine.log import TopicSpec
from engine.settings import Settings
from engine.shapes import Delivery, SendEntry
from engine.window import delays, topic_retention
from facade.programs.stack.processes.settings import BROKER_PROPERTIES
from runtime.failpoints import FailpointReached, arm, disarm
from schemas.records import Message
from schemas.records.settings import DAY_MS, TABLE, QueueSettings
from schemas.topics import queue_topic
from schemas.wire import encode
from tests.clock import ScriptClock
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, drain, eventually, receive, send
from tests.integration.test_far import HOUR_MS, clock, filed, take, turn
from tests.integration.test_rebuild import drained, wipe
from tests.services import Services, running_services

__all__ = ["clock"]

# The longest lease and an hour.
MARGIN_MS = 13 * HOUR_MS


async def kept_ms(engine: Engine, queue: str) -> int:
    return int((await engine.log.topic_config(topic(engine, queue)))["retention.ms"])


def topic(engine: Engine, queue: str) -> str:
    return queue_topic(engine.settings.topic_prefix, queue)


async def test_a_topic_keeps_what_its_settings_need(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    assert await kept_ms(engine, queue) == 4 * DAY_MS + HOUR_MS + MARGIN_MS
    await engine.queues.set_queue(BY, queue, QueueSettings(retention_ms=DAY_MS))
    assert await kept_ms(engine, queue) == DAY_MS + HOUR_MS + MARGIN_MS
    await engine.queues.set_queue(BY, queue, QueueSettings(delay_ms=2 * DAY_MS))
    assert await kept_ms(engine, queue) == DAY_MS + 2 * DAY_MS + MARGIN_MS
    # Messages of before are still delayed.
    await engine.queues.set_queue(BY, queue, QueueSettings(delay_ms=0))
    assert await kept_ms(engine, queue) == DAY_MS + 2 * DAY_MS + MARGIN_MS
    await engine.queues.set_queue(BY, queue, QueueSettings(retention_ms=4 * DAY_MS))
    assert await kept_ms(engine, queue) == 4 * DAY_MS + 2 * DAY_MS + MARGIN_MS


async def test_a_change_that_does_not_count_takes_nothing_from_the_topic(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    arm("change.before_write=raise*1")
    with pytest.raises(FailpointReached):
        await engine.queues.set_queue(BY, queue, QueueSettings(retention_ms=DAY_MS))
    disarm()
    assert (await engine.queues.get_queue(BY, queue)).retention_ms == 4 * DAY_MS
    assert await kept_ms(engine, queue) == 4 * DAY_MS + HOUR_MS + MARGIN_MS


async def test_a_longer_delay_is_kept_for_before_it_is_stored(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, other = await make_engine(), await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    log, append, told = engine.log, engine.log.append_many, 0
    seen: list[int] = []
    tell = log.set_topic_config

    def appended(*args: Any) -> Any:
        async def look() -> Any:
            seen.append(await kept_ms(engine, "q"))
            return await append(*args)

        return look()

    async def telling(*args: Any) -> None:
        nonlocal told
        told += 1
        await tell(*args)

    monkeypatch.setattr(log, "append_many", appended)
    monkeypatch.setattr(log, "set_topic_config", telling)
    await send(engine, "q", "now", delay_ms=HOUR_MS)
    assert seen == [4 * DAY_MS + HOUR_MS + MARGIN_MS] and told == 0
    await asyncio.gather(*(send(engine, "q", "later", delay_ms=10 * DAY_MS) for _ in range(20)))
    # Doubled until it fits: 256 hours.
    needed = 4 * DAY_MS + 256 * HOUR_MS + MARGIN_MS
    assert set(seen[1:]) == {needed} and told == 1
    # Another worker, whose memory is older, takes nothing from that.
    await send(other, "q", "soon", delay_ms=DAY_MS)
    await other.queues.set_queue(BY, "q", QueueSettings(retention_ms=DAY_MS))
    assert await kept_ms(engine, "q") == DAY_MS + 256 * HOUR_MS + MARGIN_MS
    await send(other, "q", "last", delay_ms=30 * DAY_MS)
    assert await kept_ms(engine, "q") == DAY_MS + 30 * DAY_MS + MARGIN_MS


async def test_a_native_producers_delay_is_kept_for_when_it_is_loaded(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    record = Message(b"native", {}, delay_ms=9 * DAY_MS, sender="producer")
    await engine.log.append(topic(engine, queue), 0, encode(record))
    await receive(engine, queue)

    async def raised() -> bool:
        return await kept_ms(engine, queue) == 4 * DAY_MS + 256 * HOUR_MS + MARGIN_MS

    await eventually(raised)


async def test_a_topic_that_is_adopted_keeps_its_records_no_shorter(engine: Engine, queue: str) -> None:
    await engine.log.create_topics([TopicSpec(topic(engine, queue), 1, 1, {"retention.ms": str(40 * DAY_MS)})])
    await engine.log.append(topic(engine, queue), 0, b"native")
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    assert await kept_ms(engine, queue) == 40 * DAY_MS


@pytest.fixture(scope="module")
def quick_broker(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A broker that looks for what is too old twice a second."""
    quick = {
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "log.segment.delete.delay.ms": "100",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("facade.programs.stack.broker.BROKER_PROPERTIES", {**BROKER_PROPERTIES, **quick})
        with running_services(tmp_path_factory.mktemp("quick")) as services:
            yield services


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue keeps a second for each hour."""
    monkeypatch.setitem(TABLE, "retention_ms", msgspec.structs.replace(TABLE["retention_ms"], low=1000))
    for module in (topic_retention, delays, loader):
        monkeypatch.setattr(module, "LEAST_DELAY_MS", 1000)
    monkeypatch.setattr(topic_retention, "MARGIN_MS", 1000)


@pytest.mark.long
@pytest.mark.usefixtures("short_times")
@pytest.mark.parametrize("raised", [True, False], ids=["kept for", "and lost were it not"])
async def test_a_message_delayed_beyond_the_retention_survives_what_kafka_deletes(
    quick_broker: Services, raised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap, redis_url = quick_broker.bootstrap, quick_broker.redis_url
    engine = Engine(
        Settings(kafka_bootstrap=bootstrap, redis_url=redis_url, kept_bytes=0, topic_prefix=f"keep-{raised}".lower())
    )
    # Of what is due in more than a second, the window keeps no body: it is Kafka's alone.
    engine.store.units.window = msgspec.structs.replace(engine.store.units.window, near_ms=1000)
    await engine.start()
    try:
        if not raised:

            async def nothing(*_: Any) -> None:
                return None

            monkeypatch.setattr(engine.parts.units.window.topic_retention, "keep", nothing)
        await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, retention_ms=3000))
        assert await kept_ms(engine, "q") == 5000
        await send(engine, "q", "never received in time")
        await engine.messages.send(BY, "q", [SendEntry(b"late", delay_ms=14_000)])
        assert await kept_ms(engine, "q") == (3000 + 16_000 + 1000 if raised else 5000)
        await asyncio.sleep(13)  # the clock of Kafka, which deletes what is five seconds old
        low = (await engine.log.start_offsets([(topic(engine, "q"), 0)]))[topic(engine, "q"), 0]
        assert low == (0 if raised else 2), "Kafka deleted something else than the test is about"
        got = await (drain(engine, "q", expect=1) if raised else drain(engine, "q", patience_ms=4000))
        assert got == (["late"] if raised else [])
    finally:
        await engine.stop()


def keeper(services: Services, prefix: str) -> Engine:
    """A worker that keeps no bodies itself."""
    return Engine(
        Settings(kafka_bootstrap=services.bootstrap, redis_url=services.redis_url, kept_bytes=0, topic_prefix=prefix)
    )


@pytest.mark.long
@pytest.mark.usefixtures("short_times")
@pytest.mark.parametrize("fifo", [False, True])
async def test_what_some_tag_has_not_acked_outlives_retention_if_the_queue_says_so(
    quick_broker: Services, fifo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_retention, "BATCH_SPAN_MS", 0)  # each is sent alone
    engine = keeper(quick_broker, f"keep-fifo-{fifo}".lower())
    await engine.start()
    try:

        async def put(body: str) -> None:
            own = SendEntry(body.encode(), group="g" if fifo else None, dedup_id=body if fifo else None)
            await engine.messages.send(BY, "q", [own])

        await engine.queues.create_queue(
            BY, "q", QueueSettings(partitions=1, retention_ms=3000, fifo=fifo or None, keep_unacked=True)
        )
        await engine.queues.create_tag(BY, "q", "slow", -1, None, {})
        assert await kept_ms(engine, "q") == -1
        await put("a")
        await put("b")
        (first,) = await receive(engine, "q", max=1, wait_ms=2000, lease_ms=500)
        await asyncio.sleep(7)  # beyond what Kafka keeps for other queues: 5 s
        # Received once before it was old, once after; and by who has not received at all.
        got = {d.message.body: d for d in await receive(engine, "q", max=2, wait_ms=2000, lease_ms=500)}
        assert {body: d.receive_count for body, d in got.items()} == {b"a": 2, b"b": 1}
        assert got[b"a"].id == first.id
        await ack(engine, "q", [got[b"a"]])
        await drained(engine)
        wipe(quick_broker, engine)  # what Kafka alone knows is as long-lived
        assert await drain(engine, "q", expect=1) == ["b"]

        monitor = engine.parts.administration.watch.alarm_monitor
        await monitor.run_once()
        assert [(alarm.kind, alarm.number) for alarm in engine.alerts.alarms()] == [("unacked_kept", 2)]
        part = (topic(engine, "q"), 0)
        assert (await engine.log.start_offsets([part]))[part] == 0
        await ack(engine, "q", await receive(engine, "q", max=1, wait_ms=2000, tag="slow"))
        await monitor.run_once()
        assert (await engine.log.start_offsets([part]))[part] == 1
        assert await drain(engine, "q", "slow", expect=1) == ["b"]
        await put("new")
        await monitor.run_once()
        assert engine.alerts.alarms() == []
        assert (await engine.log.start_offsets([part]))[part] == 2
        assert await drain(engine, "q", expect=1) == ["new"] == await drain(engine, "q", "slow", expect=1)
    finally:
        await engine.stop()


@pytest.mark.usefixtures("short_times")
async def test_a_batch_of_which_some_are_acked_is_kept_whole(quick_broker: Services) -> None:
    engine = keeper(quick_broker, "keep-batch")
    await engine.start()
    try:
        await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, retention_ms=1000, keep_unacked=True))
        await engine.messages.send(BY, "q", [SendEntry(body) for body in (b"a", b"b", b"c")])
        await ack(engine, "q", await receive(engine, "q", max=1, wait_ms=2000))
        await asyncio.sleep(4)
        await engine.parts.administration.watch.alarm_monitor.run_once()
        await drained(engine)
        wipe(quick_broker, engine)
        assert await drain(engine, "q", expect=2) == ["b", "c"]
        await send(engine, "q", "much later")
        await engine.parts.administration.watch.alarm_monitor.run_once()
        assert await drain(engine, "q", expect=1) == ["much later"]
    finally:
        await engine.stop()


@pytest.mark.long
@pytest.mark.usefixtures("short_times")
@pytest.mark.parametrize("lost", [False, True], ids=["", "and Redis loses everything"])
async def test_what_is_deferred_below_the_floor_is_not_cut(
    quick_broker: Services, clock: ScriptClock, lost: bool
) -> None:
    engine = keeper(quick_broker, f"keep-far-{lost}".lower())
    await engine.start()
    try:
        monitor, q = (
            engine.parts.administration.watch.alarm_monitor,
            QueueSettings(partitions=1, retention_ms=1000, keep_unacked=True),
        )
        await engine.queues.create_queue(BY, "q", q)
        part = (topic(engine, "q"), 0)

        async def cut() -> int:
            await monitor.run_once()
            return (await engine.log.start_offsets([part]))[part]

        async def lose() -> None:
            await drained(engine)
            if lost:
                wipe(quick_broker, engine)

        (late,) = await send(engine, "q", "late", delay_ms=HOUR_MS)
        (moved,) = await send(engine, "q", "moved", delay_ms=2 * HOUR_MS)
        await send(engine, "q", "now")
        assert await take(engine, 1) == ["now"]
        await filed(engine)
        await asyncio.sleep(5)  # beyond what other queues would keep by the clock of Kafka
        unit = engine.catalog.queues["q"].units[0]
        assert [tag.floor for tag in await engine.store.upkeep.info(unit, engine.catalog.generation, [0])] == [3]
        assert await cut() == 0
        await lose()
        clock.set(late.sent_at_ms + HOUR_MS)
        (got,) = await until_received(engine)
        assert got.message.body == b"late"
        # It is open now, and the floor is beyond it.
        assert await cut() == 0
        await ack(engine, "q", [got])
        await engine.messages.reschedule(BY, "q", moved.id, moved.sent_at_ms + 3 * HOUR_MS)
        await lose()
        assert (await cut()) <= 1
        clock.set(late.sent_at_ms + 3 * HOUR_MS)
        assert await take(engine, 1) == ["moved"]
        await drained(engine)
        assert await cut() == 3
        assert engine.parts.base.counters.get("lost_to_retention_total") == 0
    finally:
        await engine.stop()


async def until_received(engine: Engine) -> list[Delivery]:
    """Receives by turns of the owner until something comes."""
    for _ in range(200):
        await turn(engine)
        if got := await receive(engine, "q"):
            return got
        await asyncio.sleep(0.05)
    raise AssertionError("nothing came")


async def test_a_message_that_is_delayed_again_does_not_end_that_records_are_kept_for_ever(
    engine: Engine, queue: str, clock: ScriptClock
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, keep_unacked=True))
    (sent,) = await send(engine, queue, "late", delay_ms=20 * DAY_MS)
    clock.pass_s(15 * 86_400)
    clock.pass_at_kafka_s(15 * 86_400)
    await engine.messages.reschedule(BY, queue, sent.id, sent.sent_at_ms + 44 * DAY_MS)
    assert await kept_ms(engine, queue) == -1


async def test_whether_retention_ends_what_is_open_is_said_once(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, keep_unacked=True))
    with pytest.raises(NotAllowedOnQueue, match="keep_unacked"):
        await engine.queues.set_queue(BY, queue, QueueSettings(keep_unacked=False))
    await engine.queues.set_queue(BY, queue, QueueSettings(retention_ms=DAY_MS, delay_ms=DAY_MS))
    await send(engine, queue, "later", delay_ms=10 * DAY_MS)
    assert await kept_ms(engine, queue) == -1
    assert (await engine.queues.get_queue(BY, queue)).keep_unacked
