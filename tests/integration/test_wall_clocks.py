"""The wall clock of a worker takes no part in what Kafka's clock or that of the service decides,
also at a worker that has appended nothing yet. Transactions: `test_checks.py`.
"""

from __future__ import annotations

import pytest

from engine.errors import DelayTooLong
from engine.shapes import ExtendEntry, SendEntry
from schemas.records.settings import DAY_MS, QueueSettings
from tests.clock import Clock
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, receive, send
from tests.integration.test_rebuild import drained

HOUR_MS = 3_600_000
SET_S = pytest.mark.parametrize("set_s", [-300, 300])


@SET_S
async def test_a_time_of_delivery_is_meant_in_kafkas_time(make_engine: MakeEngine, clock: Clock, set_s: int) -> None:
    first = await make_engine()
    await first.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    (sent,) = await send(first, "q", "tells Kafka's time")
    clock.pass_s(set_s)
    engine = await make_engine()
    at = sent.sent_at_ms + HOUR_MS
    (late,) = await engine.messages.send(BY, "q", [SendEntry(b"late", deliver_at_ms=at)])
    due_ms = (await engine.messages.peek(BY, "q", late.id, None)).next_visible_at_ms
    assert due_ms is not None and at <= due_ms < at + 5_000
    # As late as the queue allows, but for what passes meanwhile.
    last = sent.sent_at_ms + 30 * DAY_MS
    await engine.messages.send(BY, "q", [SendEntry(b"last", deliver_at_ms=last)])
    await engine.messages.reschedule(BY, "q", late.id, last)
    for too_late in (
        engine.messages.send(BY, "q", [SendEntry(b"no", deliver_at_ms=last + 200_000)]),
        engine.messages.reschedule(BY, "q", late.id, last + 200_000),
    ):
        with pytest.raises(DelayTooLong):
            await too_late


@SET_S
async def test_a_lease_ends_so_long_after_its_delivery_by_the_time_of_the_service(
    make_engine: MakeEngine, clock: Clock, set_s: int
) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1))
    await send(engine, "q", "a")
    (got,) = await receive(engine, "q", wait_ms=5_000)
    clock.pass_s(set_s)

    async def extended(seconds: int) -> str:
        (result,) = await engine.messages.extend(BY, "q", [ExtendEntry(got.handle, seconds * 1000, 1_000)])
        return result.status

    assert [await extended(800), await extended(1_001)] == ["ok", "invalid"]


async def test_what_is_settled_is_kept_for_as_long_as_kafkas_clock_says(make_engine: MakeEngine, clock: Clock) -> None:
    engine = await make_engine()
    monitor = engine.parts.administration.watch.alarm_monitor
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=1, retention_ms=60_000, keep_unacked=True))
    await send(engine, "q", "a")
    assert await drain(engine, "q", expect=1) == ["a"]
    await drained(engine)
    part = (engine.catalog.queues["q"].topic, 0)
    clock.pass_s(86_400)
    await monitor.run_once()
    assert (await engine.log.start_offsets([part]))[part] == 0
    clock.pass_s(-86_400)
    clock.pass_at_kafka_s(86_400)
    await monitor.run_once()
    assert (await engine.log.start_offsets([part]))[part] == 1
