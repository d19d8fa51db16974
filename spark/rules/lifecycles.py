"""The life of each message under each tag that wants it. Every function is a pure DataFrame ->
DataFrame.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.vocabulary import BOOLEAN_TYPE
from spark.frames.columns import LIFECYCLES, LIVES
from spark.rules.floors import with_forgotten
from spark.rules.transitions import purge_after, purges, settlements, with_tag_names

_KEY = ["incarnation", "partition", "tag_id", "offset"]


def with_wanted_tags(messages: DataFrame, queues: DataFrame) -> DataFrame:
    """Adds `tag_ids`: the numbers of the tags that see each message, by start offset and filter, as
    schemas/filters.py.

    Reads MESSAGES and QUEUES. Under a queue that the control topic does not know, the default tag
    (0).
    """
    tags = F.broadcast(queues.select("incarnation", F.col("tags").alias("queue_tags")))
    joined = messages.join(tags, on="incarnation", how="left")
    wanted = F.transform(F.filter("queue_tags", _wants), lambda tag: tag["id"])
    return joined.withColumn("tag_ids", F.coalesce(wanted, F.array(F.lit(0)))).drop("queue_tags")


def _wants(tag: Column) -> Column:
    start = F.coalesce(F.try_element_at(tag["start_offsets"], F.col("partition") + 1), F.lit(0))
    conditions = tag["filter"]["conditions"]
    passes = F.when(tag["filter"]["operator"] == "OR", F.exists(conditions, _holds)).otherwise(
        F.forall(conditions, _holds)
    )
    return (F.col("offset") >= start) & (tag["filter"].isNull() | F.coalesce(passes, F.lit(False)))


def _holds(condition: Column) -> Column:
    attribute = F.try_element_at(F.col("attributes"), condition["name"])
    same = (_word(attribute["type"]) == _word(condition["type"])) & (attribute["value"] == condition["value"])
    return attribute.isNotNull() & ((F.lower(condition["type"]) == "empty") | F.coalesce(same, F.lit(False)))


def _word(type: Column) -> Column:
    """A type as it is compared."""
    word = F.lower(type)
    return F.when(word == BOOLEAN_TYPE, "string").otherwise(word)


def lifecycles_of(messages: DataFrame, journal: DataFrame, runs: DataFrame, queues: DataFrame) -> DataFrame:
    """LIFECYCLES: one row per message that is shown and tag that wants it, and how it ended there.

    `messages` needs queue, incarnation, partition, offset, sent_at, due_at, body_bytes, status,
    tag_ids. `runs` (RUNS of snapshots) tell of acks that the journal no longer has, and must be no
    younger than `journal`. A record that the window skipped (second copy of a move) is a
    life that ended as `skipped`.
    """
    told = settled(begun(messages), journal)
    return with_tag_names(with_forgotten(told, journal, runs), queues).select(*LIFECYCLES.names)


def begun(messages: DataFrame) -> DataFrame:
    """One row per message that is shown and tag that wants it. Reads status, tag_ids."""
    return messages.where(F.col("status") == "shown").withColumn("tag_id", F.explode("tag_ids"))


def settled(rows: DataFrame, journal: DataFrame) -> DataFrame:
    """The rows (a message under a tag each) with settled_at, settled_how, settled_reason, as far as
    `journal` says so.
    """
    ended = rows.join(settlements(journal), on=["incarnation", "partition", "tag_id", "offset"], how="left")
    purged = ended.join(F.broadcast(purges(journal)), on=["incarnation", "partition", "tag_id"], how="left")
    hit = purged.withColumn("purge", F.when(F.col("settled_how").isNull(), purge_after(F.lit(0))))
    how = F.coalesce("settled_how", F.when(F.col("purge").isNotNull(), "purged"))
    told = hit.withColumn("settled_how", how).withColumn("settled_at", F.coalesce("settled_at", "purge.at"))
    return told.drop("purges", "purge")


def lives_of(lifecycles: DataFrame, deliveries: DataFrame, as_of: Column) -> DataFrame:
    """LIVES as of a moment: LIFECYCLES, each with the deliveries that it had by then. Of DELIVERIES
    the columns that the journal alone tells are enough.
    """
    last = F.max(F.struct("nonce", "how", "again_at"))
    had = deliveries.groupBy(*_KEY).agg(
        F.count("*").cast("int").alias("deliveries"),
        F.min("received_at").alias("first_received_at"),
        F.max("received_at").alias("last_received_at"),
        last.alias("last"),
    )
    joined = lifecycles.join(had, on=_KEY, how="left").withColumn("last_how", F.col("last.how"))
    later = F.coalesce(F.coalesce("last.again_at", "due_at") > as_of, F.lit(False))
    state = F.when(F.col("last_how") == "open", "leased").when(later, "delayed").otherwise("ready")
    age = F.unix_millis(F.coalesce("settled_at", as_of)) - F.unix_millis("sent_at")
    told = joined.withColumn("state", F.coalesce("settled_how", state)).withColumn("age_ms", age)
    return told.fillna(0, ["deliveries"]).select(*LIVES.names)
