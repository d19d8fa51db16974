"""Tables as the source of a report: what was over before it begins is not looked at, so a report
costs what its time has, however much is there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.topics import queue_topics
from spark.frames.decode import counted_unread
from spark.frames.log import epoch_ms
from spark.frames.session import empty, fit_shuffles
from spark.frames.tables import not_settled_later
from spark.lake.answers.stored import Stored
from spark.lake.derived.deliveries import made_anew
from spark.lake.derived.made import MARGIN_US
from spark.reports.sources.staging import SLIM, Staging, in_play, kept, leased_in_play
from spark.reports.unread import unread_messages
from spark.rules.floors import RUNS
from spark.rules.lifecycles import with_wanted_tags
from spark.rules.repeats import since_or_repeated, without_repeated_sends

_KEY = ["incarnation", "partition", "tag_id", "offset"]
_PLACE_AT = ["queue", "partition", "offset", "sent_at"]


class TablesSource:
    """Tables, of which begin <= time < end is told; `end` is no later than they tell."""

    def __init__(self, stored: Stored, begin: datetime, end: datetime) -> None:
        self.spark_session = stored.spark_session
        self._stored = stored
        self._begin, self._end = begin, end
        self.end_ms = epoch_ms(end)

    def staging(self, folder: str, begin: Callable[[str], None]) -> Staging:
        """As `Source`."""
        begin("messages")
        queues = kept(self._stored.frame("queues"), f"{folder}/queues")
        sent = since_or_repeated(self._before_end("messages", "sent_at"), F.lit(self._begin))
        staged = kept(with_wanted_tags(sent, queues).select(*SLIM), f"{folder}/messages")
        fit_shuffles(staged)
        messages = without_repeated_sends(staged).where(F.col("sent_at") >= F.lit(self._begin))
        begin("journal")
        told = self._stored.frame("journal").where(F.col("logged_at") >= F.lit(self._begin))
        journal_now = kept(told, f"{folder}/journal")
        fit_shuffles(staged, journal_now)
        journal = journal_now.where(F.col("logged_at") < F.lit(self._end))
        begin("deliveries")
        deliveries = kept(self._deliveries(folder), f"{folder}/deliveries")
        begin("lives")
        lives = in_play(self._before_end("lifecycles", "sent_at"), self._begin)
        lifecycles = not_settled_later(kept(lives, f"{folder}/lives"), self.end_ms)
        runs = empty(self.spark_session, RUNS)  # What they tell, the lifecycles have.
        return Staging(queues, messages, journal, journal_now, runs, deliveries, lifecycles)

    def _deliveries(self, folder: str) -> DataFrame:
        """DELIVERIES as of the end. What was not over by then is made anew of what the journal had
        told.
        """
        there = leased_in_play(self._before_end("deliveries", "received_at"), self._begin)
        if self.end_ms >= self._stored.as_of_ms:
            return there
        unsettled = F.col("settled_at").isNull() | (F.col("settled_at") >= F.lit(self._end))
        late = kept(there.where(unsettled), f"{folder}/late")
        oldest_us = late.agg(F.unix_micros(F.min("received_at"))).collect()[0][0]
        if oldest_us is None:
            return there
        told, messages = self._before_end("journal", "logged_at"), self._stored.frame("messages")
        touched = late.select(*_KEY).distinct()
        anew = made_anew(told, messages, touched, oldest_us - MARGIN_US, F.lit(self._end))
        key = [*_KEY, "nonce"]
        some = anew.join(late.select(*key), on=key, how="left_semi")
        return there.join(late.select(*key), on=key, how="left_anti").unionByName(some)

    def meters(self) -> DataFrame:
        """As `Source`."""
        return self._within("meters", "minute")

    def stale_handles(self) -> DataFrame:
        """As `Source`."""
        return self._within("stale_handles", "minute")

    def requests(self) -> DataFrame:
        """As `Source`."""
        return self._within("requests", "minute")

    def audit(self) -> DataFrame:
        """As `Source`."""
        return self._within("audit", "at")

    def messages_at(self, places: DataFrame, queues: DataFrame) -> DataFrame:
        """As `Source`."""
        low, high = places.agg(F.min("sent_at"), F.max("sent_at")).collect()[0]
        there = self._stored.frame("messages")
        if low is None:
            return there.limit(0)
        return there.where(F.col("sent_at").between(low, high)).join(places, on=_PLACE_AT, how="left_semi")

    def unread(self, messages: DataFrame) -> DataFrame:
        """As `Source`: of the report's time."""
        first = queue_topics(self._stored.prefix)
        others = self._within("undecodable", "at").where(~F.col("topic").startswith(first))
        return unread_messages(messages, first).unionByName(counted_unread(others))

    def _before_end(self, name: str, time: str) -> DataFrame:
        return self._stored.frame(name).where(F.col(time) < F.lit(self._end))

    def _within(self, name: str, time: str) -> DataFrame:
        return self._before_end(name, time).where(F.col(time) >= F.lit(self._begin))
