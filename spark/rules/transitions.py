"""The journal as rows: repeated entries dropped, one row per entry and offset, tags by name.

Every function is a pure DataFrame -> DataFrame.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.vocabulary import DEFAULT_TAG, SETTLES, EventKind
from spark.frames.columns import JOURNAL


def without_repeats(entries: DataFrame) -> DataFrame:
    """The entries that are news, as engine/journal/fold.py folds them: an entry whose seq is not
    above all before it is dropped.

    A drain that died after its append appends again. Order = the journal's; one unit lives in one
    of its partitions.
    """
    before = (
        Window.partitionBy("incarnation", "partition")
        .orderBy("log_partition", "log_offset", "place")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    newest = F.coalesce(F.max("seq").over(before), F.lit(0))
    return entries.withColumn("newest", newest).where(F.col("seq") > F.col("newest")).drop("newest")


def journal_of(entries: DataFrame, queues: DataFrame) -> DataFrame:
    """JOURNAL: one row per entry and offset of `entries` (no repeats), with the tag's name from
    `queues`.
    """
    pair = F.posexplode(F.arrays_zip("offsets", "times")).alias("nth", "pair")
    rows = entries.select(
        "queue", "incarnation", "partition", "seq", "at", "kind", "tag_id", "reason", "logged_at", pair
    )
    timed = rows.withColumn("offset", F.col("pair.offsets")).withColumn("until", F.timestamp_millis("pair.times"))
    timed = timed.withColumn("leads", F.col("nth") == 0)
    return with_tag_names(timed, queues).select(*JOURNAL.names)


def with_tag_names(rows: DataFrame, queues: DataFrame) -> DataFrame:
    """Adds `tag`, the name of tag_id in that life of the queue; the number where the control topic
    no longer knows it.
    """
    names = queues.select("incarnation", F.explode("tags").alias("t"))
    known = names.select("incarnation", F.col("t.id").alias("tag_id"), F.col("t.name").alias("known_tag"))
    joined = rows.join(F.broadcast(known), on=["incarnation", "tag_id"], how="left")
    return joined.withColumn("tag", tag_name()).drop("known_tag")


def tag_name() -> Column:
    """The name of a tag from known_tag and tag_id."""
    default = F.when(F.col("tag_id") == 0, DEFAULT_TAG)
    return F.coalesce("known_tag", default, F.concat(F.lit("#"), F.col("tag_id")))


def given_back() -> Column:
    """Whether a JOURNAL row is a lease that its holder has set to end at once: a release in SQS'
    words, ChangeMessageVisibility(0).

    The handle stays good until the next delivery, so for the engine it is a deadline that was
    moved.
    """
    return F.coalesce((F.col("kind") == EventKind.EXTENDED.value) & (F.col("until") <= F.col("at")), F.lit(False))


def purges(journal: DataFrame) -> DataFrame:
    """One row per unit and tag that was purged: `purges` = array of (seq, bound, at). Small: it may
    be broadcast.
    """
    purged = journal.where(F.col("kind") == "purged")
    entry = F.struct("seq", F.col("offset").alias("bound"), "at")
    return purged.groupBy("incarnation", "partition", "tag_id").agg(F.collect_list(entry).alias("purges"))


def settlements(journal: DataFrame) -> DataFrame:
    """One row per unit, tag and offset that was settled by itself: settled_at, settled_how,
    settled_reason. Purges are not here.
    """
    settled = journal.where(F.col("kind").isin(*map(str, SETTLES)))
    first = F.min(F.struct("seq", "at", "kind", "reason"))
    grouped = settled.groupBy("incarnation", "partition", "tag_id", "offset").agg(first.alias("s"))
    return grouped.select(
        "incarnation", "partition", "tag_id", "offset",
        F.col("s.at").alias("settled_at"), F.col("s.kind").alias("settled_how"),
        F.col("s.reason").alias("settled_reason"),
    )  # fmt: skip


def purge_after(seq: Column) -> Column:
    """The first purge (from `purges`) of a greater seq whose bound is above `offset`; null =
    none.
    """
    hit = F.filter("purges", lambda p: (p["seq"] > seq) & (p["bound"] > F.col("offset")))
    return F.array_min(hit)
