"""What happened in each minute as a table. Each round counts the minutes anew in which something
has come, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.frames.session import once
from spark.lake.derived.made import News
from spark.lake.tables.table import Table
from spark.reports.counts import KEY, added, events, sends
from spark.rules.repeats import since_or_repeated, without_repeated_sends

# What says how a message counts.
_SENT = (
    "queue", "partition", "offset", "sent_at", "status", "body_bytes", "sender", "batch", "origin", "group", "dedup_id",
    "dedup_scope",
)  # fmt: skip


class Minutes:
    """The table of COUNTS of one warehouse, as `Derived`: of the messages and events that were
    copied. A row is never taken away: what is copied stays.
    """

    name = "queue_minutes"

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._table = tables[self.name]
        self._journal = tables["journal"]
        self._messages = tables["messages"]

    def update(self, news: News) -> bool:
        """As `Derived`."""
        if news.none:
            return False
        seen = self._table.snapshot()
        come = news.messages.select(_minute("sent_at")).unionByName(news.journal.select(_minute("at")))
        with once(come.distinct()) as minutes:
            since_us = minutes.agg(F.unix_micros(F.min("minute"))).collect()[0][0]
            if since_us is not None:
                rows = self._counted(minutes, since_us).withColumn("gone", F.lit(False))
                self._table.merge(rows, KEY, since_us, seen)
        return since_us is not None

    def _counted(self, minutes: DataFrame, since_us: int) -> DataFrame:
        """COUNTS of these minutes, of which the first is `since_us` (epoch microseconds)."""
        since, some = F.timestamp_micros(F.lit(since_us)), F.broadcast(minutes)
        near = since_or_repeated(self._messages.rows().select(*_SENT), since)
        sent = without_repeated_sends(near).where(F.col("sent_at") >= since)
        told = self._journal.rows().where(F.col("at") >= since)
        return added(sends(_of_minutes(sent, "sent_at", some)).unionByName(events(_of_minutes(told, "at", some))))


def _minute(time: str) -> Column:
    return F.date_trunc("minute", time).alias("minute")


def _of_minutes(rows: DataFrame, time: str, minutes: DataFrame) -> DataFrame:
    return rows.withColumn("minute", _minute(time)).join(minutes, on="minute", how="left_semi").drop("minute")
