"""Loads the classes that small questions and copies into tables need, and ends the JVM in order:
`leaseway jars spark` keeps them in a class archive. It asks no Kafka.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from schemas.records import Message
from schemas.wire import encode
from spark.frames.decode import messages_of
from spark.frames.log import Log
from spark.frames.session import session
from spark.frames.source import admin_of, java_class, one_topic, read
from spark.frames.wanted import empty_views
from spark.lake.maintenance import maintain
from spark.lake.places.warehouse import Warehouse
from spark.lake.tables.catalog import Catalog

QUESTIONS = (
    "SELECT 1",
    "SELECT queue, how, count(*), percentile(wait_ms, 0.99) FROM deliveries WHERE queue = 'a' GROUP BY 1, 2 ORDER BY 3",
    "SELECT *, row_number() OVER (PARTITION BY queue ORDER BY dead_at) FROM dead_letters JOIN messages USING (queue)",
    "SELECT from_json('{\"a\": 1}', 'a int'), to_json(struct(id)), sum(id) OVER () FROM range(20)",
)
_EMPTY = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
_DESERIALIZERS = ("key.deserializer", "value.deserializer")
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


def main() -> None:
    """Asks, and waits until the JVM has written what it was told to."""
    made = session("leaseway jars")
    # Or what turns out to have no rows ends a question early.
    made.conf.set("spark.sql.adaptive.optimizer.excludedRules", _EMPTY)
    empty_views(made)
    for question in QUESTIONS:
        made.sql(question).collect()
    _decode(made)
    with tempfile.TemporaryDirectory() as folder:
        _copy(made, Path(folder))
    _knock(made)
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no other way to its JVM
    made.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def _decode(spark_session: SparkSession) -> None:
    """Reads a record as it comes from Kafka."""
    schema = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    )
    headers = ", headers array<struct<key string, value binary>>"
    row = (None, encode(Message(b"{}", body_is_text=True)), "lw.q.a", 0, 0, datetime.now(UTC), 0, [("a", b"b")])
    records = spark_session.createDataFrame([row], schema + headers)
    messages_of(records, "lw.q.").groupBy("queue").agg(F.count("*"), F.max("body_text")).collect()


def _copy(spark_session: SparkSession, folder: Path) -> None:
    """Writes a row to each table of a warehouse, and reads and keeps them."""
    catalog = Catalog(spark_session, Warehouse(folder))
    tables = catalog.open()
    for table in tables.values():
        table.held()
        now = {name: F.timestamp_seconds(F.lit(int(time.time()))) for name in [table.shape.day] if name}
        columns = [
            now.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name) for field in table.shape.columns
        ]
        table.append(catalog.spark_session.range(1).select(*columns), {})
        table.rows().collect()
        table.compact(1)
        table.expire(0)
        table.remove_orphans(0)
    maintain(catalog, tables, tables)


def _knock(spark_session: SparkSession) -> None:
    """Has Kafka's clients and Spark's source look for a broker where there is none."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    nowhere = Log(address, "none", {"default.api.timeout.ms": "200", "request.timeout.ms": "100"})
    with contextlib.suppress(Py4JJavaError), admin_of(spark_session, nowhere) as admin:
        admin.listTopics().names().get()
    options = java_class(spark_session, "java.util.HashMap")()
    for name, value in {**nowhere.client_options, **dict.fromkeys(_DESERIALIZERS, _BYTES)}.items():
        options.put(name, value)
    consumer = java_class(spark_session, "org.apache.kafka.clients.consumer.KafkaConsumer")(options)
    with contextlib.suppress(Py4JJavaError):
        consumer.listTopics()
    consumer.close()
    with contextlib.suppress(Py4JJavaError):
        messages_of(read(spark_session, nowhere, one_topic("none")), "none").collect()


if __name__ == "__main__":
    main()
