"""The log as the source of a report: Kafka is read once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.topics import queue_topics
from spark.frames.columns import MESSAGES
from spark.frames.log import Log, epoch_ms
from spark.frames.session import empty, fit_shuffles
from spark.frames.source import Span
from spark.frames.tables import Tables, not_settled_later
from spark.reports.sources.staging import SLIM, Staging, in_play, kept, leased_in_play
from spark.reports.unread import unread_messages
from spark.rules.atomic_batches import judged
from spark.rules.deliveries import deliveries_of
from spark.rules.floors import runs_of_snapshots
from spark.rules.lifecycles import lifecycles_of, with_wanted_tags
from spark.rules.repeats import without_repeated_sends

_PLACE = ["queue", "partition", "offset"]


class LogSource:
    """A log, of which begin <= time < end is told. It is read from `oldest` on (None = all that
    Kafka has): backlog and receive counts at `begin` need what was before.
    """

    def __init__(
        self, spark_session: SparkSession, log: Log, begin: datetime, end: datetime, oldest: datetime | None = None
    ) -> None:
        self.spark_session = spark_session
        self._begin = begin
        self.end_ms = epoch_ms(end)
        self._tables = Tables(spark_session, log, Span(epoch_ms(oldest) if oldest else None, self.end_ms))
        self._own = Tables(spark_session, log, Span(epoch_ms(begin), self.end_ms))

    def staging(self, folder: str, begin: Callable[[str], None]) -> Staging:
        """As `Source`."""
        tables = self._tables
        begin("messages")
        queues = kept(tables.queues(), f"{folder}/queues")
        slim = with_wanted_tags(tables.unjudged_messages(), queues).select(*SLIM)
        staged = kept(slim, f"{folder}/messages")
        fit_shuffles(staged)
        messages = tables.within(without_repeated_sends(judged(staged)), "sent_at")
        begin("journal")
        # Before the journal, and that to its end: an ack that a snapshot has and the journal has
        # not is then an old one.
        runs = kept(runs_of_snapshots(tables.snapshots()), f"{folder}/runs")
        journal_now = kept(tables.until_now().journal(queues), f"{folder}/journal")
        fit_shuffles(staged, journal_now)
        journal = tables.until_end(journal_now, "logged_at")
        begin("deliveries")
        leased = leased_in_play(deliveries_of(journal, messages, tables.as_of()), self._begin)
        deliveries = kept(leased, f"{folder}/deliveries")
        begin("lives")
        lives = in_play(lifecycles_of(messages, journal_now, runs, queues), self._begin)
        lifecycles = not_settled_later(kept(lives, f"{folder}/lives"), self.end_ms)
        return Staging(queues, messages, journal, journal_now, runs, deliveries, lifecycles)

    def meters(self) -> DataFrame:
        """As `Source`."""
        return self._own.meters()

    def stale_handles(self) -> DataFrame:
        """As `Source`."""
        return self._own.stale_handles()

    def requests(self) -> DataFrame:
        """As `Source`."""
        return self._own.requests()

    def audit(self) -> DataFrame:
        """As `Source`."""
        return self._own.audit()

    def messages_at(self, places: DataFrame, queues: DataFrame) -> DataFrame:
        """As `Source`. One range of offsets per partition is read: from the first to the last of
        them.
        """
        ranges: dict[str, dict[int, tuple[int, int]]] = {}
        bounds = places.groupBy("queue", "partition").agg(F.min("offset").alias("low"), F.max("offset").alias("high"))
        for row in bounds.collect():
            ranges.setdefault(row["queue"], {})[row["partition"]] = (row["low"], row["high"] + 1)
        if not ranges:
            return empty(self.spark_session, MESSAGES)
        return self._tables.messages_at(ranges, queues).join(places.select(*_PLACE), on=_PLACE, how="left_semi")

    def unread(self, messages: DataFrame) -> DataFrame:
        """As `Source`: of all that was read."""
        return unread_messages(messages, queue_topics(self._tables.log.prefix)).unionByName(
            self._tables.unread_events()
        )
