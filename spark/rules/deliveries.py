"""Deliveries and dead letters out of messages and journal. Every function is a pure DataFrame ->
DataFrame.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.vocabulary import DEATHS, ENDS, LEASES, PROLONGS, UNDOES
from spark.frames.columns import DEAD_LETTERS, DELIVERIES
from spark.frames.decode import time_of
from spark.rules.floors import with_forgotten
from spark.rules.transitions import given_back, purge_after, purges, settlements

_KEY = ("incarnation", "partition", "tag_id", "offset")
# What the holder of the lease did, also late; any other end of a delivery finds a lease whose time
# may have been over before.
_BY_HOLDER = ("acked", "released", "killed")


def leases(journal: DataFrame, as_of: Column | None = None) -> DataFrame:
    """One row per delivery, from the journal alone: DELIVERIES without what only the message tells
    (sent, first visible, wait).

    Adds `before_at`, when the delivery before it made the message receivable (null = first
    delivery). Reads JOURNAL. At `as_of` a lease whose time is over has lapsed, though nobody has
    noticed; None = not before somebody does. Kinds that are in none of the tables of
    `schemas.vocabulary` change no delivery.
    """
    begins, prolongs, undoes = ([str(kind) for kind in kinds] for kinds in (LEASES, PROLONGS, UNDOES))
    ends = [*map(str, ENDS), *undoes]
    told = journal.where(F.col("kind").isin(*begins, *prolongs, *ends))
    order = Window.partitionBy(*_KEY).orderBy("seq")
    through = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    first, moved = F.col("kind").isin(*begins), F.col("kind").isin(*prolongs)
    numbered = told.withColumn("nonce", F.last(F.when(first, F.col("seq")), ignorenulls=True).over(through))
    time = F.struct("seq", "at", "until")
    # In tables a tag that was deleted since has its number for a name.
    rows = numbered.where(F.col("nonce").isNotNull()).groupBy("queue", *_KEY, "nonce").agg(
        F.max(F.when(first, F.col("tag"))).alias("tag"),
        F.max(F.when(first, F.col("at"))).alias("received_at"),
        F.max(F.when(first | (moved & ~given_back()), time)).alias("time"),
        F.max(F.when(given_back(), time)).alias("back"),
        F.count(F.when(moved & ~given_back(), 1)).cast("int").alias("extensions"),
        F.min(F.when(F.col("kind").isin(*ends), F.struct("seq", "at", "kind", "reason", "until"))).alias("end"),
    )  # fmt: skip
    delivered = rows.where(~F.coalesce(F.col("end.kind").isin(*undoes), F.lit(False)))
    return _counted(_ended(_over(delivered), journal, as_of))


def _over(rows: DataFrame) -> DataFrame:
    """Says when each lease was over by itself, and how: its holder gave it back at once, or its
    time came.
    """
    back = F.when(F.col("back.seq") > F.col("time.seq"), F.col("back"))
    timed = rows.withColumn("deadline_at", F.col("time.until")).withColumn("back", back)
    over = timed.withColumn("over_at", F.coalesce("back.at", "deadline_at"))
    return over.withColumn("over_how", F.when(F.col("back").isNotNull(), "released").otherwise("lapsed"))


def _ended(rows: DataFrame, journal: DataFrame, as_of: Column | None) -> DataFrame:
    """Says how and when each delivery ended: by its holder, by its time, by a purge, or by what
    else settled the message.
    """
    joined = rows.join(F.broadcast(purges(journal)), on=["incarnation", "partition", "tag_id"], how="left")
    hit = joined.withColumn("purge", F.when(F.col("end").isNull(), purge_after(F.col("nonce"))))
    kind, killed = F.col("end.kind"), F.col("end.reason") == "killed"
    word = F.when((kind == "dying") & killed | (kind == "dead"), "killed").when(
        ~kind.isin("dying", "lapsed", "claimed", "parked", "unparked"), kind
    )
    told = hit.withColumn("word", F.coalesce(word, F.when(F.col("purge").isNotNull(), "purged")))
    at = F.coalesce("end.at", "purge.at")
    # A lapse is noticed late, or not yet: the lease was over at its deadline.
    passed = F.col("back").isNotNull() if as_of is None else F.col("over_at") <= as_of
    noticed = F.when(F.col("word").isNotNull(), F.col("over_at") <= at).otherwise(F.col("end").isNotNull() | passed)
    by_time = ~F.coalesce(F.col("word").isin(*_BY_HOLDER), F.lit(False)) & F.coalesce(noticed, F.lit(False))
    ended = told.withColumn("how", F.when(by_time, F.col("over_how")).otherwise(F.coalesce("word", F.lit("open"))))
    settled_at = F.when(by_time, F.least("over_at", at)).otherwise(at)
    again_at = F.when(by_time, F.col("back.until")).when(F.col("word") == "released", F.col("end.until"))
    return ended.withColumn("settled_at", settled_at).withColumn("again_at", again_at)


def _counted(rows: DataFrame) -> DataFrame:
    """Adds receive_count and before_at."""
    order = Window.partitionBy(*_KEY).orderBy("nonce")
    before = F.lag(F.coalesce("again_at", "settled_at")).over(order)
    counted = rows.withColumn("receive_count", F.row_number().over(order)).withColumn("before_at", before)
    return counted.withColumn("lease_ms", F.unix_millis("settled_at") - F.unix_millis("received_at"))


def deliveries_of(journal: DataFrame, messages: DataFrame, as_of: Column | None = None) -> DataFrame:
    """DELIVERIES at `as_of` (see `leases`): one row per delivery. `messages` needs queue,
    incarnation, partition, offset, sent_at, due_at, body_bytes.

    A delivery whose message is not in `messages` (retention, another range) has null sent_at; its
    first wait is null.
    """
    sent = messages.select(
        "queue",
        "incarnation",
        "partition",
        "offset",
        "sent_at",
        F.col("due_at").alias("first_visible_at"),
        "body_bytes",
    )
    joined = leases(journal, as_of).join(sent, on=["queue", "incarnation", "partition", "offset"], how="left")
    return with_waits(joined).select(*DELIVERIES.names)


def with_waits(rows: DataFrame) -> DataFrame:
    """Adds visible_at and wait_ms to leases that know first_visible_at."""
    seen = rows.withColumn("visible_at", F.coalesce("before_at", "first_visible_at"))
    wait = F.greatest(F.lit(0), F.unix_millis("received_at") - F.unix_millis("visible_at"))
    return seen.withColumn("wait_ms", F.when(F.col("visible_at").isNotNull(), wait))


def dead_letters_of(messages: DataFrame, journal: DataFrame, runs: DataFrame, queues: DataFrame) -> DataFrame:
    """DEAD_LETTERS: one row per first copy of a dead letter. Reads MESSAGES, JOURNAL, RUNS (see
    `floors.py`), QUEUES.

    Whether it is at rest is what the default tag of its queue says; a second copy of one move is
    what the journal has skipped.
    """
    default = journal.where(F.col("tag_id") == 0)
    settled = settlements(default).drop("tag_id")
    joined = died(messages).join(settled, on=["incarnation", "partition", "offset"], how="left")
    purged = joined.join(F.broadcast(purges(default).drop("tag_id")), on=["incarnation", "partition"], how="left")
    hit = purged.withColumn("purge", F.when(F.col("settled_how").isNull(), purge_after(F.lit(0))))
    how = F.coalesce("settled_how", F.when(F.col("purge").isNotNull(), "purged"))
    told = hit.withColumn("settled_how", how).withColumn("settled_at", F.coalesce("settled_at", "purge.at"))
    return _letters(with_forgotten(told.withColumn("tag_id", F.lit(0)), default, runs), queues)


def dead_letters_ended(messages: DataFrame, lifecycles: DataFrame, queues: DataFrame) -> DataFrame:
    """The same, of MESSAGES and LIFECYCLES, which also tell of the letters of queues that are
    gone.
    """
    key = ["incarnation", "partition", "offset"]
    ends = lifecycles.where(F.col("tag_id") == 0).select(*key, "settled_how", "settled_at")
    return _letters(died(messages).join(ends, on=key, how="left"), queues)


def died(messages: DataFrame) -> DataFrame:
    """The MESSAGES that are dead letters."""
    return messages.where((F.col("status") == "shown") & F.col("origin.reason").isin(*map(str, DEATHS)))


def _letters(ended: DataFrame, queues: DataFrame) -> DataFrame:
    """DEAD_LETTERS of MESSAGES that died, with their settled_how and settled_at."""
    kept = ended.where(F.coalesce("settled_how", F.lit("")) != "skipped")
    names = F.broadcast(
        queues.select(F.col("incarnation").alias("source_incarnation"), F.col("queue").alias("source_queue"))
    )
    dead_letters = kept.withColumn("source_incarnation", incarnation_of(F.col("origin.from_id")))
    return dead_letters.join(names, on="source_incarnation", how="left").select(*_dead_letter_columns())


def _dead_letter_columns() -> list[Column]:
    made = {
        "address": F.concat_ws("/", "incarnation", "partition", "offset"),
        "dead_at": F.col("sent_at"),
        "reason": F.col("origin.reason"),
        "note": F.col("origin.note"),
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
    }
    return [made.get(name, F.col(name)).alias(name) for name in DEAD_LETTERS.names]


# A message id is an address (schemas/identity.py): 12 hex digits of the incarnation, version 8, 3
# of the partition, then 2 bits variant, 40 bits offset, 22 bits digest.
def incarnation_of(id: Column) -> Column:
    """The incarnation that a message id names."""
    return F.concat(F.substring(id, 1, 8), F.substring(id, 10, 4))


def _partition_of(id: Column) -> Column:
    return F.conv(F.substring(id, 16, 3), 16, 10).cast("int")


def _offset_of(id: Column) -> Column:
    low = F.conv(F.concat(F.substring(id, 20, 4), F.substring(id, 25, 8)), 16, 10).cast("long")
    # The first 48 of 64 bits: 2 bits variant, 40 bits offset, 6 bits of the digest.
    return F.shiftright(low, 6).bitwiseAND(F.lit((1 << 40) - 1))
