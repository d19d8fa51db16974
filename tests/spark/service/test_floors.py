"""What was settled before the journal begins is settled, on a real log whose journal was cut."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from schemas.records import SnapshotRecord
from schemas.wire import decode
from spark.reports.backlog import tag_lag
from spark.reports.sources.log import LogSource
from tests.services import Up
from tests.spark.drive import Person
from tests.spark.rows import rows_of
from tests.spark.service.conftest import Service

QUEUE, SENT, BATCH = "old", 1_400, 100
OPEN = {7, 1_111}  # Of the first messages: all others are acked, and the acks forgotten.


def test_messages_whose_acks_the_journal_has_forgotten_are_no_backlog(
    service: Service, spark_session: SparkSession, tmp_path: Path
) -> None:
    """As after 30 days: the journal's records are deleted, snapshots and messages are there."""
    up = service.up
    with contextlib.closing(Person(up.endpoint, "olga")) as olga:
        olga.call("POST", "/v1/queues", {"name": QUEUE, "partitions": 1, "lease_seconds": 600})
        for first in range(0, SENT, BATCH):
            bodies = [{"body": str(n)} for n in range(first, first + BATCH)]
            olga.call("POST", f"/v1/queues/{QUEUE}/messages", {"messages": bodies})
        for _ in range(0, SENT, BATCH):
            got = olga.call("POST", f"/v1/queues/{QUEUE}/receive", {"max": BATCH, "wait_seconds": 5})["messages"]
            olga.call(
                "POST", f"/v1/queues/{QUEUE}/ack", {"handles": [m["handle"] for m in got if int(m["body"]) not in OPEN]}
            )
        _forget_the_journal(up, SENT - len(OPEN))
        olga.call("POST", f"/v1/queues/{QUEUE}/messages", {"messages": [{"body": "new"}] * 5})
        [late] = olga.call("POST", f"/v1/queues/{QUEUE}/receive", {"max": 1, "wait_seconds": 5})["messages"]
        olga.call("POST", f"/v1/queues/{QUEUE}/ack", {"handles": [late["handle"]]})
        assert olga.call("GET", f"/v1/queues/{QUEUE}")["tags"][0]["backlog"] == len(OPEN) + 4
    time.sleep(1)

    staging = LogSource(spark_session, service.log, datetime.fromtimestamp(0, UTC), datetime.now(UTC)).staging(
        str(tmp_path), lambda name: None
    )
    lifecycles = staging.lifecycles.where(f"queue = '{QUEUE}'")

    assert rows_of(lifecycles.groupBy("settled_how").count(), "settled_how", "count") == [
        ("acked", 1), ("settled", SENT - len(OPEN)), (None, len(OPEN) + 4),
    ]  # fmt: skip
    assert _open(lifecycles) == (len(OPEN) + 4, min(OPEN))


def _open(lifecycles: DataFrame) -> tuple[int, int]:
    [row] = tag_lag(lifecycles, datetime.now(UTC)).collect()
    return row["open"], row["floor"]


def _forget_the_journal(up: Up, settled: int) -> None:
    """Deletes all records of the journal once a snapshot has what they say of one queue."""
    consumer = Consumer({**up.kafka_client, "group.id": "forget", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition("lw.snapshot", number, 0) for number in _partitions(consumer, "lw.snapshot")])
        end = time.monotonic() + 60
        while not _holds(consumer, settled):
            assert time.monotonic() < end, "no snapshot has all acks"
        journal = [TopicPartition("lw.journal", number) for number in _partitions(consumer, "lw.journal")]
        ends = [
            TopicPartition("lw.journal", part.partition, consumer.get_watermark_offsets(part, 10)[1])
            for part in journal
        ]
    finally:
        consumer.close()
    admin = AdminClient(up.kafka_client)
    for done in admin.delete_records([part for part in ends if part.offset]).values():
        done.result(30)


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    return list(consumer.list_topics(topic, 10).topics[topic].partitions)


def _holds(consumer: Consumer, settled: int) -> bool:
    record = consumer.poll(1.0)
    value = None if record is None else record.value()
    read = decode(value) if value else None
    if not isinstance(read, SnapshotRecord) or read.queue != QUEUE:
        return False
    [tag] = read.tags
    return tag.floor + sum(tag.settled_count) == settled
