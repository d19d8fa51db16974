"""Reads bodies for the analysis of dead letters: those of the dead letters, and of some messages of
their sources that succeeded.

The stage keeps no bodies, since they are most of the log: so a few ranges of offsets are read once
more.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark.frames.columns import MESSAGES
from spark.frames.session import empty
from spark.frames.tables import Tables
from spark.reports.staging import Staging
from spark.rules.deliveries import dead_letters_of

MOST_SUCCEEDED = 1_000  # Of each partition of a source: its newest that were acked, and what lies between them.
_PLACE = ["queue", "partition", "offset"]


def dead_letters_with_bodies(tables: Tables, staging: Staging, died: DataFrame) -> DataFrame:
    """DEAD_LETTERS among the staged messages `died`, with their bodies."""
    dead_letters = died.where(F.col("origin.reason").isin("exhausted", "killed") & (F.col("status") == "shown"))
    found = dead_letters_of(
        _with_bodies(tables, staging, dead_letters), staging.journal_now, staging.runs, staging.queues
    )
    return tables.not_settled_later(found)


def succeeded_of_sources(tables: Tables, staging: Staging, dead_letters: DataFrame) -> DataFrame:
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
    return _with_bodies(tables, staging, few.select(*_PLACE).distinct())


def _with_bodies(tables: Tables, staging: Staging, places: DataFrame) -> DataFrame:
    """MESSAGES at these places. One range of offsets per partition is read: from the first to the
    last of them.
    """
    ranges: dict[str, dict[int, tuple[int, int]]] = {}
    bounds = places.groupBy("queue", "partition").agg(F.min("offset").alias("low"), F.max("offset").alias("high"))
    for row in bounds.collect():
        ranges.setdefault(row["queue"], {})[row["partition"]] = (row["low"], row["high"] + 1)
    if not ranges:
        return empty(tables.spark_session, MESSAGES)
    return tables.messages_at(ranges, staging.queues).join(places.select(*_PLACE), on=_PLACE, how="left_semi")
