"""What is settled though the journal no longer says how: it keeps 30 days, and messages live longer
than that.

Floors (journal entries of kind `floor`) and snapshots (`lw.snapshot`) say that offsets are settled,
for a reason told before, or deferred until they are due. Where the journal does not have that
reason, it was told before the journal begins. Every function is a pure DataFrame -> DataFrame.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.vocabulary import EventKind
from spark.frames.columns import INT, LONG, TEXT, row
from spark.frames.decode import avro_fields, head_id

# Offsets `first` to before `end` are settled under that tag.
RUNS = row(incarnation=TEXT, partition=INT, tag_id=INT, first=LONG, end=LONG)
FORGOTTEN = "settled"  # How a message ended when the log no longer tells.
_TAG = ["incarnation", "partition", "tag_id"]
_BLOCK = 4096  # Runs are looked up by blocks of so many offsets.


def newest_snapshots(records: DataFrame) -> DataFrame:
    """The newest record of each unit, as Kafka gave it: key, value, topic, partition, offset.

    One that a stale owner wrote says less and nothing wrong: what is settled stays so.
    """
    key = F.col("key").cast("string")
    keyed = records.where(key.contains("/") & ~key.startswith("position"))  # the rest: positions, and marks of epochs
    whole = F.struct("key", "value", "topic", "partition", "offset")
    newest = keyed.groupBy(F.col("key").alias("unit")).agg(F.max_by(whole, "offset").alias("r")).select("r.*")
    return newest.where(F.col("value").isNotNull())


def runs_of_snapshots(newest: DataFrame) -> DataFrame:
    """RUNS that snapshots name: what is below each tag's floor, and the runs above it."""
    read = newest.withColumn("schema_id", head_id()).select(avro_fields("snapshot").alias("s"))
    tags = read.select("s.incarnation", "s.partition", F.explode("s.tags").alias("t"))
    low = F.struct(F.lit(0).cast("long").alias("first"), F.col("t.floor").alias("count"))
    pairs = F.zip_with(
        "t.settled_first", "t.settled_count", lambda first, count: F.struct(first.alias("first"), count.alias("count"))
    )
    each = tags.select(
        "incarnation", "partition", F.col("t.tag").alias("tag_id"), F.explode(F.concat(F.array(low), pairs)).alias("p")
    )
    return each.select(*_TAG, "p.first", (F.col("p.first") + F.col("p.count")).alias("end"))


def runs_of_journal(journal: DataFrame) -> DataFrame:
    """RUNS that the journal's floors name. Reads JOURNAL."""
    floors = journal.where(F.col("kind") == EventKind.FLOOR.value).groupBy(*_TAG).agg(F.max("offset").alias("end"))
    return floors.select(*_TAG, F.lit(0).cast("long").alias("first"), "end")


def with_forgotten(rows: DataFrame, journal: DataFrame, runs: DataFrame) -> DataFrame:
    """The rows (a message under a tag each; settled_how null = the journal settles it nowhere) with
    what RUNS settle.

    settled_how becomes `settled`, and settled_at the latest that it can have been: when the journal
    begins. Adds and drops nothing else. `journal` must reach as far as what the runs are made of.
    """
    both = runs.unionByName(runs_of_journal(journal)).where(F.col("end") > F.col("first"))
    blocks = F.sequence(_block(F.col("first")), _block(F.col("end") - 1))
    by_block = both.select(*_TAG, F.explode(blocks).alias("_block"), F.struct("first", "end").alias("run"))
    known = by_block.groupBy(*_TAG, "_block").agg(F.collect_set("run").alias("_runs"))
    begins = journal.agg(F.min("logged_at").alias("_begins"))
    looked = (
        rows.withColumn("_block", _block(F.col("offset")))
        .join(known, on=[*_TAG, "_block"], how="left")
        .crossJoin(F.broadcast(begins))
    )
    inside = F.exists("_runs", lambda run: (run["first"] <= F.col("offset")) & (F.col("offset") < run["end"]))
    hit = F.col("settled_how").isNull() & F.coalesce(inside, F.lit(False))
    if "due_at" in rows.columns:
        # A floor passes what is deferred, too: what was due later, the journal would have settled.
        hit = hit & F.coalesce(F.col("due_at") <= F.col("_begins"), F.lit(True))
    at = F.coalesce("settled_at", F.when(hit, F.greatest("sent_at", "_begins")))
    how = F.coalesce("settled_how", F.when(hit, FORGOTTEN))
    return looked.withColumn("settled_at", at).withColumn("settled_how", how).select(*rows.columns)


def _block(offset: Column) -> Column:
    return F.floor(offset / _BLOCK)
