"""The few rows that the page shows, asked of the written reports. Times are put together to steps,
so that a chart has at most 96.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.page import MOST_ROWS

MOST_STEPS = 96
MOST_SERIES = 5
DAY_REQUESTS = ("SEND_REQUEST", "RECEIVE_REQUEST", "CHANGE_REQUEST", "DELETE_REQUEST")
MEASURES = ("sent", "arrived", "leased", "acked", "dead")
_MINUTE_MS = 60_000
_STEPS_MIN = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 10_080)


def figures_of(frames: Mapping[str, DataFrame], begin: datetime, end: datetime) -> dict[str, Any]:
    """Rows by figure; `begin_ms`, `end_ms`, `step_ms`: the time that charts show, from the first
    minute with traffic to the last.
    """
    begin_ms, end_ms = _extent(frames["tallies"], begin, end)
    step_ms = _MINUTE_MS * next(
        (n for n in _STEPS_MIN if (end_ms - begin_ms) / (n * _MINUTE_MS) <= MOST_STEPS), _STEPS_MIN[-1]
    )
    begin_ms -= begin_ms % step_ms
    end_ms += -end_ms % step_ms
    at = F.greatest(F.lit(begin_ms), F.unix_millis("minute") - F.pmod(F.unix_millis("minute"), F.lit(step_ms))).alias(
        "at_ms"
    )
    return {
        "begin_ms": begin_ms,
        "end_ms": end_ms,
        "step_ms": step_ms,
        "traffic": _traffic(frames["tallies"], at),
        "latency": _latency(frames["latency"], at),
        "backlog": _backlog(frames["backlog"], at),
        "leases": rows_of(
            frames["lease_histogram"].groupBy("below_ms").agg(F.sum("count").alias("count")).orderBy("below_ms")
        ),
        "slow_leases": rows_of(
            frames["slow_leases"].orderBy(F.desc("lapsed"), F.desc("late"), F.desc("near"), "hour", "queue", "tag")
        ),
        "poison": rows_of(frames["poison"].orderBy(F.desc("deliveries"), "queue", "tag", "rank")),
        "metering": rows_of(frames["metering"].orderBy("date", "role", F.desc("messages"), "principal", "queueName")),
        "daily": rows_of(exact_daily(frames["daily"], frames["daily_statistics"])),
        "stale": rows_of(
            frames["stale_handles"]
            .groupBy("queue", "reason")
            .agg(F.sum("handles").alias("handles"))
            .orderBy(F.desc("handles"), "queue", "reason")
        ),
        "asked": rows_of(
            frames["requests"]
            .withColumns({name: F.col(f"{name[:-2]}us") / 1000 for name in ("mean_ms", "max_ms")})
            .orderBy(F.desc("requests"), "date", "principal", "queue", "verb", "dialect", "outcome")
        ),
        "lag": _lag(frames["tag_lag"]),
        **_dead_letters(frames, at),
    }


def rows_of(frame: DataFrame, most: int = MOST_ROWS) -> list[dict[str, Any]]:
    """At most `most` rows of an aggregated frame."""
    return [row.asDict(recursive=True) for row in frame.limit(most).collect()]


def _extent(counts: DataFrame, begin: datetime, end: datetime) -> tuple[int, int]:
    low, high = (int(time.timestamp() * 1000) for time in (begin, end))
    seen = counts.agg(
        F.min(F.unix_millis("minute")).alias("low"), F.max(F.unix_millis("minute")).alias("high")
    ).collect()[0]
    if seen["low"] is None:
        return low, high
    return max(low - low % _MINUTE_MS, seen["low"]), min(high + -high % _MINUTE_MS, seen["high"] + _MINUTE_MS)


def _traffic(counts: DataFrame, at: Column) -> list[dict[str, Any]]:
    told = counts.where(F.col("measure").isin(*MEASURES))
    return rows_of(told.groupBy("measure", at).agg(F.sum("messages").alias("messages")), MOST_STEPS * len(MEASURES) * 2)


def _latency(latency: DataFrame, at: Column) -> list[dict[str, Any]]:
    """Of the busiest tags: the median (mean of the minutes' medians, by their counts), the highest
    p95 and p99 of a minute.
    """
    busy = _busiest(latency, "count")
    middle = (F.sum(F.col("p50_ms") * F.col("count")) / F.sum("count")).alias("p50_ms")
    most = [F.max(name).alias(name) for name in ("p95_ms", "p99_ms")]
    found = (
        latency.join(F.broadcast(busy), on=["queue", "tag"])
        .groupBy("queue", "tag", "place", "measure", at)
        .agg(middle, *most)
    )
    return rows_of(found.orderBy("place", "measure", "at_ms"), MOST_STEPS * MOST_SERIES * 4)


def _backlog(backlog: DataFrame, at: Column) -> list[dict[str, Any]]:
    """Of the fullest tags: what was there at the end of each step in which something changed."""
    busy = _busiest(backlog, "backlog")
    names = ("backlog", "in_flight", "delayed")
    last = [F.max_by(name, "minute").alias(name) for name in names]
    found = backlog.join(F.broadcast(busy), on=["queue", "tag"]).groupBy("queue", "tag", "place", at).agg(*last)
    return rows_of(found.orderBy("place", "at_ms"), MOST_STEPS * MOST_SERIES * 2)


def _busiest(frame: DataFrame, measure: str) -> DataFrame:
    """queue, tag, place (0 = the first) of the MOST_SERIES - 1 with the greatest sum of
    `measure`.
    """
    summed = (
        frame.groupBy("queue", "tag")
        .agg(F.sum(measure).alias("_sum"))
        .orderBy(F.desc("_sum"), "queue", "tag")
        .limit(MOST_SERIES - 1)
    )
    return summed.select("queue", "tag", F.monotonically_increasing_id().alias("place"))


def _lag(tag_lag: DataFrame) -> list[dict[str, Any]]:
    whole = tag_lag.groupBy("queue", "tag").agg(
        F.sum("messages").alias("messages"), F.sum("open").alias("open"), F.max("lag").alias("lag"),
        F.max("oldest_ms").alias("oldest_ms")
    )  # fmt: skip
    return rows_of(whole.orderBy(F.desc("open"), "queue", "tag"))


def exact_daily(daily: DataFrame, statistics: DataFrame) -> DataFrame:
    """The daily statistics of the log, and in place of its numbers of requests those that the
    workers have counted, where there are any: `exact`. Reads the reports `daily` and
    `daily_statistics`.
    """
    key = ("date", "queueName", "tagName")
    named = statistics.withColumnsRenamed({"queue": "queueName", "tag": "tagName"})
    sums = [
        F.sum(F.when(F.col("subject") == name.lower(), F.col("requests"))).alias(f"_{name}") for name in DAY_REQUESTS
    ]
    told = named.groupBy(*key).agg(*sums, F.lit(True).alias("exact"))
    both = daily.join(told, on=list(key), how="full")
    columns = {name: F.coalesce(f"_{name}", name, F.lit(0)) for name in DAY_REQUESTS}
    others = {name: F.coalesce(name, F.lit(0)) for name in daily.columns if name not in (*key, *DAY_REQUESTS)}
    filled = both.withColumns({**columns, **others, "exact": F.coalesce("exact", F.lit(False))})
    return filled.select(*daily.columns, "exact").orderBy(*key)


def _dead_letters(frames: Mapping[str, DataFrame], at: Column) -> dict[str, list[dict[str, Any]]]:
    over_time = (
        frames["dead_letter_minutes"]
        .groupBy("source_queue", "reason", at)
        .agg(F.sum("dead_letters").alias("dead_letters"))
    )
    return {
        "dead_letter_minutes": rows_of(over_time.where(F.col("dead_letters") > 0), 20_000),
        "dead_letter_sources": rows_of(
            frames["dead_letter_sources"].orderBy(F.desc("dead_letters"), "queue", "source_queue", "reason")
        ),
        "dead_letter_ages": rows_of(frames["dead_letter_ages"].orderBy("queue", "age_order")),
        "dead_letter_bursts": rows_of(frames["dead_letter_bursts"].orderBy(F.desc("dead_letters"), "began_at")),
        "dead_letter_shapes": rows_of(frames["dead_letter_shapes"].orderBy(F.desc("dead_letters"), "shape")),
        "dead_letter_clusters": rows_of(frames["dead_letter_clusters"].orderBy("cluster")),
    }


def utc(ms: int) -> datetime:
    """An epoch time."""
    return datetime.fromtimestamp(ms / 1000, UTC)
