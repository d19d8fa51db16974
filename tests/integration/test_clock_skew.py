"""Clocks that differ are told of: once in the log, and by an alarm for as long as they do."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from engine.engine import Engine
from engine.queues.clock_skew import KIND
from engine.shapes import SendEntry
from schemas.records.settings import QueueSettings
from tests.clock import Clock
from tests.integration.conftest import BY, MakeEngine

LONG_S = 30


async def told(engine: Engine, clock: str, *, on: bool) -> None:
    """Returns when that alarm is on, or off."""
    until = monotonic() + LONG_S
    while (clock in {alarm.queue for alarm in engine.alerts.alarms() if alarm.kind == KIND}) != on:
        assert monotonic() < until, f"the alarm about {clock} is {'not on' if on else 'on still'}"
        await asyncio.sleep(0.05)


async def test_a_worker_whose_clock_is_set_is_told_of_once(
    make_engine: MakeEngine, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await make_engine()
    for step_s in (300, -300):
        caplog.clear()
        clock.pass_s(step_s)
        await told(engine, "worker", on=True)
        await asyncio.sleep(2.5)
        assert len([r for r in caplog.records if "action=alarm kind=clock_skew clock=worker" in r.getMessage()]) == 1
        clock.pass_s(-step_s)
        await told(engine, "worker", on=False)
    assert not [alarm for alarm in engine.alerts.alarms() if alarm.kind == KIND]


async def test_a_clock_of_redis_that_was_set_is_told_of_by_who_comes_later_too(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    keeper = engine.parts.base.clock
    # As after a step of 300 s that another worker has mended.
    read = await keeper._read(0)
    await keeper._write(read, read.version, -300_000)
    keeper.clock.take(read.at_s, read.redis_ms - 300_000)
    await told(engine, "redis", on=True)


async def test_kafkas_clock_is_known_and_followed(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await engine.messages.send(BY, "q", [SendEntry(b"x")])
    until = monotonic() + LONG_S
    while engine.parts.base.clock.skews.log is None:
        assert monotonic() < until
        await asyncio.sleep(0.05)
    assert abs(engine.parts.base.clock.skews.log) < 1000
    # As if the service's time were that of a Redis 300 s ahead of Kafka.
    keeper = engine.parts.base.clock
    read = await keeper._read(0)
    await keeper._write(read, read.version, read.offset + 300_000)
    keeper.clock.take(read.at_s, read.service_ms + 300_000)
    await told(engine, "kafka", on=True)
    until = monotonic() + LONG_S
    while keeper.clock.early_ms < 299_000:
        assert monotonic() < until, "delays count in Kafka's time"
        await asyncio.sleep(0.05)
