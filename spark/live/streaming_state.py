"""What one micro-batch of the log means, given what the ones before it left: the stream's side of
rules that look back.

A state is a small frame: the last seq of each unit, the records of batches that are not whole yet,
the leases that have not ended. No watermark is needed, so nothing is ever dropped as late: a job
that catches up reads one partition hours ahead of another. Every function is a pure DataFrame ->
DataFrame.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.vocabulary import BATCH_SPAN_MS, DEDUP_WINDOW_MS, ENDS, LEASES, PROLONGS, UNDOES
from spark.frames.columns import BATCH_MARK, INT, JOURNAL, LONG, ORIGIN, TEXT, TIME, row
from spark.rules.repeats import SEND, dedup, repeats
from spark.rules.transitions import purge_after, purges

_UNIT = ["incarnation", "partition"]
_LEASE = ["incarnation", "partition", "tag_id", "offset"]
_PART = ["queue", "partition"]
_OF_LEASES = (*map(str, (*LEASES, *PROLONGS, *ENDS, *UNDOES)), "purged")

SEQS = row(incarnation=TEXT, partition=INT, last_seq=LONG)
# What tallies need of a message.
RECORDS = row(
    queue=TEXT, partition=INT, offset=LONG, sent_at=TIME, status=TEXT, body_bytes=LONG, sender=TEXT, batch=BATCH_MARK,
    origin=ORIGIN, dedup=TEXT
)  # fmt: skip
# FIFO sends that another may repeat still.
FIRSTS = row(queue=TEXT, partition=INT, dedup=TEXT, offset=LONG, sent_at=TIME)


def new_entries(entries: DataFrame, seqs: DataFrame) -> DataFrame:
    """The entries whose seq is above all before them: in this micro-batch, and in those before it
    (SEQS).
    """
    place = (
        Window.partitionBy(*_UNIT)
        .orderBy("log_partition", "log_offset", "place")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    known = entries.join(seqs, on=_UNIT, how="left").withColumn("before", F.max("seq").over(place))
    newest = F.greatest(F.coalesce("before", F.lit(0)), F.coalesce("last_seq", F.lit(0)))
    return known.where(F.col("seq") > newest).drop("before", "last_seq")


def next_seqs(entries: DataFrame, seqs: DataFrame) -> DataFrame:
    """SEQS after this micro-batch: one row per unit ever seen."""
    seen = entries.select(*_UNIT, F.col("seq").alias("last_seq")).unionByName(seqs)
    return seen.groupBy(*_UNIT).agg(F.max("last_seq").alias("last_seq"))


def decided(records: DataFrame, pending: DataFrame) -> DataFrame:
    """RECORDS of this micro-batch and `pending` ones before it, by the rule of `atomic_batches.py`;
    status `undecided` = still pending.

    The time is the log's own: a batch that lacks records is given up when its partition has a
    record 30 s younger than its first.
    """
    both = records.select(*RECORDS.names).unionByName(pending)
    marked = F.col("batch").isNotNull() & F.col("status").isin("shown", "undecided")
    newest = F.broadcast(both.groupBy(*_PART).agg(F.unix_millis(F.max("sent_at")).alias("newest_ms")))
    one = Window.partitionBy(*_PART, "batch.id")
    judged = both.where(marked).join(newest, on=_PART, how="left").select(
        "*",
        F.size(F.collect_set("batch.index").over(one)).alias("seen"),
        F.min("batch.index").over(one).alias("lowest"),
        F.unix_millis(F.min("sent_at").over(one)).alias("first_ms"),
        F.unix_millis(F.max("sent_at").over(one)).alias("last_ms"),
    )  # fmt: skip
    whole = (F.col("seen") == F.col("batch.size")) & (F.col("last_ms") - F.col("first_ms") <= BATCH_SPAN_MS)
    may_come = (
        (F.col("lowest") == 0)
        & (F.col("seen") < F.col("batch.size"))
        & (F.col("newest_ms") - F.col("first_ms") <= BATCH_SPAN_MS)
    )
    status = F.when(whole, "shown").when(may_come, "undecided").otherwise("torn")
    return both.where(~marked).unionByName(judged.withColumn("status", status).select(*RECORDS.names))


def with_dedup(messages: DataFrame) -> DataFrame:
    """RECORDS of MESSAGES that are not judged yet."""
    return messages.withColumn("dedup", dedup()).select(*RECORDS.names)


def without_repeats(records: DataFrame, firsts: DataFrame) -> DataFrame:
    """RECORDS whose `status` is `repeated` when a FIFO send repeats one of them or of FIRSTS."""
    new = records.where(_may_repeat()).select(*SEND)
    found = repeats(new.unionByName(firsts)).withColumn("_again", F.lit(True))
    joined = records.join(found, on=["queue", "partition", "offset"], how="left")
    return joined.withColumn("status", F.when(F.col("_again"), "repeated").otherwise(F.col("status"))).select(
        *RECORDS.names
    )


def next_firsts(records: DataFrame, firsts: DataFrame) -> DataFrame:
    """FIRSTS after these records, which `without_repeats` has judged: by the log's own time."""
    newest = records.groupBy(*_PART).agg(F.unix_millis(F.max("sent_at")).alias("newest_ms"))
    both = records.where(_may_repeat()).select(*SEND).unionByName(firsts).join(newest, on=_PART, how="left")
    age = F.col("newest_ms") - F.unix_millis("sent_at")
    return both.where(F.coalesce(age <= DEDUP_WINDOW_MS, F.lit(True))).select(*FIRSTS.names)


def _may_repeat() -> Column:
    return F.col("dedup").isNotNull() & (F.col("status") == "shown")


def with_open_leases(journal: DataFrame, carried: DataFrame) -> DataFrame:
    """JOURNAL rows of this micro-batch and those carried over: of leases that had not ended."""
    return carried.unionByName(journal.where(F.col("kind").isin(*_OF_LEASES)))


def still_open(rows: DataFrame) -> DataFrame:
    """The JOURNAL rows to carry on: of each message and tag its last lease, if nothing has ended
    it, with its extensions.
    """
    told = rows.where(F.col("kind") != "purged")
    whole = Window.partitionBy(*_LEASE)
    leased = F.max(F.when(F.col("kind") == "leased", F.col("seq"))).over(whole)
    ended = F.max(F.when(~F.col("kind").isin("leased", "extended"), F.col("seq"))).over(whole)
    marked = told.withColumn("leased", leased).withColumn("ended", F.coalesce(ended, F.lit(0)))
    held = marked.where((F.col("seq") >= F.col("leased")) & (F.col("leased") > F.col("ended")))
    purged = held.join(F.broadcast(purges(rows)), on=["incarnation", "partition", "tag_id"], how="left")
    return purged.where(purge_after(F.col("leased")).isNull()).select(*JOURNAL.names)
