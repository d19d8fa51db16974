"""What requests are counted as, minute by minute, over workers; what a slow or lost Kafka changes
of it; and metrics and statistics of days over such minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, LogUnavailable, QueueNotFound, TagNotFound
from engine.meters.history import History
from engine.meters.shapes import DayStatistics, MetricQuery
from engine.meters.statistics import day_of
from engine.shapes import ExtendEntry, SendEntry
from schemas.records.settings import QueueSettings
from schemas.records.watching import MeterRecord
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, eventually, receive, send

MINUTE_MS = 60_000


def counted(day: DayStatistics) -> dict[tuple[str, str], tuple[int, int]]:
    return {(row.tag, row.subject): (row.requests, row.messages) for row in day.rows}


async def today(engine: Engine, queue: str) -> DayStatistics:
    return await engine.alerts.statistics(BY, queue, day_of(int(time.time() * 1000)))


async def some_of_each(engine: Engine, queue: str, tag: str) -> None:
    """Requests of every operation; some fail, and one does nothing."""
    await send(engine, queue, "a", "b")
    await engine.messages.send(BY, queue, [SendEntry(b"c"), SendEntry(b"d"), SendEntry(b"e")])
    got = await receive(engine, queue, max=2)
    more = await receive(engine, queue, max=10, wait_ms=2_000)
    assert (len(got), len(more)) == (2, 3)
    await receive(engine, queue, wait_ms=50)
    await engine.messages.extend(BY, queue, [ExtendEntry(got[0].handle, 60_000)])
    await engine.messages.release(BY, queue, [got[1].handle], 60_000)
    await ack(engine, queue, [got[0], *more])
    await engine.messages.ack(BY, queue, [got[0].handle])
    other = await receive(engine, queue, max=10, tag=tag)
    await ack(engine, queue, other)
    with pytest.raises(InvalidValue):
        await engine.messages.send(BY, queue, [SendEntry(b"x", delay_ms=-1)])
    with pytest.raises(InvalidValue):
        await engine.messages.receive(BY, queue, None, 0, 0, None)
    with pytest.raises(QueueNotFound):
        await engine.messages.send(BY, "nowhere", [SendEntry(b"x")])


EACH = {
    ("", "single_send_request"): (2, 2),
    ("", "batch_send_request"): (1, 3),
    ("", "send_request"): (3, 5),
    ("default", "short_receive_request"): (1, 2),
    ("default", "long_receive_request"): (2, 3),
    ("default", "receive_request"): (3, 5),
    ("default", "change_request"): (2, 2),
    ("default", "delete_request"): (2, 4),
    ("other", "short_receive_request"): (1, 5),
    ("other", "receive_request"): (1, 5),
    ("other", "delete_request"): (1, 5),
}


async def test_what_two_workers_have_answered_is_one_count(make_engine: MakeEngine, queue: str) -> None:
    engines = [await make_engine(meter_minute_s=1) for _ in range(2)]
    for name in (queue, f"{queue}-2"):
        await engines[0].queues.create_queue(BY, name, QueueSettings(partitions=1))
        await engines[0].queues.create_tag(BY, name, "other", 0, None, {})
    await engines[1].catalog.sync()
    for engine in engines:
        await some_of_each(engine, queue, "other")
    twice = {key: (requests * 2, messages * 2) for key, (requests, messages) in EACH.items()}

    async def all_there() -> bool:
        return counted(await today(engines[0], queue)) == twice

    try:
        await eventually(all_there, within_s=15)
    except AssertionError:
        assert counted(await today(engines[0], queue)) == twice
    assert counted(await today(engines[1], queue)) == twice
    assert counted(await today(engines[1], f"{queue}-2")) == {}
    rows = {(row.tag, row.subject): row for row in (await today(engines[0], queue)).rows}
    waited = rows["default", "long_receive_request"]
    assert 50_000 <= waited.p999_us <= waited.max_us and 0 < waited.mean_us <= waited.max_us
    assert not (await today(engines[0], queue)).complete


async def test_a_minute_that_kafka_does_not_take_is_written_later_and_once(
    make_engine: MakeEngine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await make_engine(meter_minute_s=1)
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    log, refused = engine.parts.base.log, list[str]()
    append = log.append

    def lost(topic: str, *rest: Any) -> asyncio.Future[Any]:
        """The first answers are lost, of records that Kafka does not have, and of one that it
        has.
        """
        if not topic.endswith(".meter") or len(refused) >= 3:
            return append(topic, *rest)
        refused.append(topic)

        async def fail() -> Any:
            if len(refused) == 2:
                await append(topic, *rest)
            raise LogUnavailable("by the test")

        return asyncio.ensure_future(fail())

    monkeypatch.setattr(log, "append", lost)
    await send(engine, queue, "a", "b", "c")

    async def there() -> bool:
        return counted(await today(engine, queue)).get(("", "send_request")) == (3, 3)

    await eventually(there, within_s=15)
    await asyncio.sleep(1)
    assert len(refused) == 3
    assert counted(await today(engine, queue))["", "send_request"] == (3, 3)


async def test_a_worker_that_stops_writes_the_minute_that_runs(make_engine: MakeEngine, queue: str) -> None:
    first, second = await make_engine(), await make_engine()
    await first.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await send(first, queue, "a")
    await first.stop()
    assert counted(await today(second, queue))["", "send_request"] == (1, 1)


async def test_the_last_minute_of_a_deleted_queue_is_written(make_engine: MakeEngine, queue: str) -> None:
    first, second = await make_engine(), await make_engine()
    await first.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await first.queues.create_tag(BY, queue, "other", 0, None, {})
    await second.catalog.sync()
    incarnation = first.catalog.queues[queue].incarnation
    await send(first, queue, "a", "b")
    await receive(first, queue, tag="other")
    await second.queues.delete_queue(BY, queue)
    await first.catalog.sync()
    await first.stop()
    found: list[MeterRecord] = []
    now_ms = int(time.time() * 1000)
    prefix = first.catalog.topic.removesuffix(".control")
    await History(prefix, second.parts.base.log).read(
        incarnation, now_ms - 2 * MINUTE_MS, now_ms + MINUTE_MS, found.append
    )
    rows = {(row.tag, row.operation): row.messages for record in found for row in record.rows}
    assert {record.queue for record in found} == {queue}
    assert sum(messages for (tag, _), messages in rows.items() if tag == "other") >= 1
    assert sum(messages for (tag, _), messages in rows.items() if tag == "") == 2


async def test_a_queue_made_again_begins_with_nothing(make_engine: MakeEngine, queue: str) -> None:
    first, second = await make_engine(), await make_engine()
    await first.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await send(first, queue, "a")
    await first.parts.watching.reporter.stop()
    await second.queues.delete_queue(BY, queue)
    await second.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    assert counted(await today(second, queue)) == {}


@pytest.mark.parametrize("day", ["today", "2026-13-01", "2001-01-01", "2999-01-01", "20260101"])
async def test_a_day_that_can_have_no_statistics_is_refused(engine: Engine, queue: str, day: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    with pytest.raises(InvalidValue, match="day must be"):
        await engine.alerts.statistics(BY, queue, day)


# Metrics


async def planted(engine: Engine, queue: str) -> int:
    """Minutes of two tags by two workers, planted some 20 minutes ago; when they begin."""
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    await engine.queues.create_tag(BY, queue, "t", 0, None, {})
    at = int(time.time()) // 300 * 300_000 - 1_200_000
    found = engine.catalog.queues[queue]
    reporter = engine.parts.watching.reporter
    records = []
    for minute, worker, tag, times in (
        (0, "w1", "default", [100, 300]),
        (0, "w2", "default", [200]),
        (0, "w1", "t", [4_000]),
        (1, "w1", "default", [1_000]),
        (5, "w2", "t", [7_000, 7_000]),
    ):
        rows = [row_of(tag, times)]
        records.append(MeterRecord(at + minute * MINUTE_MS, f"{worker}-{tag}", queue, found.incarnation, rows))
    assert await reporter.meters.append(records)
    return at


def row_of(tag: str, times_ms: list[int]) -> Any:
    from bisect import bisect_left

    from schemas.records.watching import MeterRow
    from schemas.vocabulary import BOUNDS_US

    places: dict[int, int] = {}
    for ms in times_ms:
        place = bisect_left(BOUNDS_US, ms * 1000)
        places[place] = places.get(place, 0) + 1
    bounds = sorted(places)
    us = [ms * 1000 for ms in times_ms]
    return MeterRow(tag, "short_receive", len(us), 10 * len(us), sum(us), max(us), bounds, [places[b] for b in bounds])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"metric": "receive_request.count"}, {0: 4, 1: 1, 5: 2}),
        ({"metric": "receive_request.messages"}, {0: 40, 1: 10, 5: 20}),
        ({"metric": "short_receive_request.count", "tag": "t"}, {0: 1, 5: 2}),
        ({"metric": "long_receive_request.count"}, {}),
        ({"metric": "receive_request.latency"}, {0: 1_150, 1: 1_000, 5: 7_000}),
        ({"metric": "receive_request.latency_max"}, {0: 4_000, 1: 1_000, 5: 7_000}),
        ({"metric": "receive_request.latency_p999", "tag": "t"}, {0: 4_000, 5: 7_000}),
        ({"metric": "receive_request.count", "interval_ms": 5 * MINUTE_MS}, {0: 5, 5: 2}),
        ({"metric": "receive_request.latency", "interval_ms": 5 * MINUTE_MS}, {0: 1_120, 5: 7_000}),
        ({"metric": "receive_request.count", "interval_ms": 5 * MINUTE_MS, "downsample": "max"}, {0: 4, 5: 2}),
        ({"metric": "receive_request.count", "interval_ms": 5 * MINUTE_MS, "downsample": "avg"}, {0: 2.5, 5: 2}),
        ({"metric": "receive_request.latency", "aggregator": "max"}, {0: 4_000, 1: 1_000, 5: 7_000}),
        ({"metric": "receive_request.latency", "aggregator": "avg"}, {0: 2_100, 1: 1_000, 5: 7_000}),
        ({"metric": "receive_request.count", "aggregator": "min"}, {0: 1, 1: 1, 5: 2}),
        ({"metric": "receive_request.count", "interval_ms": 5 * MINUTE_MS, "rate": True}, {0: 5 / 300, 5: 2 / 300}),
    ],
)
async def test_a_metric_is_made_of_minutes_and_tags(
    engine: Engine, queue: str, asked: dict[str, Any], expected: dict[int, float]
) -> None:
    at = await planted(engine, queue)
    query = MetricQuery(**{"from_ms": at, "to_ms": at + 30 * MINUTE_MS, "interval_ms": MINUTE_MS, **asked})
    found = await engine.alerts.query_metric(BY, queue, query)
    assert found.values == {at + minute * MINUTE_MS: pytest.approx(value) for minute, value in expected.items()}


async def test_a_metric_has_the_minutes_that_begin_in_its_time(engine: Engine, queue: str) -> None:
    at = await planted(engine, queue)
    found = await engine.alerts.query_metric(
        BY, queue, MetricQuery("receive_request.count", at + 1, at + 5 * MINUTE_MS, MINUTE_MS)
    )
    assert found.values == {at + MINUTE_MS: 1}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"metric": "nonsense"}, "metric"),
        ({"metric": "queue_message_number.count"}, "metric"),
        ({"aggregator": "zimsum"}, "aggregator"),
        ({"downsample": "p99"}, "downsample"),
        ({"interval_ms": 1_000}, "interval_ms"),
        ({"interval_ms": 90_000}, "interval_ms"),
        ({"to_ms": 0}, "from"),
        ({"from_ms": 0}, "from"),
        ({"from_ms": -1}, "from"),
        ({"to_ms": 1_000_000 + 30 * 86_400_000}, "interval_ms"),
        ({"metric": "send_request.latency", "rate": True}, "rate"),
    ],
)
async def test_what_cannot_be_shown_is_refused(engine: Engine, queue: str, asked: dict[str, Any], field: str) -> None:
    with contextlib.suppress(InvalidValue):
        await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    at = 1_000_000 if "to_ms" in asked else int(time.time() * 1000)
    query = MetricQuery(
        **{"metric": "send_request.count", "from_ms": at, "to_ms": at + 1, "interval_ms": MINUTE_MS, **asked}
    )
    with pytest.raises(InvalidValue) as refused:
        await engine.alerts.query_metric(BY, queue, query)
    assert refused.value.field == field


async def test_a_metric_of_a_tag_that_is_none_is_refused(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1))
    with pytest.raises(TagNotFound):
        await engine.alerts.query_metric(BY, queue, MetricQuery("send_request.count", 0, 1, MINUTE_MS, tag="none"))
