"""The batch report: reads the log once, writes each report as Parquet and a summary.

Neighbours: `stage.py` reads, `reports/` computes, `spark/__main__.py` calls `report`. A page or another report joins in
`reports_of`, or reads the folders afterwards with `written`.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.log import Log, epoch_ms
from spark.reports.backlog import backlog, tag_lag
from spark.reports.latency import latency, lease_histogram, slow_leases
from spark.reports.metering import metering
from spark.reports.redelivery import poison, redelivery
from spark.source import Span
from spark.stage import Staged, stage
from spark.tables import Tables
from spark.tallies import added, daily_of, events, sends

SUMMARY = "summary.json"
_STAGE = "staged"


def tallies_of(staged: Staged, begin: datetime, end: datetime) -> DataFrame:
    """TALLIES of begin <= time < end: appends by their log-append time, events by Redis' clock."""
    sent, told = between(staged.messages, "sent_at", begin, end), between(staged.journal, "at", begin, end)
    return added(sends(sent).unionByName(events(told)))


def between(frame: DataFrame, time: str, begin: datetime, end: datetime) -> DataFrame:
    """The rows with begin <= time < end."""
    return frame.where((F.col(time) >= F.lit(begin)) & (F.col(time) < F.lit(end)))


def reports_of(staged: Staged, tallies: DataFrame, begin: datetime, end: datetime) -> dict[str, DataFrame]:
    """All reports by name: small, aggregated frames. Their docstrings give grain, columns and units."""
    lent = between(staged.deliveries, "received_at", begin, end)
    return {
        "latency": latency(lent, "minute"),
        "latency_total": latency(lent),
        "lease_histogram": lease_histogram(between(staged.deliveries, "settled_at", begin, end)),
        "backlog": backlog(staged.lives, staged.deliveries, begin, end),
        "daily": daily_of(tallies),
        "metering": metering(tallies, lent, staged.queues),
        "redelivery": redelivery(lent),
        "poison": poison(lent, staged.lives),
        "tag_lag": tag_lag(staged.lives, end),
        "slow_leases": slow_leases(lent),
    }


def report(
    spark_session: SparkSession, log: Log, begin: datetime, end: datetime, out: Path, oldest: datetime | None = None
) -> dict[str, Any]:
    """Writes all reports of begin <= time < end below `out`, partitioned by date, and summary.json; returns the summary.

    The log is read from `oldest` on (None = all that Kafka has): backlog and receive counts at `begin` need what was before.
    What `out` holds of an earlier report is replaced. Not safe for two jobs with one `out`.
    """
    began = time.monotonic()
    seconds: dict[str, float] = {}
    folder = out / _STAGE
    try:
        tables = Tables(spark_session, log, Span(epoch_ms(oldest) if oldest else None, epoch_ms(end)))
        staged = stage(tables, str(folder))
        seconds["stage"] = round(time.monotonic() - began, 1)
        tallies = _write(added(tallies_of(staged, begin, end)), out / "tallies", end)
        frames = {"tallies": tallies}
        for name, frame in reports_of(staged, tallies, begin, end).items():
            at = time.monotonic()
            frames[name] = _write(frame, out / name, end)
            seconds[name] = round(time.monotonic() - at, 1)
        seconds["all"] = round(time.monotonic() - began, 1)
        summary = summary_of(frames, begin, end) | {"unread": _rows(tables.unread()), "seconds": seconds}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (out / SUMMARY).write_text(json.dumps(summary, indent=1, default=str) + "\n", encoding="utf-8")
    return summary


def written(spark_session: SparkSession, out: Path) -> dict[str, DataFrame]:
    """The reports that are below `out`, by name."""
    return {path.name: spark_session.read.parquet(str(path)) for path in sorted(out.iterdir()) if (path / "_SUCCESS").exists()}


def summary_of(frames: Mapping[str, DataFrame], begin: datetime, end: datetime) -> dict[str, Any]:
    """What summary.json says: totals by measure, by queue and tag; latency of the whole range; the state of each tag at `end`."""
    sums = [F.sum(name).alias(name) for name in ("requests", "messages", "bytes")]
    lag = frames["tag_lag"].groupBy("queue", "tag")
    return {
        "from": begin.isoformat(),
        "to": end.isoformat(),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "totals": _rows(frames["tallies"].groupBy("measure").agg(*sums).orderBy("measure")),
        "queues": _rows(frames["tallies"].groupBy("queue", "tag", "measure").agg(*sums).orderBy("queue", "tag", "measure")),
        "latency": _rows(frames["latency_total"].drop("date").orderBy("queue", "tag", "measure")),
        "redelivery": _rows(frames["redelivery"].drop("date").orderBy("queue", "tag")),
        "open": _rows(lag.agg(F.sum("open").alias("open"), F.max("oldest_ms").alias("oldest_ms")).orderBy("queue", "tag")),
    }


def _write(frame: DataFrame, path: Path, end: datetime) -> DataFrame:
    """Writes a report partitioned by its day: of its minute or hour, else the day of the report's end."""
    dated = frame
    if "date" not in frame.columns:
        moments = [name for name in ("minute", "hour") if name in frame.columns]
        dated = frame.withColumn("date", F.to_date(moments[0]) if moments else F.lit(end).cast("date"))
    dated.coalesce(1).write.mode("overwrite").partitionBy("date").parquet(str(path))
    # The schema is known: a report without rows has no file to ask for it.
    return frame.sparkSession.read.schema(dated.schema).parquet(str(path))


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small, aggregated frame."""
    return [row.asDict() for row in frame.collect()]
