"""What all reports read: decoded, without bodies, judged, as Parquet in a folder that is removed
afterwards.

Reports ask the same rows many times, and bodies are most of the log: so a source is read once and
what is kept is a few dozen bytes a message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

# What reports need of a message.
SLIM = (
    "queue", "incarnation", "partition", "offset", "sent_at", "due_at", "status", "native", "schema_id", "body_bytes",
    "sender",
    "batch", "origin", "group", "dedup_id", "dedup_scope", "tag_ids",
)  # fmt: skip


@dataclass(frozen=True)
class Staging:
    """Frames over Parquet, as of the end of the report: QUEUES; MESSAGES without bodies; JOURNAL;
    DELIVERIES and LIFECYCLES that were not over before the report begins.

    `journal_now` is JOURNAL as of now, and `runs` (see `floors.py`) are no younger.
    """

    queues: DataFrame
    messages: DataFrame
    journal: DataFrame
    journal_now: DataFrame
    runs: DataFrame
    deliveries: DataFrame
    lifecycles: DataFrame


class Source(Protocol):
    """Where a report reads what happened in its time."""

    spark_session: SparkSession
    end_ms: int  # Of the report.

    def staging(self, folder: str, begin: Callable[[str], None]) -> Staging:
        """Writes the frames below `folder` and gives them back, read from there; `begin` is told
        what is begun.
        """

    def meters(self) -> DataFrame:
        """METERS of the report's time."""

    def stale_handles(self) -> DataFrame:
        """STALE_HANDLES of the report's time."""

    def requests(self) -> DataFrame:
        """REQUESTS of the report's time."""

    def audit(self) -> DataFrame:
        """AUDIT of the report's time."""

    def messages_at(self, places: DataFrame, queues: DataFrame) -> DataFrame:
        """MESSAGES with their bodies at these places: queue, partition, offset, sent_at."""

    def unread(self, messages: DataFrame) -> DataFrame:
        """UNREAD, also of the `messages` that are staged."""


def in_play(lifecycles: DataFrame, begin: datetime) -> DataFrame:
    """The lives that were not over before `begin`."""
    first = F.lit(begin)
    return lifecycles.where(F.col("settled_at").isNull() | (F.col("settled_at") >= first) | (F.col("sent_at") >= first))


def leased_in_play(deliveries: DataFrame, begin: datetime) -> DataFrame:
    """The deliveries that were not over before `begin`, and those after which their message waits
    longer.
    """
    over = F.greatest("settled_at", "again_at")  # Of those that are not null.
    return deliveries.where(over.isNull() | (over >= F.lit(begin)) | (F.col("received_at") >= F.lit(begin)))


def kept(frame: DataFrame, path: str) -> DataFrame:
    """The frame, read from the Parquet files that it is written to."""
    frame.write.mode("overwrite").parquet(path)
    return frame.sparkSession.read.schema(frame.schema).parquet(path)
