"""Tables of Iceberg: appended to by whoever saw them last, changed by key, compacted."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.frames.failures import causes_of
from spark.frames.source import java_class
from spark.lake.offsets import PROPERTY, Held, parse, text_of
from spark.lake.places.warehouse import CATALOG, NAMESPACE
from spark.lake.shapes import Shape

ICEBERG = "org.apache.iceberg."


class Overtaken(Exception):
    """Somebody else has added rows to a table since it was looked at; nothing of ours was added."""


class Table:
    """One table. Whoever appends must have looked at it before: `held` does."""

    def __init__(self, spark_session: SparkSession, name: str, shape: Shape) -> None:
        self.spark_session = spark_session
        self.name = name
        self.shape = shape
        self._path = f"{CATALOG}.{NAMESPACE}.{name}"
        self._seen: int | None = None
        self._util = java_class(spark_session, ICEBERG + "spark.Spark3Util")

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
        with self._refused():
            writer.overwrite(F.lit(False))
        return int(self._table().currentSnapshot().summary().getOrDefault("added-records", "0"))

    def snapshot(self) -> int | None:
        """The id of the newest snapshot; None = no row was ever added."""
        newest = self._table().currentSnapshot()
        return None if newest is None else int(newest.snapshotId())

    def added(self, after: int | None, until: int | None) -> DataFrame:
        """The rows that were appended by the snapshots behind `after` up to `until` (None = there
        is none yet); all, where `after` is None or forgotten.
        """
        if until is None or after is None or self._table().snapshot(after) is None:
            return self.rows()
        if after == until:
            return self.rows().limit(0)
        reader = self.spark_session.read.option("start-snapshot-id", str(after)).option("end-snapshot-id", str(until))
        return reader.table(self._path).select(*self.shape.columns.names)

    def merge(self, rows: DataFrame, key: Sequence[str], since_us: int, seen: int | None) -> None:
        """Puts rows in the place of those of their key, and removes those that are `gone` (a column
        that `rows` have besides). Only the table's rows whose time of the day is `since_us` (epoch
        microseconds) or later are looked at. Raises Overtaken: somebody else has changed the table
        since the snapshot that was `seen`; then nothing was changed.
        """
        if self.snapshot() != seen:
            raise self._overtaken()
        # A message of no known queue has no incarnation.
        same = [F.col(f"s.{name}").eqNullSafe(F.col(f"{self.name}.{name}")) for name in key]
        near = F.col(f"{self.name}.{self.shape.day}") >= F.timestamp_micros(F.lit(since_us))
        merge = rows.alias("s").mergeInto(self._path, functools.reduce(Column.__and__, same, near))
        removed = merge.whenMatched(F.col("s.gone")).delete()
        with self._refused():
            removed.whenMatched().updateAll().whenNotMatched(~F.col("s.gone")).insertAll().merge()

    @contextlib.contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            if _is_validation(error):
                raise self._overtaken() from None
            raise

    def _overtaken(self) -> Overtaken:
        return Overtaken(f"{self.name}: another job has changed it meanwhile")

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
        telling, before = _telling(table), int(time.time() * 1000) - keep_ms
        if telling is not None:
            before = min(before, int(telling.timestampMillis()))
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
        return java_class(self.spark_session, ICEBERG + "spark.actions.SparkActions").get(session)

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
    return any(name == ICEBERG + "exceptions.ValidationException" for name, _ in causes_of(error))
