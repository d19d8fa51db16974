"""Counts that add up: what happened per minute. Batch reports and the stream are sums of the same
rows, so they agree.

Every function is a pure DataFrame -> DataFrame, also on one micro-batch of a stream.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.vocabulary import NOTES, UNDOES
from spark.frames.columns import COUNTS
from spark.rules.commits import is_commit
from spark.rules.transitions import given_back

KEY = ("minute", "queue", "tag", "principal", "measure")


def sends(messages: DataFrame) -> DataFrame:
    """COUNTS of records that were appended: `sent` by clients, `arrived` by a move. Reads
    MESSAGES; only `shown` ones count.

    One request per record, and one per atomic batch. The minute is that of the append. A FIFO send
    that repeats another was a request, and no message.
    """
    again = (F.col("status") == "repeated") & F.col("origin").isNull()
    shown = messages.where((F.col("status") == "shown") | again).withColumn("again", again)
    moved = F.col("origin").isNotNull() & ~is_commit()
    leads = F.coalesce(F.col("batch.index") == 0, F.lit(True))
    rows = shown.select(
        F.date_trunc("minute", "sent_at").alias("minute"),
        "queue",
        F.lit("").alias("tag"),
        F.coalesce("sender", F.lit("")).alias("principal"),
        F.when(moved, "arrived").otherwise("sent").alias("measure"),
        leads.cast("int").alias("requests"),
        (~F.col("again")).cast("int").alias("messages"),
        F.when(F.col("again"), 0).otherwise(F.coalesce("body_bytes", F.lit(0))).alias("bytes"),
    )
    return added(rows)


def events(journal: DataFrame) -> DataFrame:
    """COUNTS of what the journal says, one measure per kind; the minute is that of `at`. Reads
    JOURNAL.

    A lease that its holder has set to end at once is `released`. `purged` counts calls only: its
    offsets are bounds. What was given back undelivered is taken off what was `leased`. Bookkeeping
    is left out.
    """
    told = journal.where(~F.col("kind").isin(*map(str, NOTES)))
    undone = F.col("kind").isin(*map(str, UNDOES))
    measure = F.when(undone, "leased").when(given_back(), "released").otherwise(F.col("kind"))
    rows = told.select(
        F.date_trunc("minute", "at").alias("minute"),
        "queue",
        "tag",
        F.lit("").alias("principal"),
        measure.alias("measure"),
        (F.col("leads") & ~undone).cast("int").alias("requests"),
        F.when(undone, -1).otherwise((F.col("kind") != "purged").cast("int")).alias("messages"),
        F.lit(0).alias("bytes"),
    )
    return added(rows)


def added(counts: DataFrame) -> DataFrame:
    """COUNTS with one row per key."""
    summed = [F.sum(name).cast("long").alias(name) for name in ("requests", "messages", "bytes")]
    return counts.groupBy(*KEY).agg(*summed).select(*COUNTS.names)


def _of(name: str, *measures: str) -> Column:
    return F.coalesce(F.sum(F.when(F.col("measure").isin(*measures), F.col(name))), F.lit(0))


# EMQ's words for the requests that alerts and statistics count (reference/emq.md 1.8), as far as a
# log tells them.
_STATISTICS = {
    "SEND_REQUEST": ("requests", ("sent",)),
    "RECEIVE_REQUEST": ("requests", ("leased",)),
    "CHANGE_REQUEST": ("requests", ("extended", "released")),
    "DELETE_REQUEST": ("requests", ("acked",)),
    "sentMessageNumber": ("messages", ("sent",)),
    "sentBytes": ("bytes", ("sent",)),
    "arrivedMessageNumber": ("messages", ("arrived",)),
    "receivedMessageNumber": ("messages", ("leased",)),
    "deletedMessageNumber": ("messages", ("acked",)),
    "deadMessageNumber": ("messages", ("dead",)),
    "redrivenMessageNumber": ("messages", ("moved",)),
    "expiredMessageNumber": ("messages", ("expired",)),
    "directDeletedMessageNumber": ("messages", ("deleted",)),
    "skippedMessageNumber": ("messages", ("skipped",)),
}


def daily_of(counts: DataFrame) -> DataFrame:
    """Daily statistics: one row per UTC day, queueName and tagName ('' = of the queue: sends), with
    EMQ's names.

    Requests are about right (`page.use.REQUESTS`): calls that came together are one, and one
    that touched several partitions is several.
    """
    counted = [_of(column, *measures).alias(name) for name, (column, measures) in _STATISTICS.items()]
    dated = counts.withColumn("date", F.to_date("minute"))
    grouped = dated.groupBy("date", F.col("queue").alias("queueName"), F.col("tag").alias("tagName"))
    return grouped.agg(*counted)
