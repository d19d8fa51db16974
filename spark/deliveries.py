"""Deliveries and dead letters out of messages and journal. Every function is a pure DataFrame -> DataFrame.

Neighbours: `tables.py` calls them. Must not know Kafka.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.columns import DEAD_LETTERS, DELIVERIES
from spark.decode import time_of
from spark.transitions import purge_after, purges, settlements

_KEY = ("incarnation", "partition", "tag_id", "offset")
_DEATHS = ("exhausted", "killed")
# What ends a delivery; `extended` moves its deadline, `dying` of an exhausted message only notices that it has lapsed.
ENDS = ("lapsed", "released", "acked", "dying", "dead", "expired", "deleted", "moved", "claimed")


def leases(journal: DataFrame) -> DataFrame:
    """One row per delivery, from the journal alone: DELIVERIES without what only the message tells (sent, first visible, wait).

    Adds `before_at`, when the delivery before it made the message receivable (null = first delivery). Reads JOURNAL.
    """
    told = journal.where(F.col("kind").isin("leased", "extended", *ENDS))
    order = Window.partitionBy(*_KEY).orderBy("seq")
    through = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    lent = F.when(F.col("kind") == "leased", F.col("seq"))
    numbered = told.withColumn("nonce", F.last(lent, ignorenulls=True).over(through)).where(F.col("nonce").isNotNull())
    first = F.col("kind") == "leased"
    extended = F.col("kind") == "extended"
    end = F.when(F.col("kind").isin(*ENDS), F.struct("seq", "at", "kind", "reason", "until"))
    rows = numbered.groupBy("queue", "tag", *_KEY, "nonce").agg(
        F.max(F.when(first, F.col("at"))).alias("received_at"),
        F.coalesce(F.max_by("until", F.when(extended, F.col("seq"))), F.max(F.when(first, F.col("until")))).alias("deadline_at"),
        F.count(F.when(extended, 1)).cast("int").alias("extensions"),
        F.min(end).alias("end"),
    )
    return _counted(_purged(_ended(rows), journal))


def _ended(rows: DataFrame) -> DataFrame:
    """Says how and when each delivery ended by itself."""
    kind, reason = F.col("end.kind"), F.col("end.reason")
    how = (
        F.when((kind == "dying") & (reason == "killed"), "killed")
        .when(kind.isin("dying", "lapsed", "claimed"), "lapsed")
        .when(kind == "dead", "killed")
        .otherwise(kind)
    )
    ended = rows.withColumn("how", how)
    # A lapse is noticed late: the lease was over at its deadline.
    at = F.when(F.col("how") == "lapsed", F.least("deadline_at", "end.at")).otherwise(F.col("end.at"))
    again = F.when(F.col("how") == "released", F.col("end.until"))
    return ended.withColumn("settled_at", at).withColumn("again_at", again)


def _purged(rows: DataFrame, journal: DataFrame) -> DataFrame:
    """Ends open deliveries that a purge has ended."""
    joined = rows.join(F.broadcast(purges(journal)), on=["incarnation", "partition", "tag_id"], how="left")
    hit = joined.withColumn("purge", F.when(F.col("how").isNull(), purge_after(F.col("nonce"))))
    # A lease that was over before the purge has lapsed, though nobody noticed.
    ended = F.when(F.col("purge.at") >= F.col("deadline_at"), "lapsed").when(F.col("purge").isNotNull(), "purged")
    at = F.coalesce("settled_at", F.least("purge.at", F.when(F.col("purge").isNotNull(), F.col("deadline_at"))))
    return hit.withColumn("how", F.coalesce("how", ended, F.lit("open"))).withColumn("settled_at", at)


def _counted(rows: DataFrame) -> DataFrame:
    """Adds receive_count and before_at."""
    order = Window.partitionBy(*_KEY).orderBy("nonce")
    before = F.lag(F.coalesce("again_at", "settled_at")).over(order)
    counted = rows.withColumn("receive_count", F.row_number().over(order)).withColumn("before_at", before)
    return counted.withColumn("lease_ms", F.unix_millis("settled_at") - F.unix_millis("received_at"))


def deliveries_of(journal: DataFrame, messages: DataFrame) -> DataFrame:
    """DELIVERIES: one row per delivery. `messages` needs queue, incarnation, partition, offset, sent_at, due_at, body_bytes.

    A delivery whose message is not in `messages` (retention, another range) has null sent_at; its first wait is null.
    """
    sent = messages.select(
        "queue", "incarnation", "partition", "offset", "sent_at", F.col("due_at").alias("first_visible_at"), "body_bytes"
    )
    joined = leases(journal).join(sent, on=["queue", "incarnation", "partition", "offset"], how="left")
    return with_waits(joined).select(*DELIVERIES.names)


def with_waits(rows: DataFrame) -> DataFrame:
    """Adds visible_at and wait_ms to leases that know first_visible_at."""
    seen = rows.withColumn("visible_at", F.coalesce("before_at", "first_visible_at"))
    wait = F.greatest(F.lit(0), F.unix_millis("received_at") - F.unix_millis("visible_at"))
    return seen.withColumn("wait_ms", F.when(F.col("visible_at").isNotNull(), wait))


def dead_letters_of(messages: DataFrame, journal: DataFrame, queues: DataFrame) -> DataFrame:
    """DEAD_LETTERS: one row per first copy of a dead letter. Reads MESSAGES, JOURNAL, QUEUES.

    Whether it is at rest is what the default tag of its queue says; a second copy of one move is what the journal has skipped.
    """
    died = messages.where((F.col("status") == "shown") & F.col("origin.reason").isin(*_DEATHS))
    default = journal.where(F.col("tag_id") == 0)
    settled = settlements(default).drop("tag_id")
    joined = died.join(settled, on=["incarnation", "partition", "offset"], how="left")
    purged = joined.join(F.broadcast(purges(default).drop("tag_id")), on=["incarnation", "partition"], how="left")
    hit = purged.withColumn("purge", F.when(F.col("settled_how").isNull(), purge_after(F.lit(0))))
    kept = hit.where(F.coalesce("settled_how", F.lit("")) != "skipped")
    names = F.broadcast(queues.select(F.col("incarnation").alias("source_incarnation"), F.col("queue").alias("source_queue")))
    letters = kept.withColumn("source_incarnation", _incarnation_of(F.col("origin.from_id")))
    return letters.join(names, on="source_incarnation", how="left").select(*_letter_columns())


def _letter_columns() -> list[Column]:
    made = {
        "address": F.concat_ws("/", "incarnation", "partition", "offset"),
        "dead_at": F.col("sent_at"),
        "reason": F.col("origin.reason"),
        "source_tag": F.col("origin.from_tag"),
        "source_partition": _partition_of(F.col("origin.from_id")),
        "source_offset": _offset_of(F.col("origin.from_id")),
        "original_id": F.col("origin.original_id"),
        "original_queue": F.col("origin.original_queue"),
        "original_tag": F.col("origin.original_tag"),
        "original_sent_at": time_of(F.col("origin.original_sent_at_ms")),
        "first_received_at": time_of(F.col("origin.first_received_at_ms")),
        "receive_count": F.col("origin.receive_count"),
        "lived_ms": F.unix_millis("sent_at") - F.col("origin.original_sent_at_ms"),
        "settled_how": F.coalesce("settled_how", F.when(F.col("purge").isNotNull(), "purged")),
        "settled_at": F.coalesce("settled_at", "purge.at"),
    }
    return [made.get(name, F.col(name)).alias(name) for name in DEAD_LETTERS.names]


# A message id is an address (schemas/identity.py): 12 hex digits of the incarnation, version 8, 3 of the partition, then
# 2 bits variant, 40 bits offset, 22 bits digest.
def _incarnation_of(id: Column) -> Column:
    return F.concat(F.substring(id, 1, 8), F.substring(id, 10, 4))


def _partition_of(id: Column) -> Column:
    return F.conv(F.substring(id, 16, 3), 16, 10).cast("int")


def _offset_of(id: Column) -> Column:
    low = F.conv(F.concat(F.substring(id, 20, 4), F.substring(id, 25, 8)), 16, 10).cast("long")
    # The first 48 of 64 bits: 2 bits variant, 40 bits offset, 6 bits of the digest.
    return F.shiftright(low, 6).bitwiseAND(F.lit((1 << 40) - 1))
