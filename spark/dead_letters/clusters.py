"""Causes among dead letters: which bodies are alike, and what sets them apart from messages that
succeeded.

A dead letter's *marks* are the tokens (`shape.tokens`) that dead letters of its queue have far more
often than succeeded messages of that queue. Dead letters with equal marks are one *pattern*;
MinHash LSH finds patterns with similar marks, and each pattern joins its most frequent neighbour.
So the costly part works on hundreds of patterns, not on dead letters.
"""

from __future__ import annotations

from pyspark.ml.feature import HashingTF, MinHashLSH
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.dead_letters.markers import FIELD, WHAT, no_marks, with_marks
from spark.dead_letters.shape import with_body
from spark.frames.session import held

MOST_PATTERNS = 2000  # The most frequent ones are clustered; dead letters of others belong to no cluster.
DISTANCE = 0.45  # Patterns of at most this Jaccard distance are alike.
LEAST_DEAD_LETTERS = 20  # of a cluster, and
LEAST_SHARE = 0.001  # of all dead letters.
HASH_TABLES = 8  # Two patterns at the bound are missed with a chance of 0.45^8, two in a thousand.
HASH_FEATURES = 1 << 18
EXAMPLE_CHARS = 2000
MOST_FIELDS = 8

KEY = ("queue", "partition", "offset")


def with_cluster(dead_letters: DataFrame, succeeded: DataFrame) -> DataFrame:
    """DEAD_LETTERS with shape, body_kind, marks (array of field, what) and cluster; one row per
    dead letter.

    `succeeded` are MESSAGES (`letters.succeeded_of`), or a sample of them: what they have too tells
    of no cause. Without any of a queue, the values of its fields tell nothing, only which fields
    there are. cluster: 1 = the largest; null = alike to no others.
    """
    marked = held(with_marks(dead_letters, succeeded).withColumn("_pattern", _pattern_of("marks")))
    heads = _heads(_patterns(marked))
    counted = (
        marked.groupBy("_pattern").agg(F.count("*").alias("_dead_letters")).join(F.broadcast(heads), on="_pattern")
    )
    sizes = counted.groupBy("_head").agg(F.sum("_dead_letters").alias("_size"))
    # These windows have at most MOST_PATTERNS rows.
    least = F.greatest(
        F.lit(LEAST_DEAD_LETTERS), F.ceil(F.sum("_dead_letters").over(Window.partitionBy()) * LEAST_SHARE)
    )
    large = counted.withColumn("_least", least).select("_pattern", "_head", "_least").join(sizes, on="_head")
    order = Window.partitionBy(F.lit(1)).orderBy(F.col("_size").desc(), "_head")
    numbered = large.where(F.col("_size") >= F.col("_least")).withColumn("cluster", F.dense_rank().over(order))
    return marked.join(F.broadcast(numbered.select("_pattern", "cluster")), on="_pattern", how="left").drop("_pattern")


def without_cluster(dead_letters: DataFrame) -> DataFrame:
    """What `with_cluster` gives for fewer dead letters than a cluster needs, without its work: no
    marks, and no cluster.
    """
    seen = with_body(dead_letters).select(*dead_letters.columns, "body_kind", "shape")
    return seen.withColumn("marks", no_marks()).withColumn("cluster", F.lit(None).cast("int"))


def dead_letter_clusters(clustered: DataFrame) -> DataFrame:
    """One row per cluster of a frame of `with_cluster` (cache it): dead letters that are alike, so
    probably of one cause.

    cluster, dead_letters, at_rest, share (of all dead letters), queues and source_queues and
    reasons (sorted), body_kind and shape (the most frequent), first_seen_at, last_seen_at,
    example_address, example (a body of the most frequent shape, at most 2,000 characters, null =
    not text), apart: up to 8 of (field, what, in_cluster, in_succeeded), shares 0..1 of the dead
    letters and of the succeeded messages of their queues that have it, most telling first.
    """
    # A window over all of them would bring all bodies to one task.
    whole = F.broadcast(clustered.agg(F.count("*").alias("_all")))
    everywhere = clustered.where(F.col("cluster").isNotNull()).crossJoin(whole)
    usual = everywhere.groupBy("cluster").agg(F.mode("shape").alias("_usual"))
    rows = everywhere.join(F.broadcast(usual), on="cluster")
    body = F.struct("address", F.substring("body_text", 1, EXAMPLE_CHARS).alias("text"))
    example = F.min_by(body, F.struct(F.col("shape") != F.col("_usual"), "dead_at", "address"))
    found = rows.groupBy("cluster").agg(
        F.count("*").alias("dead_letters"),
        F.count_if(F.col("settled_how").isNull()).alias("at_rest"),
        (F.count("*") / F.first("_all")).alias("share"),
        F.array_sort(F.collect_set("queue")).alias("queues"),
        F.array_sort(F.collect_set("source_queue")).alias("source_queues"),
        F.array_sort(F.collect_set("reason")).alias("reasons"),
        F.mode("body_kind").alias("body_kind"),
        F.first("_usual").alias("shape"),
        F.min("dead_at").alias("first_seen_at"),
        F.max("dead_at").alias("last_seen_at"),
        example.alias("_example"),
    )
    told = found.join(_apart(clustered), on="cluster", how="left")
    kept = [name for name in found.columns if name != "_example"]
    return told.select(
        *kept, F.col("_example.address").alias("example_address"), F.col("_example.text").alias("example"), "apart"
    )


