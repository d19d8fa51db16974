"""Reads bodies for the analysis of dead letters: those of the dead letters, and of some messages of
their sources that succeeded.

The stage keeps no bodies, since they are most of the log: so a few places are read once more.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.frames.tables import not_settled_later
from spark.reports.sources.staging import Source, Staging
from spark.rules.deliveries import dead_letters_of, died

MOST_SUCCEEDED = 1_000  # Of each partition of a source: its newest that were acked, and what lies between them.
_PLACE = ["queue", "partition", "offset", "sent_at"]


def dead_letters_with_bodies(source: Source, staging: Staging, sent: DataFrame) -> DataFrame:
    """DEAD_LETTERS among the staged messages `sent`, with their bodies."""
    bodies = source.messages_at(died(sent).select(*_PLACE), staging.queues)
    found = dead_letters_of(bodies, staging.journal_now, staging.runs, staging.queues)
    return not_settled_later(found, source.end_ms)


def succeeded_of_sources(source: Source, staging: Staging, dead_letters: DataFrame) -> DataFrame:
    """MESSAGES that were acked in the queues where `dead_letters` died: the newest of each
    partition, as what a good message looks like.
    """
    sources = dead_letters.select(F.coalesce("source_queue", "original_queue").alias("queue")).distinct()
    acked = staging.lifecycles.where(F.col("settled_how") == "acked").join(
        F.broadcast(sources), on="queue", how="left_semi"
    )
    newest = acked.groupBy("queue", "partition").agg((F.max("offset") - MOST_SUCCEEDED).alias("above"))
    few = acked.join(F.broadcast(newest), on=["queue", "partition"]).where(F.col("offset") > F.col("above"))
    # Under several tags a message is acked several times.
    return source.messages_at(few.select(*_PLACE).distinct(), staging.queues)
