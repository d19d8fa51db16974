"""Transactions of Kafka-native producers: Spark reads what was committed, as the engine does."""

from __future__ import annotations

import secrets

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # as in engine/log/admin.py
from pyspark.sql import SparkSession

from schemas.topics import queue_topic
from spark.frames.log import Log
from spark.frames.source import ALL, all_queues, read, stream
from tests.services import Services


def test_spark_reads_no_aborted_record_and_no_open_one(spark_session: SparkSession, stack: Services) -> None:
    prefix = f"t{secrets.token_hex(4)}"
    topic = queue_topic(prefix, "q")
    admin = AdminClient({"bootstrap.servers": stack.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    plain = Producer({"bootstrap.servers": stack.bootstrap})
    plain.produce(topic, b"plain", partition=0)
    assert plain.flush(20) == 0
    writer = Producer({"bootstrap.servers": stack.bootstrap, "transactional.id": prefix})
    writer.init_transactions(20)
    for value, end in (
        (b"aborted", writer.abort_transaction),
        (b"committed", writer.commit_transaction),
        (b"open", None),
    ):
        writer.begin_transaction()
        writer.produce(topic, value, partition=0)
        assert writer.flush(20) == 0
        if end is not None:
            end(20)
    log = Log(stack.bootstrap, prefix)
    rows = read(spark_session, log, all_queues(log), ALL).select("value").collect()
    assert sorted(bytes(row.value) for row in rows) == [b"committed", b"plain"]
    query = (
        stream(spark_session, log, all_queues(log))
        .writeStream.format("memory")
        .queryName(prefix)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert sorted(bytes(row.value) for row in spark_session.sql(f"SELECT value FROM {prefix}").collect()) == [
        b"committed",
        b"plain",
    ]
    writer.commit_transaction(20)
    rows = read(spark_session, log, all_queues(log), ALL).select("value").collect()
    assert sorted(bytes(row.value) for row in rows) == [b"committed", b"open", b"plain"]
