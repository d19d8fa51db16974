"""The deliveries as a table. Each round makes anew those of the messages to which something has
happened since the last one, and no others; so what a round costs is what is new.

A round may be ended anywhere, and made again: how far the table has got is noted behind it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.vocabulary import ENDS, LEASES, PROLONGS, UNDOES
from spark.frames.columns import DELIVERIES
from spark.frames.session import leaf, once
from spark.lake.derived.made import MARGIN_US, News
from spark.lake.tables.table import Table
from spark.rules.deliveries import deliveries_of

_KEY = ["incarnation", "partition", "tag_id", "offset"]
_UNIT = ["incarnation", "partition", "tag_id"]
_PLACE = ["incarnation", "partition", "offset"]
# Kafka keeps the journal, and a queue its messages, for so long at most by default: what happened
# to a message before is not looked for.
_BEFORE_US = 31 * 86_400_000_000


class Deliveries:
    """The table of deliveries of one warehouse, as `Derived`."""

    name = "deliveries"

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._table = tables[self.name]
        self._journal = tables["journal"]
        self._messages = tables["messages"]

    def update(self, news: News) -> bool:
        """As `Derived`."""
        seen, as_of_ms = self._table.snapshot(), news.now.as_of_ms
        with once(self._touched(news)) as touched:
            count, since_us = touched.agg(F.count("*"), F.unix_micros(F.min("at"))).collect()[0]
            if count:
                self._make(touched, min(1000 * as_of_ms, since_us) - MARGIN_US, as_of_ms, seen)
        return bool(count)

    def _touched(self, news: News) -> DataFrame:
        """The messages, by tag, whose deliveries may be others than the table has: of which the
        journal tells, that a purge may have taken, whose lease has run out, or that have come after
        the journal. `at` = from when on the journal tells of them.
        """
        kinds = [str(kind) for some in (LEASES, PROLONGS, ENDS, UNDOES) for kind in some]
        told, from_ms, as_of_ms = news.journal, news.before.as_of_ms, news.now.as_of_ms
        purged = told.where(F.col("kind") == "purged").select(*_UNIT).distinct()
        there = self._table.rows().withColumn("at", F.col("received_at"))
        # A purge may be written down after a lease has run out that it has ended.
        without_end = there.where(
            F.col("how").isin("open", "lapsed") & (F.col("deadline_at") > _moment(1000 * from_ms - MARGIN_US))
        )
        lapsed = without_end.where((F.col("how") == "open") & (F.col("deadline_at") <= _moment(1000 * as_of_ms)))
        of_news = (
            told.where(F.col("kind").isin(kinds)),
            without_end.join(F.broadcast(purged), on=_UNIT, how="left_semi"),
            there.where(F.col("sent_at").isNull()).join(news.messages, on=_PLACE, how="left_semi"),
        )
        some = [lapsed] if news.none else [lapsed, *of_news]
        found, *more = (rows.select(*_KEY, "at") for rows in some)
        for rows in more:
            found = found.unionByName(rows)
        first = found.groupBy(*_KEY).agg(F.min("at").alias("at"))
        near = there.where(F.col("at") >= _moment(1000 * as_of_ms - _BEFORE_US)).select(*_KEY, "at")
        known = near.join(first.select(*_KEY), on=_KEY, how="left_semi")
        return first.unionByName(known).groupBy(*_KEY).agg(F.min("at").alias("at"))

    def _make(self, touched: DataFrame, since_us: int, as_of_ms: int, seen: int | None) -> None:
        tables = (self._journal.rows(), self._messages.rows())
        with once(made_anew(*tables, touched.select(*_KEY), since_us, _moment(1000 * as_of_ms))) as rows:
            near = self._table.rows().where(F.col("received_at") >= _moment(since_us))
            # A delivery that no answer carried was none.
            gone = near.join(touched, on=_KEY, how="left_semi").join(rows, on=[*_KEY, "nonce"], how="left_anti")
            changed = rows.withColumn("gone", F.lit(False)).unionByName(
                gone.select(*DELIVERIES.names).withColumn("gone", F.lit(True))
            )
            self._table.merge(leaf(changed), [*_KEY, "nonce"], since_us, seen)


def made_anew(journal: DataFrame, messages: DataFrame, touched: DataFrame, since_us: int, as_of: Column) -> DataFrame:
    """DELIVERIES at `as_of` of the messages, by tag, that are `touched` (incarnation, partition,
    tag_id, offset). Reads JOURNAL from `since_us` on (epoch microseconds), before which none of
    these deliveries began, and MESSAGES of the 31 days before.
    """
    purges = F.col("kind") == "purged"
    journal = journal.where(F.col("at") >= _moment(since_us))
    messages = messages.where(F.col("sent_at") >= _moment(since_us - _BEFORE_US))
    about = journal.where(~purges).join(touched, on=_KEY, how="left_semi")
    told = leaf(journal.where(purges).unionByName(about))
    places = touched.select(*_PLACE).distinct()
    return deliveries_of(told, messages.join(places, on=_PLACE, how="left_semi"), as_of)


def _moment(us: int) -> Column:
    return F.timestamp_micros(F.lit(us))
