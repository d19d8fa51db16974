"""What the records of each topic become: rows of a table, given the rows that are there already.

A feed is given the records of one commit. Rules that look back, such as dropping what came twice,
look at the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.topics import QUEUE_KEY, audit_topic, control_topic, journal_topic, meter_topic, requests_topic
from spark.frames.decode import audit_of, entries_of, meters_of, requests_of, stale_handles_of
from spark.frames.tables import queue_rows
from spark.lake.shapes import CONTROL
from spark.rules.transitions import journal_of, without_repeats

# Kafka keeps the journal for 30 days, so whatever is read from there remembers no longer.
_JOURNAL_US = 31 * 86_400 * 1_000_000
_UNIT = ["incarnation", "partition"]


@dataclass(frozen=True)
class Feed:
    """One table that is made of one topic. `subject` names the schema of its records; `rows` makes
    rows of records, QUEUES and the rows that are there.
    """

    table: str
    subject: str
    topic: Callable[[str], str]
    rows: Callable[[DataFrame, DataFrame, DataFrame], DataFrame]
    keys: str = ""  # What the keys of records that are copied begin with.


def journal_rows(records: DataFrame, queues: DataFrame, there: DataFrame) -> DataFrame:
    """JOURNAL of the entries that are news to the table."""
    entries = entries_of(records)
    low, _ = _bounds(entries, "at")
    if low is None:
        return journal_of(entries, queues)
    kept = there.where(F.col("at") >= F.timestamp_micros(F.lit(low - _JOURNAL_US)))
    units = F.broadcast(entries.select(*_UNIT).distinct())
    seen = kept.join(units, on=_UNIT, how="left_semi").groupBy(*_UNIT).agg(F.max("seq").alias("last_seq"))
    known = without_repeats(entries).join(seen, on=_UNIT, how="left")
    news = known.where(F.col("seq") > F.coalesce("last_seq", F.lit(0))).drop("last_seq")
    return journal_of(news, queues)


def meter_rows(records: DataFrame, queues: DataFrame, there: DataFrame) -> DataFrame:
    """METERS of the records that are not in the table yet."""
    return _unseen(meters_of(records), there, ["minute", "worker", "incarnation"], "minute")


def request_rows(records: DataFrame, queues: DataFrame, there: DataFrame) -> DataFrame:
    """REQUESTS of the records that are not in the table yet."""
    return _unseen(requests_of(records), there, ["worker", "number"], "minute")


def stale_rows(records: DataFrame, queues: DataFrame, there: DataFrame) -> DataFrame:
    """STALE_HANDLES of the records that are not in the table yet."""
    return _unseen(stale_handles_of(records), there, ["minute", "worker", "incarnation"], "minute")


def audit_rows(records: DataFrame, queues: DataFrame, there: DataFrame) -> DataFrame:
    """AUDIT of the records that are not in the table yet."""
    return _unseen(audit_of(records), there, ["worker", "number"], "at")


def control_rows(records: DataFrame, queues: DataFrame, there: DataFrame) -> DataFrame:
    """CONTROL: each record about a queue. The topic's other records hold keys and users, and are
    not copied.
    """
    deleted = F.col("value").isNull()
    name = F.substring(F.col("key").cast("string"), len(QUEUE_KEY) + 1, 1000)
    places = ("timestamp", "partition", "offset")
    told = queue_rows(records.where(~deleted), *places).withColumn("deleted", F.lit(False))
    gone = records.where(deleted).select(*places, name.alias("queue")).withColumn("deleted", F.lit(True))
    rows = told.unionByName(gone, allowMissingColumns=True)
    named = {"timestamp": "logged_at", "partition": "log_partition", "offset": "log_offset"}
    return rows.withColumnsRenamed(named).select(*CONTROL.names)


def _unseen(rows: DataFrame, there: DataFrame, key: list[str], time: str) -> DataFrame:
    """The rows whose key no row of the table has. Only its rows of the same times are looked at."""
    low, high = _bounds(rows, time)
    if low is None:
        return rows
    near = there.where(F.col(time).between(F.timestamp_micros(F.lit(low)), F.timestamp_micros(F.lit(high))))
    return rows.join(near.select(*key), on=key, how="left_anti").select(*rows.columns)


def _bounds(rows: DataFrame, time: str) -> tuple[int | None, int | None]:
    """The least and the greatest time, epoch microseconds; None = there are no rows."""
    bounds = rows.agg(F.unix_micros(F.min(time)), F.unix_micros(F.max(time))).collect()[0]
    return bounds[0], bounds[1]


FEEDS = (
    Feed("control", "queue", control_topic, control_rows, QUEUE_KEY),
    Feed("journal", "journal", journal_topic, journal_rows),
    Feed("meters", "meter", meter_topic, meter_rows),
    Feed("requests", "requests", requests_topic, request_rows),
    Feed("stale_handles", "meter", meter_topic, stale_rows),
    Feed("audit", "audit", audit_topic, audit_rows),
)
