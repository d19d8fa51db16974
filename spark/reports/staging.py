"""Reads the log once for all reports: decoded, without bodies, judged, as Parquet in a folder that
is removed afterwards.

Reports ask the same rows many times, and bodies are most of the log: so Kafka is read once and what
is kept is a few dozen bytes a message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark.frames.session import fit_shuffles
from spark.frames.tables import Tables
from spark.rules.atomic_batches import judged
from spark.rules.deliveries import deliveries_of
from spark.rules.floors import runs_of_snapshots
from spark.rules.lifecycles import lifecycles_of, with_wanted_tags
from spark.rules.repeats import without_repeated_sends

# What reports need of a message.
SLIM = (
    "queue", "incarnation", "partition", "offset", "sent_at", "due_at", "status", "native", "schema_id", "body_bytes",
    "sender",
    "batch", "origin", "group", "dedup_id", "dedup_scope", "tag_ids",
)  # fmt: skip


@dataclass(frozen=True)
class Staging:
    """Frames over Parquet, as of the end of the span: QUEUES; MESSAGES without bodies; JOURNAL,
    DELIVERIES, LIFECYCLES.

    `journal_now` is JOURNAL as of now, and `runs` (see `floors.py`) are no younger.
    """

    queues: DataFrame
    messages: DataFrame
    journal: DataFrame
    journal_now: DataFrame
    runs: DataFrame
    deliveries: DataFrame
    lifecycles: DataFrame


def write_staging(tables: Tables, folder: str, begin: Callable[[str], None]) -> Staging:
    """Writes the frames of `tables` below `folder` and gives them back, read from there; `begin` is
    told what is begun.
    """
    begin("messages")
    queues = kept(tables.queues(), f"{folder}/queues")
    slim = with_wanted_tags(tables.unjudged_messages(), queues).select(*SLIM)
    staged = kept(slim, f"{folder}/messages")
    fit_shuffles(staged)
    messages = tables.within(without_repeated_sends(judged(staged)), "sent_at")
    begin("journal")
    # Before the journal, and that to its end: an ack that a snapshot has and the journal has not is
    # then an old one.
    runs = kept(runs_of_snapshots(tables.snapshots()), f"{folder}/runs")
    journal_now = kept(tables.until_now().journal(queues), f"{folder}/journal")
    fit_shuffles(staged, journal_now)
    journal = tables.until_end(journal_now, "logged_at")
    begin("deliveries")
    deliveries = kept(deliveries_of(journal, messages, tables.as_of()), f"{folder}/deliveries")
    begin("lives")
    lifecycles = tables.not_settled_later(kept(lifecycles_of(messages, journal_now, runs, queues), f"{folder}/lives"))
    return Staging(queues, messages, journal, journal_now, runs, deliveries, lifecycles)


def kept(frame: DataFrame, path: str) -> DataFrame:
    """The frame, read from the Parquet files that it is written to."""
    frame.write.mode("overwrite").parquet(path)
    return frame.sparkSession.read.schema(frame.schema).parquet(path)
