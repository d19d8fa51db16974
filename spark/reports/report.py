"""The batch report: reads its source once, writes each report as Parquet, a summary, and a page.

Another report joins in `reports_of`, or reads the folders afterwards with `written`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.dead_letters.bodies import dead_letters_with_bodies, succeeded_of_sources
from spark.dead_letters.clusters import LEAST_DEAD_LETTERS, dead_letter_clusters, with_cluster, without_cluster
from spark.dead_letters.dead_letters import (
    dead_letter_ages,
    dead_letter_bursts,
    dead_letter_minutes,
    dead_letter_shapes,
    dead_letter_sources,
)
from spark.page.before import SUMMARY, earlier
from spark.page.dead_letters import causes
from spark.page.figures import figures_of
from spark.page.markup import Figures
from spark.page.page import page_of
from spark.page.use import REQUESTS
from spark.progress import Stages
from spark.reports.backlog import backlog, tag_lag
from spark.reports.counts import added, daily_of, events, sends
from spark.reports.daily_statistics import daily_statistics, stale_handles
from spark.reports.days import whole_days, write_days
from spark.reports.latency import latency, lease_histogram, slow_leases
from spark.reports.metering import audited, metering, requested
from spark.reports.redelivery import poison, redelivery
from spark.reports.sources.staging import Source, Staging, kept
from spark.rules.forgotten import forgotten_sends

PAGE = "report.html"
MOST_CLUSTERED = 100_000
_DEAD_LETTER = (
    "queue",
    "partition",
    "offset",
    "address",
    "source_queue",
    "reason",
    "dead_at",
    "settled_how",
    "body_kind",
    "shape",
    "cluster",
)
_STAGE = "staged"


def folder_of(begin: datetime, end: datetime) -> str:
    """The name of the folder of a report: its time, so that no report replaces that of another."""

    def spelt(time: datetime) -> str:
        utc = time.astimezone(UTC)
        return f"{utc:%Y-%m-%dT%H%M%S}" + (f".{utc.microsecond // 1000:03d}" if utc.microsecond >= 1000 else "")

    return f"{spelt(begin)}--{spelt(end)}"


def counts_of(staging: Staging, meters: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """COUNTS of begin <= time < end: appends by their log-append time, events by Redis' clock, and
    appends that Kafka has no more by `meters`, METERS of the same time.
    """
    sent, told = between(staging.messages, "sent_at", begin, end), between(staging.journal, "at", begin, end)
    gone = forgotten_sends(meters, sent, staging.journal_now, staging.queues, F.current_timestamp())
    return added(sends(sent).unionByName(events(told)).unionByName(gone))


def between(frame: DataFrame, time: str, begin: datetime, end: datetime) -> DataFrame:
    """The rows with begin <= time < end."""
    return frame.where((F.col(time) >= F.lit(begin)) & (F.col(time) < F.lit(end)))


def reports_of(staging: Staging, counts: DataFrame, begin: datetime, end: datetime) -> dict[str, DataFrame]:
    """All reports by name: small, aggregated frames. Their docstrings give grain, columns and
    units.
    """
    leased = between(staging.deliveries, "received_at", begin, end)
    return {
        "latency": latency(leased, "minute"),
        "latency_total": latency(leased),
        "lease_histogram": lease_histogram(between(staging.deliveries, "settled_at", begin, end)),
        "backlog": backlog(staging.lifecycles, staging.deliveries, begin, end),
        "daily": daily_of(counts),
        "metering": metering(counts, leased, staging.queues),
        "redelivery": redelivery(leased),
        "poison": poison(leased, staging.lifecycles),
        "tag_lag": tag_lag(staging.lifecycles, end),
        "slow_leases": slow_leases(leased),
    }


def told_by_workers(source: Source) -> dict[str, DataFrame]:
    """Reports of what the workers have written besides messages and journal, by name."""
    return {
        "audit": audited(source.audit()),
        "requests": requested(source.requests()),
        "stale_handles": stale_handles(source.stale_handles()),
    }


def dead_letter_reports_of(
    dead_letters: DataFrame, succeeded: DataFrame, end: datetime
) -> Iterator[tuple[str, DataFrame]]:
    """The reports about dead letters by name, each to be written before the next is asked for. Ages
    are those at `end`.

    `dead_letters` names the cause of each, as far as it has one; with more than 100,000 dead
    letters, of a part of them (`one_in`).
    """
    yield "dead_letter_sources", dead_letter_sources(dead_letters)
    yield "dead_letter_ages", dead_letter_ages(dead_letters, F.lit(end))
    yield "dead_letter_shapes", dead_letter_shapes(dead_letters)
    yield "dead_letter_minutes", dead_letter_minutes(dead_letters)
    yield "dead_letter_bursts", dead_letter_bursts(dead_letters)
    many = dead_letters.count()
    one_in = many // MOST_CLUSTERED + 1
    part = dead_letters.where(F.pmod(F.xxhash64("queue", "partition", "offset"), F.lit(one_in)) == 0)
    clustered = (with_cluster(part, succeeded) if many >= LEAST_DEAD_LETTERS else without_cluster(part)).persist()
    yield "dead_letter_clusters", dead_letter_clusters(clustered).withColumn("one_in", F.lit(one_in))
    yield "dead_letters", clustered.select(*_DEAD_LETTER, F.to_date("dead_at").alias("date"))
    clustered.unpersist()


def report(source: Source, begin: datetime, end: datetime, out: Path) -> dict[str, Any]:
    """Writes all reports of begin <= time < end below `out`, partitioned by date, summary.json and
    report.html; returns the summary. `source` is one of that time.

    What `out` holds of an earlier report is replaced. Not safe for two jobs with one `out`.
    """
    stages = Stages("report")
    folder = out / _STAGE
    frames: dict[str, DataFrame] = {}

    def write(name: str, frame: DataFrame) -> DataFrame:
        stages.begin(name, f"writing {name}")
        frames[name] = _write(frame, out / name, end)
        return frames[name]

    try:
        staging = source.staging(str(folder), lambda name: stages.begin(name, f"reading {name}"))
        meters = kept(source.meters(), f"{folder}/meters")
        counts = write("tallies", counts_of(staging, meters, begin, end))
        for name, frame in reports_of(staging, counts, begin, end).items():
            write(name, frame)
        for name, frame in told_by_workers(source).items():
            write(name, frame)
        write_days(write("daily_statistics", daily_statistics(meters)), whole_days(begin, end, datetime.now(UTC)), out)
        stages.begin("bodies", "reading bodies of dead letters")
        sent = between(staging.messages, "sent_at", begin, end)
        dead_letters = kept(dead_letters_with_bodies(source, staging, sent), f"{folder}/letters")
        succeeded = kept(succeeded_of_sources(source, staging, dead_letters), f"{folder}/succeeded")
        for name, frame in dead_letter_reports_of(dead_letters, succeeded, end):
            write(name, frame)
        stages.begin("page", "writing the page")
        summary = summary_of(frames, begin, end) | {"unread": _rows(source.unread(staging.messages))}
        shown = figures_of(frames, begin, end)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    before = {"earlier": earlier(out)}
    return _shown(summary | {"causes": causes(shown), "seconds": stages.seconds()}, before, shown, out)


def _shown(summary: dict[str, Any], before: dict[str, Any], shown: Figures, out: Path) -> dict[str, Any]:
    """Writes the summary and the page, which has what was `before`; returns the summary."""
    (out / SUMMARY).write_text(json.dumps(summary, indent=1, default=str) + "\n", encoding="utf-8")
    (out / PAGE).write_text(page_of(summary | before, shown), encoding="utf-8")
    return summary


def written(spark_session: SparkSession, out: Path) -> dict[str, DataFrame]:
    """The reports that are below `out`, by name; those without a row have no file, and are left
    out.
    """
    return {
        path.name: spark_session.read.parquet(str(path)) for path in sorted(out.iterdir()) if any(path.glob("date=*"))
    }


def summary_of(frames: Mapping[str, DataFrame], begin: datetime, end: datetime) -> dict[str, Any]:
    """What summary.json says: totals by measure, by queue and tag; latency of the whole range; the
    state of each tag at `end`.
    """
    sums = [F.sum(name).alias(name) for name in ("requests", "messages", "bytes")]
    lag = frames["tag_lag"].groupBy("queue", "tag")
    return {
        "from": begin.isoformat(),
        "to": end.isoformat(),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "requests": REQUESTS,
        "totals": _rows(frames["tallies"].groupBy("measure").agg(*sums).orderBy("measure")),
        "queues": _rows(
            frames["tallies"].groupBy("queue", "tag", "measure").agg(*sums).orderBy("queue", "tag", "measure")
        ),
        "latency": _rows(frames["latency_total"].drop("date").orderBy("queue", "tag", "measure")),
        "redelivery": _rows(frames["redelivery"].drop("date").orderBy("queue", "tag")),
        "audit": _rows(frames["audit"].orderBy("date", "principal", "verb", "queue", "outcome")),
        "open": _rows(
            lag.agg(F.sum("open").alias("open"), F.max("oldest_ms").alias("oldest_ms")).orderBy("queue", "tag")
        ),
    }


def _write(frame: DataFrame, path: Path, end: datetime) -> DataFrame:
    """Writes a report partitioned by its day: of its minute or hour, else the day of the report's
    end.
    """
    dated = frame
    if "date" not in frame.columns:
        moments = [name for name in ("minute", "hour") if name in frame.columns]
        dated = frame.withColumn("date", F.to_date(moments[0]) if moments else F.lit(end).cast("date"))
    # One file a day; several when there is much: not one task for all.
    dated.hint("rebalance", "date").write.mode("overwrite").partitionBy("date").parquet(str(path))
    # The schema is known: a report without rows has no file to ask for it.
    return frame.sparkSession.read.schema(dated.schema).parquet(str(path))


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small, aggregated frame."""
    return [row.asDict() for row in frame.collect()]
