"""Hand-typed rows: records as Kafka gives them, frames as tables, and frames back as plain rows to
compare.

Values come from `schemas.wire`, which Spark must agree with; expected rows are typed by hand in the
tests.
"""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StructType

from schemas.records import JournalEntry, JournalRecord
from schemas.wire import encode
from spark.frames.columns import BYTES, INT, LONG, TEXT, TIME, row
from spark.frames.source import java_class

BEGIN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BEGIN_MS = int(BEGIN.timestamp() * 1000)
INCARNATION = "0a1b2c3d4e5f"
RECORDS = row(
    key=BYTES,
    value=BYTES,
    topic=TEXT,
    partition=INT,
    offset=LONG,
    timestamp=TIME,
    headers=ArrayType(row(key=TEXT, value=BYTES)),
)


def at(ms: int) -> datetime:
    """So many milliseconds after the beginning of the test's time, as frames give it back (UTC
    without a zone).
    """
    return (BEGIN + timedelta(milliseconds=ms)).replace(tzinfo=None)


def records(spark_session: SparkSession, *given: dict[str, Any]) -> DataFrame:
    """Kafka records; what a row does not name is topic lw.q.orders, partition 0, its place as
    offset, time 0, no headers.
    """
    rows = []
    for place, fields in enumerate(given):
        whole = {
            "key": None,
            "value": None,
            "topic": "lw.q.orders",
            "partition": 0,
            "offset": place,
            "headers": None,
            **fields,
        }
        rows.append(
            tuple(
                (BEGIN + timedelta(milliseconds=fields.get("ms", 0))) if n == "timestamp" else whole[n]
                for n in RECORDS.names
            )
        )
    return _frame(spark_session, RECORDS, rows)


def frame(spark_session: SparkSession, shape: StructType, *given: dict[str, Any]) -> DataFrame:
    """A frame of that shape; columns that a row does not name are null."""
    return _frame(spark_session, shape, [tuple(fields.get(name) for name in shape.names) for fields in given])


def _frame(spark_session: SparkSession, shape: StructType, rows: list[tuple[Any, ...]]) -> DataFrame:
    """As `createDataFrame` makes it, which sends all rows through a process of Python, each time
    that somebody looks at them.
    """
    pickled = pickle.dumps([shape.toInternal(row) for row in rows], protocol=4)
    there = java_class(spark_session, "net.razorvine.pickle.Unpickler")().loads(pickled)
    java: Any = spark_session.sparkContext._jsc.parallelize(there, 1)
    return DataFrame(spark_session._jsparkSession.applySchemaToPythonRDD(java.rdd(), shape.json()), spark_session)


def journal_value(*entries: JournalEntry, partition: int = 0) -> bytes:
    """A journal record of queue `orders`."""
    return encode(JournalRecord("orders", INCARNATION, partition, list(entries)))


def rows_of(given: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The columns as sorted tuples."""
    found = [tuple(r) for r in given.select(*columns).collect()]
    return sorted(found, key=repr)
