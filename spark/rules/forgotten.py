"""What was sent and is in Kafka no more: a purge and a delete take messages away, not their use.

The workers have counted what they answered (METERS), so what the log lacks of it was there. Nobody
has counted senders and bytes of it. Every function is a pure DataFrame -> DataFrame.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.vocabulary import NATIVE_SENDER, OPERATIONS, Reason, Subject
from spark.frames.columns import COUNTS

_LIFE = "incarnation"
_NUMBERS = ("requests", "messages")


def forgotten_sends(
    meters: DataFrame, messages: DataFrame, journal: DataFrame, queues: DataFrame, now: Column
) -> DataFrame:
    """COUNTS of sends whose messages are gone: by a purge, with their queue, or by its retention.

    Reads METERS and MESSAGES of one time, JOURNAL of all time that messages have, QUEUES as of now.
    The minute is that of the answer. A worker that was killed has not counted its last minute; a
    native producer's messages, and those that a transaction commits, nobody has.
    """
    sent = meters.where(F.col("operation").isin(*map(str, OPERATIONS[Subject.SEND_REQUEST])))
    counted = sent.select(_LIFE, F.date_trunc("minute", "minute").alias("minute"), "queue", *_NUMBERS)
    known = counted.unionByName(_in_log(messages)).unionByName(_repeated(journal, messages, counted))
    minutes = known.groupBy(_LIFE, "minute").agg(
        F.max("queue").alias("queue"), *(F.sum(name).alias(name) for name in _NUMBERS)
    )
    late = minutes.join(_begins(journal, queues, now), on=_LIFE, how="left")
    gone = late.where(F.col("begins").isNull() | (F.col("minute") <= F.col("begins")))
    lost = _settled(gone.withColumn("life", F.col(_LIFE)))
    named = lost.where(F.col("queue").isNotNull() & ((F.col("messages") > 0) | (F.col("requests") > 0)))
    text = {name: F.lit("").alias(name) for name in ("tag", "principal")}
    rows = named.select(
        "minute", "queue", *text.values(), F.lit("sent").alias("measure"), *_NUMBERS, F.lit(0).alias("bytes")
    )
    return rows.select(*COUNTS.names)


def _in_log(messages: DataFrame) -> DataFrame:
    """What the log still has of what workers have counted, below 0."""
    answered = messages.where(
        F.col("status").isin("shown", "repeated") & F.col("origin").isNull() & (F.col("sender") != NATIVE_SENDER)
    )
    leads = F.coalesce(F.col("batch.index") == 0, F.lit(True)).cast("long")
    return answered.select(
        _LIFE, F.date_trunc("minute", "sent_at").alias("minute"), F.lit(None).cast("string").alias("queue"),
        (-leads).alias("requests"), F.lit(-1).cast("long").alias("messages"),
    )  # fmt: skip


def _repeated(journal: DataFrame, messages: DataFrame, counted: DataFrame) -> DataFrame:
    """Repeats of FIFO sends that the log has no more, as the journal says it, below 0."""
    skipped = journal.where((F.col("kind") == "skipped") & (F.col("reason") == Reason.DUPLICATE.value))
    place = [_LIFE, "partition", "offset"]
    gone = skipped.dropDuplicates(place).join(messages.select(*place), on=place, how="left_anti")
    span = counted.groupBy(_LIFE).agg(F.min("minute").alias("first"), F.max("minute").alias("last"))
    here = gone.withColumn("minute", F.date_trunc("minute", "at")).join(F.broadcast(span), on=_LIFE)
    inside = here.where(F.col("minute").between(F.col("first"), F.col("last")))
    return inside.select(
        _LIFE, "minute", F.lit(None).cast("string").alias("queue"), F.lit(0).cast("long").alias("requests"),
        F.lit(-1).cast("long").alias("messages"),
    )  # fmt: skip


def _begins(journal: DataFrame, queues: DataFrame, now: Column) -> DataFrame:
    """From when on the log of each life that there is has all: after its last purge, and as far
    back as it keeps messages.
    """
    purged = journal.where(F.col("kind") == "purged").groupBy(_LIFE).agg(F.max("at").alias("purged_at"))
    kept = F.timestamp_millis(F.unix_millis(now) - F.col("retention_ms"))
    lives = queues.select(_LIFE, kept.alias("kept_from")).join(purged, on=_LIFE, how="left")
    return F.broadcast(lives.select(_LIFE, F.greatest("purged_at", "kept_from").alias("begins")))


def _settled(minutes: DataFrame) -> DataFrame:
    """The rows with what of each number is gone for good, at least 0.

    An answer may be counted in the minute after its append, or before by a clock that is ahead: so
    it is the sum up to a minute that counts, and what a later minute makes up for is not gone.
    """
    order = Window.partitionBy("life").orderBy("minute")
    later = order.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    for name in _NUMBERS:
        minutes = minutes.withColumn(f"_{name}", F.sum(name).over(order))
    for name in _NUMBERS:
        minutes = minutes.withColumn(f"_{name}", F.greatest(F.lit(0), F.min(f"_{name}").over(later)))
    for name in _NUMBERS:
        before = F.coalesce(F.lag(f"_{name}").over(order), F.lit(0))
        minutes = minutes.withColumn(name, F.col(f"_{name}") - before)
    return minutes
