"""What was settled before the journal begins is settled: on rows typed by hand, and on a real log
whose journal was cut.
"""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from schemas.records import SnapshotRecord, TagSnapshot
from schemas.wire import decode, encode
from spark.frames.columns import JOURNAL
from spark.frames.log import Log
from spark.frames.tables import Tables
from spark.reports.backlog import tag_lag
from spark.reports.staging import write_staging
from spark.rules.floors import RUNS, newest_snapshots, runs_of_journal, runs_of_snapshots, with_forgotten
from tests.conftest import StartUp
from tests.services import Up
from tests.spark.drive import Person
from tests.spark.rows import INCARNATION, at, frame, records, rows_of

QUEUE, SENT, BATCH = "old", 1_400, 100
OPEN = {7, 1_111}  # Of the first messages: all others are acked, and the acks forgotten.


def test_snapshots_name_what_is_settled_and_the_newest_of_a_unit_counts(spark_session: SparkSession) -> None:
    def value(seq: int, floor: int, *runs: tuple[int, int]) -> bytes:
        tag = TagSnapshot(2, floor, [first for first, _ in runs], [count for _, count in runs], [])
        return encode(SnapshotRecord("orders", INCARNATION, 3, seq, 0, [TagSnapshot(0, 5, [], [], []), tag]))

    key, gone = f"{INCARNATION}/3".encode(), b"ffffffffffff/0"
    given = records(
        spark_session, {"key": key, "value": value(9, 40)}, {"key": key, "value": value(10, 50, (60, 2), (70, 1))},
        {"key": b"position", "value": b"any"}, {"key": gone, "value": value(1, 1)}, {"key": gone, "value": None},
    )  # fmt: skip

    found = runs_of_snapshots(newest_snapshots(given))

    assert rows_of(found, *RUNS.names) == [
        (INCARNATION, 3, 0, 0, 5), (INCARNATION, 3, 2, 0, 50), (INCARNATION, 3, 2, 60, 62), (INCARNATION, 3, 2, 70, 71),
    ]  # fmt: skip


def test_what_only_floors_settle_was_settled_before_the_journal_begins(spark_session: SparkSession) -> None:
    unit = {"incarnation": INCARNATION, "partition": 0, "tag_id": 0}
    journal = frame(
        spark_session, JOURNAL, {**unit, "seq": 8, "kind": "floor", "offset": 3, "logged_at": at(500)},
        {**unit, "seq": 9, "kind": "floor", "offset": 9_000, "logged_at": at(501), "tag_id": 1},
    )  # fmt: skip
    runs = frame(spark_session, RUNS, {**unit, "first": 0, "end": 1}, {**unit, "first": 4_095, "end": 8_200})
    shape = frame(spark_session, JOURNAL).selectExpr(
        "incarnation", "partition", "tag_id", "offset", "at AS sent_at", "at AS settled_at", "kind AS settled_how"
    )

    def row(offset: int, sent: int, settled: int | None = None, how: str | None = None) -> dict[str, Any]:
        return {
            **unit,
            "offset": offset,
            "sent_at": at(sent),
            "settled_at": None if settled is None else at(settled),
            "settled_how": how,
        }

    given = frame(
        spark_session, shape.schema, row(0, 1), row(2, 600), row(2, 1, 550, "acked"), row(3, 1), row(4_095, 1),
        row(8_199, 1),
        row(8_200, 1), {**row(8_200, 1), "tag_id": 1},
    )  # fmt: skip

    assert rows_of(runs_of_journal(journal), *RUNS.names) == [(INCARNATION, 0, 0, 0, 3), (INCARNATION, 0, 1, 0, 9_000)]
    assert rows_of(with_forgotten(given, journal, runs), "offset", "tag_id", "settled_at", "settled_how") == [
        (0, 0, at(500), "settled"), (2, 0, at(550), "acked"), (2, 0, at(600), "settled"), (3, 0, None, None),
        (4095, 0, at(500), "settled"), (8199, 0, at(500), "settled"), (8200, 0, None, None),
        (8200, 1, at(500), "settled"),
    ]  # fmt: skip


def test_messages_whose_acks_the_journal_has_forgotten_are_no_backlog(
    leaseway_up: StartUp, spark_session: SparkSession, tmp_path: Any
) -> None:
    """As after 30 days: the journal's records are deleted, snapshots and messages are there."""
    up = leaseway_up("--workers", "1")
    up.wait_ready(120)
    log = Log(up.run["kafka"]["service"], options=up.kafka_properties)
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

    staging = write_staging(Tables(spark_session, log), str(tmp_path), lambda name: None)
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
