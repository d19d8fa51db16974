"""The frames that `spark.frames.tables` makes of Kafka, made of tables instead."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark.frames.columns import QUEUES
from spark.frames.log import BadOption
from spark.frames.source import ALL, Span
from spark.lake.answers.views import TIMES, USAGE, named_in
from spark.lake.places.warehouse import AS_OF, CATALOG, LOG, NAMESPACE, Warehouse, note_of
from spark.lake.tables.catalog import Catalog
from spark.rules.deliveries import dead_letters_ended, deliveries_of
from spark.rules.lifecycles import lives_of

# Views of a table that a warehouse may not have yet.
_NEEDS = {
    "lifecycles": "lifecycles",
    "lives": "lifecycles",
    "dead_letters": "lifecycles",
    "queue_minutes": "queue_minutes",
    "usage_daily": "queue_minutes",
}


class Stored:
    """The frames of a warehouse in one span, as of `as_of_ms`: when the last copy had begun (epoch
    ms; None = the catalog is asked). Raises BadOption: no copy has ended yet.
    """

    def __init__(
        self, spark_session: SparkSession, warehouse: Warehouse, as_of_ms: int | None, span: Span = ALL
    ) -> None:
        catalog = Catalog(spark_session, warehouse)
        self.spark_session = catalog.spark_session  # Of all frames here.
        self._noted = _noted(catalog)
        if as_of_ms is None and AS_OF not in self._noted:
            raise warehouse.not_copied
        self.as_of_ms = int(self._noted[AS_OF]) if as_of_ms is None else as_of_ms
        self.prefix = self._noted.get(LOG, "").partition("/")[2]  # Of the topics that were copied.
        # Of the whole log: a span cuts what comes before and after a delivery too.
        self._made = span == ALL and note_of("deliveries") in self._noted
        self._tables = catalog.open()
        self._span = span

    def open_views(self, question: str) -> None:
        """Makes the views that a question in SQL names known to the session."""
        for name in named_in(question):
            self.frame(name).createOrReplaceTempView(name)

    def frame(self, name: str) -> DataFrame:
        """One of `views.VIEWS`."""
        if name in _NEEDS and note_of(_NEEDS[name]) not in self._noted:
            raise BadOption(f"--warehouse has no {_NEEDS[name]} yet: let `leaseway lake` copy once more")
        made = {
            "queues": self._queues,
            "deliveries": self._deliveries,
            "lives": self._lives,
            "dead_letters": self._dead_letters,
            "usage_daily": self._usage_daily,
        }
        return made[name]() if name in made else self._within(name)

    def _within(self, name: str) -> DataFrame:
        rows, time, span = self._tables[name].rows(), TIMES[name], self._span
        if span.from_ms is not None:
            rows = rows.where(F.col(time) >= F.timestamp_millis(F.lit(span.from_ms)))
        return rows if span.to_ms is None else rows.where(F.col(time) < F.timestamp_millis(F.lit(span.to_ms)))

    def _queues(self) -> DataFrame:
        newest = Window.partitionBy("queue").orderBy(F.desc("log_offset"))
        placed = self._tables["control"].rows().withColumn("place", F.row_number().over(newest))
        return placed.where((F.col("place") == 1) & ~F.col("deleted")).select(*QUEUES.names)

    def _deliveries(self) -> DataFrame:
        if self._made:
            return self._tables["deliveries"].rows()
        end = self.as_of_ms if self._span.to_ms is None else min(self.as_of_ms, self._span.to_ms)
        as_of = F.timestamp_millis(F.lit(end))
        return deliveries_of(self.frame("journal"), self.frame("messages"), as_of)

    def _lives(self) -> DataFrame:
        # What became of a message is as of the copy, whatever the span.
        had = self._tables["deliveries"].rows()
        return lives_of(self.frame("lifecycles"), had, F.timestamp_millis(F.lit(self.as_of_ms)))

    def _dead_letters(self) -> DataFrame:
        return dead_letters_ended(self.frame("messages"), self._tables["lifecycles"].rows(), self._queues())

    def _usage_daily(self) -> DataFrame:
        sums = [
            F.coalesce(F.sum(F.when(F.col("measure") == measure, F.col(column))), F.lit(0)).alias(shown)
            for shown, (column, measure) in USAGE.items()
        ]
        dated = self._within("queue_minutes").withColumn("date", F.to_date("minute"))
        return dated.groupBy("date", "queue", "tag", "principal").agg(*sums)


def _noted(catalog: Catalog) -> dict[str, str]:
    """What is noted; nothing where no copy has begun."""
    there = catalog.spark_session.sql(f"SHOW NAMESPACES IN {CATALOG} LIKE '{NAMESPACE}'").collect()
    return catalog.noted() if there else {}
