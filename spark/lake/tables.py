"""Tables of Iceberg: made when they are missing, appended to by whoever saw them last, compacted.

Iceberg's own API through the session's JVM: it commits a table with its order at once, and needs no
extension of Spark's SQL.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.frames.failures import causes_of
from spark.frames.session import beside
from spark.frames.source import java_class
from spark.lake.offsets import PROPERTY, Held, parse, text_of
from spark.lake.places.warehouse import CATALOG, NAMESPACE, Warehouse
from spark.lake.shapes import SHAPES, Shape

_ICEBERG = "org.apache.iceberg."
_PROPERTIES = {
    "format-version": "2",
    # A commit takes one task for each day, so that a day gets one file.
    "write.distribution-mode": "hash",
    # Each commit writes one; those before the newest hundred are deleted.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}


class Overtaken(Exception):
    """Somebody else has added rows to a table since it was looked at; nothing of ours was added."""


class Catalog:
    """The tables of a warehouse. A session knows one catalog by a name for as long as it lives, so
    each has a session of its own, in which all work on its tables is done.
    """

    def __init__(self, spark_session: SparkSession, warehouse: Warehouse) -> None:
        self.spark_session = beside(spark_session)
        for name, value in warehouse.settings.items():
            self.spark_session.conf.set(name, value)
        self._session: Any = self.spark_session._jsparkSession  # noqa: SLF001 - PySpark knows nothing of Iceberg's tables
        self._util = self._java("spark.Spark3Util")

    def open(self) -> dict[str, Table]:
        """All tables by name; those that are missing are made. Raises Py4JJavaError."""
        self.spark_session.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{NAMESPACE}")
        return {name: self._opened(name, shape) for name, shape in SHAPES.items()}

    def noted(self) -> dict[str, str]:
        """What is noted of the warehouse as a whole."""
        return {str(key): str(value) for key, value in self._catalog().loadNamespaceMetadata(self._space()).items()}

    def note(self, notes: Mapping[str, str]) -> None:
        """Notes something of the warehouse as a whole."""
        self._catalog().setProperties(self._space(), dict(notes))

    def _catalog(self) -> Any:
        return self._util.loadIcebergCatalog(self._session, CATALOG)

    def _space(self) -> Any:
        return self._java("catalog.TableIdentifier").parse(f"{NAMESPACE}.x").namespace()

    def _java(self, name: str) -> Any:
        return java_class(self.spark_session, _ICEBERG + name)

    def _opened(self, name: str, shape: Shape) -> Table:
        catalog = self._catalog()
        place = self._java("catalog.TableIdentifier").parse(f"{NAMESPACE}.{name}")
        if not catalog.tableExists(place):
            try:
                self._make(catalog, place, shape)
            except Py4JJavaError as error:
                if not str(error.java_exception.getClass().getName()).endswith("AlreadyExistsException"):
                    raise
        table = Table(self.spark_session, name, shape)
        table.widen()
        return table

    def _make(self, catalog: Any, place: Any, shape: Shape) -> None:
        columns = self._java("spark.SparkSchemaUtil").convert(self._session.parseDataType(shape.columns.json()))
        spec = self._java("PartitionSpec").builderFor(columns)
        order, nulls_first = self._java("SortOrder").builderFor(columns), self._java("NullOrder").NULLS_FIRST
        for column in shape.order:
            order = order.asc(column, nulls_first)
        maker = catalog.buildTable(place, columns).withSortOrder(order.build())
        maker = maker.withPartitionSpec((spec if shape.day is None else spec.day(shape.day)).build())
        maker.withProperties(_PROPERTIES).create()


class Table:
    """One table. Whoever appends must have looked at it before: `held` does."""

    def __init__(self, spark_session: SparkSession, name: str, shape: Shape) -> None:
        self.spark_session = spark_session
        self.name = name
        self.shape = shape
        self._path = f"{CATALOG}.{NAMESPACE}.{name}"
        self._seen: int | None = None
        self._util = java_class(spark_session, _ICEBERG + "spark.Spark3Util")

    def rows(self) -> DataFrame:
        """All rows, as of now."""
        return self.spark_session.table(self._path).select(*self.shape.columns.names)

    def held(self) -> dict[str, Held]:
        """What the table has of each topic, as its newest snapshot that says so does: a compaction
        says nothing.
        """
        table = self._table()
        newest = table.currentSnapshot()
        self._seen = None if newest is None else int(newest.snapshotId())
        snapshot = _telling(table)
        return {} if snapshot is None else parse(str(snapshot.summary().get(PROPERTY)))

    def append(self, rows: DataFrame, held: Mapping[str, Held]) -> int:
        """Adds rows and what the table has with them, by one commit; how many. Raises Overtaken
        unless nobody has added rows since `held` was called.

        Iceberg lets appends pass each other. So this is an overwrite of no rows: it is refused
        where any file came since the snapshot that was seen.
        """
        frame = rows.select(*(F.col(field.name).cast(field.dataType) for field in self.shape.columns))
        writer = frame.writeTo(self._path).option("isolation-level", "serializable")
        writer = writer.option(f"snapshot-property.{PROPERTY}", text_of(held))
        if self._seen is not None:
            writer = writer.option("validate-from-snapshot-id", str(self._seen))
        try:
            writer.overwrite(F.lit(False))
        except Py4JJavaError as error:
            if _is_validation(error):
                raise Overtaken(f"{self.name}: another job has added rows meanwhile") from None
            raise
        return int(self._table().currentSnapshot().summary().getOrDefault("added-records", "0"))

    def widen(self) -> None:
        """Adds the columns that this build has and the table has not."""
        there = set(self.spark_session.table(self._path).columns)
        for field in self.shape.columns:
            if field.name not in there:
                kind = field.dataType.simpleString()
                self.spark_session.sql(f"ALTER TABLE {self._path} ADD COLUMNS (`{field.name}` {kind})")

    def compact(self, most_files: int) -> int:
        """Writes the files of each day that has `most_files` and more as one or few, sorted as
        all are. How many it has read.
        """
        action = self._actions().rewriteDataFiles(self._table()).sort()
        done = action.option("min-input-files", str(most_files)).execute()
        return int(done.rewrittenDataFilesCount())

    def expire(self, keep_ms: int) -> int:
        """Forgets the snapshots that are older, and deletes the files that only they had; never the
        one that tells how far the table has got. How many files were deleted.
        """
        table = self._table()
        telling = _telling(table)
        if telling is None:
            return 0
        before = min(int(time.time() * 1000) - keep_ms, int(telling.timestampMillis()))
        done = self._actions().expireSnapshots(table).expireOlderThan(before).execute()
        counts = (done.deletedDataFilesCount(), done.deletedManifestsCount(), done.deletedManifestListsCount())
        return sum(map(int, counts))

    def remove_orphans(self, older_ms: int) -> int:
        """Deletes the files of the table's folder that no snapshot has and that are older: those of
        commits that were not. How many.
        """
        table = self._table()
        if table.currentSnapshot() is None:
            return 0  # It may have no folder yet.
        action = self._actions().deleteOrphanFiles(table).olderThan(int(time.time() * 1000) - older_ms)
        # Hadoop, which lists files otherwise, knows no S3 here.
        listed_by_iceberg = str(table.location()).startswith("s3")
        done = action.usePrefixListing(listed_by_iceberg).execute()
        places, count = done.orphanFileLocations().iterator(), 0
        while places.hasNext():
            places.next()
            count += 1
        return count

    def files(self) -> int:
        """How many files of rows the newest snapshot has."""
        snapshot = self._table().currentSnapshot()
        return 0 if snapshot is None else int(snapshot.summary().getOrDefault("total-data-files", "0"))

    def _actions(self) -> Any:
        """What Iceberg does to tables. It has threads, which inherit the session of this one."""
        session = self.spark_session._jsparkSession  # noqa: SLF001
        sessions = java_class(self.spark_session, "org.apache.spark.sql.classic.SparkSession$")
        getattr(sessions, "MODULE$").setActiveSession(session)
        return java_class(self.spark_session, _ICEBERG + "spark.actions.SparkActions").get(session)

    def _table(self) -> Any:
        return self._util.loadIcebergTable(self.spark_session._jsparkSession, self._path)  # noqa: SLF001


def _telling(table: Any) -> Any:
    """The newest snapshot that says how far the table has got; None = there is none."""
    snapshot = table.currentSnapshot()
    while snapshot is not None and snapshot.summary().get(PROPERTY) is None:
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)
    return snapshot


def _is_validation(error: Py4JJavaError) -> bool:
    return any(name == _ICEBERG + "exceptions.ValidationException" for name, _ in causes_of(error))
