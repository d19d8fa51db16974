"""So many delayed messages that they would stop what comes behind: refused, and told of where they
came another way.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import TooManyDelayed
from engine.loading import loader
from engine.queues import info
from engine.rules.limits import MAX_DELAYED
from engine.shapes import SendEntry
from engine.window import delays
from schemas.records import Message
from schemas.records.settings import QueueSettings
from schemas.topics import queue_topic
from schemas.wire import encode
from state.errors import StateUnavailable
from state.replies import MAX_OPEN
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually, receive, send

BOUND, OPEN = 20, 30
# Not so long that a message is deferred.
NEAR_MS = 250_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of tens, not of hundreds of thousands."""
    for module in (delays, info):
        monkeypatch.setattr(module, "MAX_DELAYED", BOUND)
    for module in (loader, info):
        monkeypatch.setattr(module, "MAX_OPEN", OPEN)


async def with_queue(engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(engine.store.units, "window", msgspec.structs.replace(engine.store.units.window, max_open=OPEN))
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    return engine


def alarms_of(engine: Engine, queue: str) -> set[tuple[str, float]]:
    return {(alarm.kind, alarm.number) for alarm in engine.alerts.alarms() if alarm.queue == queue}


def test_there_is_room_for_what_is_ready_beside_what_is_delayed() -> None:
    assert MAX_OPEN - MAX_DELAYED >= 50_000


async def test_more_delayed_messages_than_may_be_are_refused_and_the_others_go_on(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, other = await with_queue(await make_engine(), "q", monkeypatch), await make_engine()
    await send(engine, "q", *map(str, range(BOUND - 1)), delay_ms=NEAR_MS)
    await engine.messages.send(BY, "q", [SendEntry(b"last", delay_ms=NEAR_MS), SendEntry(b"now")])
    for worker in (engine, other):
        with pytest.raises(TooManyDelayed) as refused:
            await worker.messages.send(
                BY, "q", [SendEntry(b"a", delay_ms=1000), SendEntry(b"b", delay_ms=1000), SendEntry(b"c")]
            )
        assert (refused.value.field, refused.value.limit, refused.value.given) == ("delay_ms", BOUND, BOUND + 2)
    await send(engine, "q", "behind")
    assert await drain(engine, "q", expect=2) == ["now", "behind"]
    await engine.parts.administration.watch.alarm_monitor.run_once()
    assert [(a.kind, a.queue, a.number) for a in engine.alerts.alarms()] == [("delayed_near", "q", BOUND)]
    # Without Redis nobody knows how many there are, and sends are answered.
    with monkeypatch.context() as away:

        async def refuse(*_: Any) -> int:
            raise StateUnavailable("by the test")

        away.setattr(other.store.upkeep, "delayed", refuse)
        away.setattr(delays, "LOOK_S", 0.0)
        await send(other, "q", "known later", delay_ms=NEAR_MS)
    await engine.queues.purge(BY, "q")

    async def accepted() -> bool:
        try:
            await send(engine, "q", "anew", delay_ms=NEAR_MS)
        except TooManyDelayed:
            return False
        return True

    await eventually(accepted, within_s=3)
    await engine.parts.administration.watch.alarm_monitor.run_once()
    assert engine.alerts.alarms() == []


async def test_a_burst_between_two_looks_is_counted_here(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_queue(engine, queue, monkeypatch)
    outcomes = await asyncio.gather(
        *(send(engine, queue, "m", delay_ms=NEAR_MS) for _ in range(BOUND + 15)), return_exceptions=True
    )
    assert sum(isinstance(outcome, TooManyDelayed) for outcome in outcomes) == 15
    assert (await engine.queues.get_queue(BY, queue)).tags[0].delayed == BOUND


async def test_the_queues_own_delay_counts_too(engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await with_queue(engine, queue, monkeypatch)
    await engine.queues.set_queue(BY, queue, QueueSettings(delay_ms=NEAR_MS))
    await send(engine, queue, *map(str, range(BOUND)))
    with pytest.raises(TooManyDelayed):
        await send(engine, queue, "one more")
    await send(engine, queue, "at once", delay_ms=0)
    assert await drain(engine, queue, expect=1) == ["at once"]


async def test_releases_with_a_delay_leave_room_for_what_comes_behind(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await with_queue(await make_engine(), "q", monkeypatch)
    monkeypatch.setattr(delays, "LOOK_S", 0.0)
    await send(engine, "q", *map(str, range(BOUND + 5)))
    leased = [d.handle for d in await receive(engine, "q", max=100, lease_ms=600_000)]
    with pytest.raises(TooManyDelayed) as refused:
        await engine.messages.release(BY, "q", leased[:10], NEAR_MS)
    assert (refused.value.field, refused.value.limit, refused.value.given) == ("delay_ms", BOUND, BOUND + 15)
    # Nothing was changed: at once they may go back, and then there is room.
    assert {one.status for one in await engine.messages.release(BY, "q", leased[:15])} == {"ok"}
    assert {one.status for one in await engine.messages.release(BY, "q", leased[15:], NEAR_MS)} == {"ok"}
    await send(engine, "q", "behind")
    assert len(await drain(engine, "q", expect=16)) == 16


async def test_what_stands_behind_a_window_full_of_delays_is_told(
    engine: Engine, queue: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_queue(engine, queue, monkeypatch)
    topic = queue_topic(engine.settings.topic_prefix, queue)
    far = encode(Message(b"far", {}, delay_ms=NEAR_MS, sender="native producer"))
    await engine.log.append_many(topic, 0, [far] * (OPEN + 10))

    async def full() -> bool:
        await receive(engine, queue)
        return (await engine.queues.get_queue(BY, queue)).tags[0].delayed == OPEN

    await eventually(full)
    await send(engine, queue, "behind")
    assert await drain(engine, queue, patience_ms=1000) == []
    await engine.parts.administration.watch.alarm_monitor.run_once()
    assert alarms_of(engine, queue) == {("delayed_near", OPEN), ("delayed_full", 11)}
    assert any(f"action=alarm kind=delayed_full queue={queue} " in r.getMessage() for r in caplog.records)
    await engine.queues.purge(BY, queue)
    await engine.parts.administration.watch.alarm_monitor.run_once()
    assert alarms_of(engine, queue) == set()
