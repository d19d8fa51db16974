"""The life of each message under each tag as a table: made when a message comes, and changed once,
when it is settled.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.vocabulary import BOUNDS, SETTLES, EventKind
from spark.frames.columns import LIFECYCLES
from spark.frames.session import leaf, once
from spark.lake.derived.made import MARGIN_US, News
from spark.lake.tables.table import Table
from spark.rules.floors import with_forgotten
from spark.rules.lifecycles import begun, settled, with_wanted_tags
from spark.rules.transitions import with_tag_names

_UNIT = ["incarnation", "partition", "tag_id"]
_KEY = [*_UNIT, "offset"]
# After its retention, in which the journal may still say how a message has ended.
_LATE_MS = 24 * 3_600_000
# What is known of a life when it begins.
_BEGUN = LIFECYCLES.names[: LIFECYCLES.names.index("settled_at")]


class Lifecycles:
    """The table of lifecycles of one warehouse, as `Derived`. `queues` is QUEUES as of now; `runs`
    (RUNS, no younger than the journal) tell of what was settled before the journal began, None =
    they have told it.
    """

    name = "lifecycles"

    def __init__(self, tables: Mapping[str, Table], queues: DataFrame, runs: DataFrame | None) -> None:
        self._tables = tables
        self._table = tables[self.name]
        self._queues = queues
        self._runs = runs

    def update(self, news: News) -> bool:
        """As `Derived`."""
        if news.none:
            return False
        seen = self._table.snapshot()
        begin = with_tag_names(begun(with_wanted_tags(news.messages, self._queues)), self._queues)
        with once(begin.select(*_BEGUN)) as fresh:
            told = leaf(self._told(news, fresh))
            ended = settled(leaf(fresh.unionByName(self._hit(news.journal, fresh))), told)
            if self._runs is not None:
                ended = with_forgotten(ended, told, self._runs)
            with once(self._gone_or(leaf(ended.select(*LIFECYCLES.names)), news)) as changed:
                since_us = changed.agg(F.unix_micros(F.min("sent_at"))).collect()[0][0]
                if since_us is not None:
                    rows = changed.withColumn("gone", F.lit(False))
                    self._table.merge(rows, ["queue", *_KEY], since_us, seen)
        return since_us is not None

    def _told(self, news: News, fresh: DataFrame) -> DataFrame:
        """What settles messages: the news, and what had come before the messages that are fresh."""
        kinds = [str(kind) for some in (SETTLES, BOUNDS) for kind in some]
        first = fresh.agg(F.unix_micros(F.min("sent_at"))).collect()[0][0]
        told = news.journal
        if first is not None and news.before.journal is not None:
            low = F.timestamp_micros(F.lit(first - MARGIN_US))
            before = self._tables["journal"].rows().where(F.col("at") >= low)
            told = told.where(F.col("at") < low).unionByName(before)
        return told.where(F.col("kind").isin(kinds))

    def _open(self) -> DataFrame:
        return self._table.rows().where(F.col("settled_how").isNull())

    def _hit(self, journal: DataFrame, fresh: DataFrame) -> DataFrame:
        """The open lives that the journal settles, by themselves or by a purge."""
        purge = F.col("kind") == EventKind.PURGED
        bounds = journal.where(purge).groupBy(*_UNIT).agg(F.max("offset").alias("bound"))
        single = journal.where(F.col("kind").isin([str(kind) for kind in SETTLES])).select(*_KEY)
        open_ = self._open().select(*_BEGUN)
        purged = open_.join(F.broadcast(bounds), on=_UNIT).where(F.col("offset") < F.col("bound")).select(*_BEGUN)
        both = open_.join(single, on=_KEY, how="left_semi").unionByName(purged).distinct()
        return both.join(fresh.select(*_KEY), on=_KEY, how="left_anti")

    def _gone_or(self, changed: DataFrame, news: News) -> DataFrame:
        """The rows that have `changed`, and those that are open and gone: with their queue or tag
        (deleted, when that is seen), or by its retention (expired). Of both the journal is silent.

        How late it is for the retention, the log says.
        """
        here = F.explode("tags").alias("t")
        tags = self._queues.select("incarnation", "retention_ms", here).withColumn("tag_id", F.col("t.id")).drop("t")
        still = self._open().join(changed.select(*_KEY), on=_KEY, how="left_anti").unionByName(changed)
        joined = still.where(F.col("incarnation").isNotNull()).join(
            F.broadcast(tags), on=["incarnation", "tag_id"], how="left"
        )
        times = news.journal.select("at").unionByName(news.messages.select(F.col("sent_at").alias("at")))
        joined = joined.crossJoin(F.broadcast(times.agg(F.unix_millis(F.max("at")).alias("newest_ms"))))
        end = F.unix_millis(F.greatest("sent_at", "due_at")) + F.col("retention_ms")
        late = end + _LATE_MS <= F.col("newest_ms")
        how = F.when(F.col("retention_ms").isNull(), EventKind.DELETED).when(late, EventKind.EXPIRED)
        gone = joined.where(F.col("settled_how").isNull()).withColumn("how", how).where(F.col("how").isNotNull())
        now = F.timestamp_millis(F.lit(news.now.as_of_ms))
        at = F.when(F.col("how") == EventKind.DELETED, now).otherwise(F.timestamp_millis(end))
        told = gone.withColumn("settled_how", F.col("how")).withColumn("settled_at", at).select(*LIFECYCLES.names)
        kept = changed.join(told.select(*_KEY), on=_KEY, how="left_anti")
        return kept.unionByName(told)