def _apart(clustered: DataFrame) -> DataFrame:
    """cluster, apart: the marks of a cluster that most of its dead letters have, most telling
    first.
    """
    inside = clustered.where(F.col("cluster").isNotNull())
    sizes = inside.groupBy("cluster").agg(F.count("*").alias("_dead_letters"))
    marks = inside.select("cluster", F.explode("marks").alias("m"))
    counted = marks.groupBy("cluster", f"m.{FIELD}", f"m.{WHAT}").agg(
        F.count("*").alias("_has"), F.avg("m.usual").alias("in_succeeded")
    )
    shares = counted.join(F.broadcast(sizes), on="cluster").withColumn(
        "in_cluster", F.col("_has") / F.col("_dead_letters")
    )
    common = shares.where(F.col("in_cluster") >= 0.5)
    row = F.struct(
        (F.col("in_succeeded") - F.col("in_cluster")).alias("_order"), FIELD, WHAT, "in_cluster", "in_succeeded"
    )
    listed = common.groupBy("cluster").agg(F.slice(F.array_sort(F.collect_list(row)), 1, MOST_FIELDS).alias("_rows"))
    return listed.select("cluster", F.transform("_rows", lambda r: r.dropFields("_order")).alias("apart"))


def _pattern_of(marks: str) -> Column:
    """The marks as sorted words, which are what is hashed."""
    return F.array_sort(F.transform(marks, lambda m: F.concat(m[FIELD], F.lit(" "), m[WHAT])))


def _patterns(marked: DataFrame) -> DataFrame:
    """The most frequent patterns: _pattern, _dead_letters, _rank (1 = the most frequent). Dead
    letters without marks have none.
    """
    counted = marked.where(F.size("_pattern") > 0).groupBy("_pattern").agg(F.count("*").alias("_dead_letters"))
    order = (F.col("_dead_letters").desc(), F.col("_pattern"))
    # Each task brings its most frequent ones alone, so few are ranked by one.
    few = counted.orderBy(*order).limit(MOST_PATTERNS)
    return few.withColumn("_rank", F.row_number().over(Window.partitionBy(F.lit(1)).orderBy(*order)))


def _heads(patterns: DataFrame) -> DataFrame:
    """_pattern, _head: the rank of the pattern that heads its cluster."""
    hashed = HashingTF(inputCol="_pattern", outputCol="_features", numFeatures=HASH_FEATURES, binary=True).transform(
        patterns
    )
    # Computed once: the join below would compute it all twice.
    few = held(hashed)
    if few.isEmpty():
        return few.select("_pattern", F.col("_rank").alias("_head"))
    model = MinHashLSH(inputCol="_features", outputCol="_hashes", numHashTables=HASH_TABLES, seed=1).fit(few)
    pairs = model.approxSimilarityJoin(few, few, DISTANCE, distCol="_distance")
    near = pairs.select(F.col("datasetA._rank").alias("_rank"), F.col("datasetB._rank").alias("_head"))
    nearest = near.groupBy("_rank").agg(F.min("_head").alias("_head"))
    heads = few.sparkSession.createDataFrame(_followed(dict(map(tuple, nearest.collect()))), "_rank int, _head int")
    return few.select("_pattern", "_rank").join(F.broadcast(heads), on="_rank").select("_pattern", "_head")


def _followed(nearest: dict[int, int]) -> list[tuple[int, int]]:
    """Each rank with the head of its chain. A pattern is near itself, so a head is its own nearest;
    at most MOST_PATTERNS come here.
    """
    found: dict[int, int] = {}
    for rank in sorted(nearest):
        # What it is nearest to is more frequent, so of a smaller rank, and known.
        found[rank] = found.get(nearest[rank], rank)
    return list(found.items())
