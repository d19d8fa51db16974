"""FIFO sends that repeat a message: what has the same deduplication id, and was appended at most
five minutes after the first of it, is dropped by the queue (state/lua/include/dedup.lua).

The log alone decides, as for atomic batches. Every function is a pure DataFrame -> DataFrame.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.vocabulary import DEDUP_WINDOW_MS

# What a repeat is judged by; `dedup` is the id within its scope.
SEND = ("queue", "partition", "dedup", "offset", "sent_at")
_ID = ("queue", "partition", "dedup")
# An id may be sent again every few minutes, and which of its sends repeat hangs on all before: so
# much of that is looked at.
_BEFORE_MS = 24 * 3_600_000


def dedup() -> Column:
    """The deduplication id of a `shown` message within its scope; null = it repeats nothing."""
    group = F.when(F.col("dedup_scope") == "group", F.coalesce("group", F.lit(""))).otherwise("")
    scoped = F.concat(group, F.lit("/"), "dedup_id")
    counts = (F.col("status") == "shown") & F.col("dedup_scope").isNotNull() & F.col("origin").isNull()
    return F.when(counts, scoped)


def since_or_repeated(messages: DataFrame, since: Column) -> DataFrame:
    """The messages that were sent `since` then, and those of the day before that they may repeat.
    Reads sent_at, dedup_id, dedup_scope.
    """
    before = F.timestamp_millis(F.unix_millis(since) - _BEFORE_MS)
    may = F.col("dedup_id").isNotNull() & F.col("dedup_scope").isNotNull() & (F.col("sent_at") >= before)
    return messages.where((F.col("sent_at") >= since) | may)


def repeats(sends: DataFrame) -> DataFrame:
    """Queue, partition and offset of those sends that repeat another. Reads columns SEND.

    All sends of one id go through one task: some dozen bytes each.
    """
    each = F.struct("offset", F.unix_millis("sent_at").alias("ms"))
    in_order = F.array_sort(F.collect_list(each)).alias("sends")
    nobody = F.struct(F.lit(None).cast("long").alias("ms"), F.array().cast("array<bigint>").alias("firsts"))

    def take(known: Column, send: Column) -> Column:
        again = F.coalesce(send["ms"] - known["ms"] <= DEDUP_WINDOW_MS, F.lit(False))
        first = F.struct(send["ms"].alias("ms"), F.concat(known["firsts"], F.array(send["offset"])).alias("firsts"))
        return F.when(again, known).otherwise(first)

    # Only an id that was sent twice can be a repeat.
    several = sends.groupBy(*_ID).agg(in_order).where(F.size("sends") > 1)
    firsts = F.aggregate("sends", nobody, take)["firsts"]
    offsets = F.array_except(F.transform("sends", lambda send: send["offset"]), firsts)
    return several.select("queue", "partition", F.explode(offsets).alias("offset"))


def without_repeated_sends(messages: DataFrame) -> DataFrame:
    """The same rows; `status` of `shown` messages that repeat another becomes `repeated`.

    Reads queue, partition, offset, sent_at, status, origin, group, dedup_id, dedup_scope, twice:
    for a frame that is cheap to read.
    """
    sends = messages.withColumn("dedup", dedup()).where(F.col("dedup").isNotNull()).select(*SEND)
    found = repeats(sends).withColumn("_again", F.lit(True))
    joined = messages.join(found, on=["queue", "partition", "offset"], how="left")
    status = F.when(F.col("_again"), "repeated").otherwise(F.col("status"))
    return joined.withColumn("status", status).select(*messages.columns)
