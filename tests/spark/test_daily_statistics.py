"""The statistics of a day: what Spark makes of the meter topic is what the service answers."""

from __future__ import annotations

import asyncio
import random
import secrets
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engine.engine import Engine
from engine.meters.day_tables import DayTables
from engine.meters.shapes import StatisticsRow
from engine.settings import Settings
from engine.shapes import Principal
from schemas.records.settings import QueueSettings
from schemas.records.watching import MeterRecord, MeterRow
from schemas.vocabulary import BOUNDS_US, Operation
from spark.frames.log import Log
from spark.frames.source import Span
from spark.frames.tables import Tables
from spark.reports.daily_statistics import daily_statistics
from spark.reports.days import write_days
from tests.services import Services

BY = Principal("tester", admin=True)
MINUTE_MS = 60_000
QUEUES = ("orders", "jobs")


def row(chance: random.Random, tag: str, operation: Operation) -> MeterRow:
    """Requests with times from microseconds to beyond all bounds."""
    times = [int(10 ** chance.uniform(0, 8.3)) for _ in range(chance.choice((1, 2, 30, 1_200)))]
    places: dict[int, int] = {}
    for us in times:
        place = bisect_left(BOUNDS_US, us)
        places[place] = places.get(place, 0) + 1
    bounds = sorted(places)
    return MeterRow(
        tag, operation, len(times), 3 * len(times), sum(times), max(times), bounds, [places[place] for place in bounds]
    )


async def _plant_and_ask(stack: Services, prefix: str, day: datetime) -> dict[str, list[StatisticsRow]]:
    """Minutes of three workers around a day, one of them written twice; what the service answers by
    queue.
    """
    chance = random.Random(7)
    engine = Engine(Settings(kafka_bootstrap=stack.bootstrap, redis_url=stack.redis_url, topic_prefix=prefix))
    await engine.start()
    try:
        begin = int(day.timestamp() * 1000)
        found = {}
        for name in QUEUES:
            await engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
            incarnation = engine.catalog.queues[name].incarnation
            records = []
            for number, minute in enumerate((-1, 0, 1, 7, 7, 700, 1_439, 1_440)):
                rows = [row(chance, "", Operation.SINGLE_SEND), row(chance, "", Operation.BATCH_SEND)]
                rows += [
                    row(chance, tag, op)
                    for tag in ("default", "t")
                    for op in Operation
                    if "send" not in op and chance.random() < 0.7
                ]
                records.append(MeterRecord(begin + minute * MINUTE_MS, f"w{number % 3}", name, incarnation, rows))
            reporter = engine.parts.watching.reporter
            assert await reporter.meters.append([*records, records[3]])
            found[name] = (await engine.alerts.statistics(BY, name, f"{day:%Y-%m-%d}")).rows
        return found
    finally:
        await engine.stop()


def as_rows(frame: Any, queue: str) -> list[StatisticsRow]:
    fields = ("tag", "subject", "requests", "messages", "mean_us", "p999_us", "max_us")
    return sorted(
        (StatisticsRow(*(found[name] for name in fields)) for found in frame.where(f"queue = '{queue}'").collect()),
        key=lambda one: (one.tag, one.subject),
    )


def test_spark_and_the_service_come_to_the_same_numbers(
    stack: Services, spark_session: SparkSession, tmp_path: Path
) -> None:
    # Appended now, so they can only be of a day that ended less than an hour ago, or of today: the
    # engine looks for a day's records from its beginning to an hour after its end.
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    prefix = f"s{secrets.token_hex(4)}"
    served = asyncio.run(_plant_and_ask(stack, prefix, day))
    log = Log(stack.bootstrap, prefix)
    begin, end = int(day.timestamp() * 1000), int((day + timedelta(days=1)).timestamp() * 1000)
    counted = daily_statistics(Tables(spark_session, log, Span(begin, end)).meters()).persist()
    for queue in QUEUES:
        assert len(served[queue]) > 10
        assert as_rows(counted, queue) == served[queue]
    assert {str(found["date"]) for found in counted.collect()} == {f"{day:%Y-%m-%d}"}

    write_days(counted, [f"{day:%Y-%m-%d}"], tmp_path)
    for queue in QUEUES:
        (incarnation,) = {row["incarnation"] for row in counted.where(f"queue = '{queue}'").collect()}
        assert asyncio.run(DayTables(str(tmp_path)).day(incarnation, f"{day:%Y-%m-%d}")) == served[queue]
