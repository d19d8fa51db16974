"""How many messages were where, over time, and how far behind each tag is. Every function is a pure
DataFrame -> DataFrame.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

_STEPS = ("backlog", "delayed", "in_flight")


def _step(at: Column, **steps: int) -> Column:
    counted = [F.lit(steps.get(name, 0)).alias(name) for name in _STEPS]
    return F.when(at.isNotNull(), F.struct(at.alias("at"), *counted))


def _steps_of_lifecycles() -> Column:
    delayed = F.col("due_at") > F.col("sent_at")
    leaves = F.least("due_at", "settled_at")
    return F.array_compact(
        F.array(
            _step(F.col("sent_at"), backlog=1),
            _step(F.col("settled_at"), backlog=-1),
            F.when(delayed, _step(F.col("sent_at"), delayed=1)),
            F.when(delayed, _step(leaves, delayed=-1)),
        )
    )


def _steps_of_deliveries() -> Column:
    # An open lease is over at its deadline, whether or not anybody has noticed.
    ends = F.coalesce("settled_at", "deadline_at")
    delayed = F.col("again_at") > F.col("settled_at")
    return F.array_compact(
        F.array(
            _step(F.col("received_at"), in_flight=1),
            _step(ends, in_flight=-1),
            F.when(delayed, _step(F.col("settled_at"), delayed=1)),
            F.when(delayed, _step(F.col("again_at"), delayed=-1)),
        )
    )


def backlog(lifecycles: DataFrame, deliveries: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """One row per queue, tag and minute in which something changed: backlog, in_flight, delayed,
    ready at the minute's end.

    Reads LIFECYCLES and DELIVERIES from the oldest message on: what was before `begin` is one row
    at `begin`. backlog counts every message that is not settled; ready = backlog - in_flight -
    delayed. A message that was skipped never was in it.
    """
    seen = lifecycles.where(F.coalesce("settled_how", F.lit("")) != "skipped")
    leased = deliveries.where(F.col("sent_at").isNotNull())
    steps = seen.select("queue", "tag", F.explode(_steps_of_lifecycles()).alias("s"))
    steps = steps.unionAll(leased.select("queue", "tag", F.explode(_steps_of_deliveries()).alias("s")))
    inside = steps.select("queue", "tag", "s.*").where(F.col("at") < F.lit(end))
    minute = F.greatest(F.date_trunc("minute", "at"), F.date_trunc("minute", F.lit(begin)))
    summed = inside.groupBy("queue", "tag", minute.alias("minute")).agg(*(F.sum(name).alias(name) for name in _STEPS))
    order = (
        Window.partitionBy("queue", "tag").orderBy("minute").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    levels = summed.select("queue", "tag", "minute", *(F.sum(name).over(order).alias(name) for name in _STEPS))
    return levels.withColumn("ready", F.col("backlog") - F.col("in_flight") - F.col("delayed"))


def tag_lag(lifecycles: DataFrame, end: datetime) -> DataFrame:
    """One row per queue, tag and partition that has messages: how far the tag is behind at `end`.
    Reads LIFECYCLES.

    Columns: messages and open (of those that were not over before the report begins), floor (first
    offset that is not settled, or one after the last), lag (offsets from the floor to the end of
    the log), oldest_sent_at and oldest_ms (of the open ones; null = none is open).
    """
    known = lifecycles.where(F.col("sent_at") < F.lit(end))
    is_open = F.col("settled_at").isNull() | (F.col("settled_at") >= F.lit(end))
    rows = known.withColumn("open", is_open).groupBy("queue", "tag", "partition")
    found = rows.agg(
        F.count("*").alias("messages"),
        F.count_if("open").alias("open"),
        F.min(F.when(F.col("open"), F.col("offset"))).alias("first_open"),
        (F.max("offset") + 1).alias("end_offset"),
        F.min(F.when(F.col("open"), F.col("sent_at"))).alias("oldest_sent_at"),
    )
    floor = F.coalesce("first_open", "end_offset")
    lagged = found.withColumn("floor", floor).withColumn("lag", F.col("end_offset") - floor)
    age = F.unix_millis(F.lit(end)) - F.unix_millis("oldest_sent_at")
    return lagged.withColumn("oldest_ms", age).drop("first_open")
