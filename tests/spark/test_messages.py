"""Records of a queue's topic as messages: ours, native ones, broken ones, foreign ones, atomic
batches.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from schemas.records import Attribute, BatchMark, Message, Origin
from schemas.wire import encode
from spark.frames.columns import QUEUES
from spark.frames.decode import messages_of, unread_of
from spark.frames.tables import with_queues
from spark.rules.atomic_batches import judged
from tests.spark.rows import BEGIN, INCARNATION, at, frame, records, rows_of

PREFIX = "lw.q."


def _messages(spark_session: SparkSession, *given: dict[str, Any]) -> DataFrame:
    return messages_of(records(spark_session, *given), PREFIX)


def test_a_message_is_read_in_full(spark_session: SparkSession) -> None:
    origin = Origin("id-1", "billing", "id-0", "first", "default", "killed", 3, 11, 12, 13, "no such customer")
    message = Message(
        "grüß".encode(),
        {"n": Attribute("number", b"7")},
        1500,
        9000,
        "alice",
        origin,
        None,
        "g",
        "d",
        2,
        body_is_text=True,
    )

    found = with_queues(
        _messages(spark_session, {"value": encode(message), "partition": 3, "offset": 41, "ms": 20}),
        _queues(spark_session),
    )

    [got] = found.collect()
    assert got.asDict(recursive=True) == {
        "queue": "orders", "incarnation": INCARNATION, "partition": 3, "offset": 41, "sent_at": at(20),
        "due_at": at(1520),
        "status": "shown", "native": False, "schema_id": 1, "body": bytearray("grüß".encode()), "body_text": "grüß",
        "body_bytes": 6,
        "attributes": {"n": {"type": "number", "value": bytearray(b"7")}}, "delay_ms": 1500, "lease_ms": 9000,
        "sender": "alice",
        "group": "g", "dedup_id": "d", "dedup_scope": "group", "priority": 2, "batch": None,
        "origin": {"from_id": "id-1", "from_tag": "billing", "original_id": "id-0", "original_queue": "first",
                   "original_tag": "default",
                   "reason": "killed", "receive_count": 3, "first_received_at_ms": 11, "original_sent_at_ms": 12,
                   "moved_at_ms": 13, "note": "no such customer"},
    }  # fmt: skip


def _queues(spark_session: SparkSession) -> DataFrame:
    return frame(
        spark_session, QUEUES, {"queue": "orders", "incarnation": INCARNATION, "delay_ms": 250, "dedup_scope": "group"}
    )


def test_a_native_record_is_a_message_with_the_queues_delay(spark_session: SparkSession) -> None:
    headers = [("a", b"first"), ("", b"no name"), ("a", b"last"), ("b", b"\xff\xfe"), ("c" * 300, None)]

    found = with_queues(
        _messages(spark_session, {"value": b"raw", "headers": headers}, {"value": None}), _queues(spark_session)
    )

    columns = ("offset", "native", "status", "body", "body_text", "sender", "due_at", "attributes")
    assert rows_of(found, *columns) == [
        (0, True, "shown", bytearray(b"raw"), "raw", "native", at(250), {
            "a": ("string", bytearray(b"last")), "b": ("binary", bytearray(b"\xff\xfe")),
            "c" * 256: ("string", bytearray()),
        }),
        (1, True, "shown", bytearray(), "", "native", at(250), {}),
    ]  # fmt: skip


def test_a_body_that_is_no_text_has_no_text(spark_session: SparkSession) -> None:
    binary = encode(Message(b"\x00\xff", sender="a", body_is_text=False))
    found = _messages(spark_session, {"value": binary}, {"value": b"\xc3("})
    assert rows_of(found, "offset", "body_text", "body_bytes") == [(0, None, 2), (1, None, 2)]


def test_what_claims_our_schema_and_cannot_be_read_is_undecodable_and_counted(spark_session: SparkSession) -> None:
    whole = encode(Message(b"x" * 50, sender="a"))
    given = records(spark_session, {"value": whole}, {"value": whole[:20]}, {"value": b"\x00\x00\x00\x00\x01"})

    assert rows_of(messages_of(given, PREFIX), "offset", "status", "native") == [
        (0, "shown", False), (1, "undecodable", False), (2, "undecodable", False),
    ]  # fmt: skip
    assert rows_of(unread_of(given, "message"), "reason", "schema_id", "records", "first_offset", "last_offset") == [
        ("undecodable", 1, 2, 1, 2)
    ]


def test_a_schema_that_this_build_does_not_know_is_a_native_message_and_counted(spark_session: SparkSession) -> None:
    newer = b"\x00\x00\x00\x00\x63whatever"
    given = records(
        spark_session,
        {"value": newer},
        {"value": b"\x00\x00\x00\x00\x02journal"},
        {"value": b"raw"},
        {"value": b"\x00\x01"},
    )

    assert rows_of(messages_of(given, PREFIX), "offset", "status", "native", "schema_id") == [
        (0, "shown", True, 99), (1, "shown", True, 2), (2, "shown", True, None), (3, "shown", True, None),
    ]  # fmt: skip
    assert rows_of(unread_of(given, "message"), "reason", "schema_id", "records") == [
        ("unknown_schema", 2, 1),
        ("unknown_schema", 99, 1),
    ]


def test_an_atomic_batch_is_shown_only_when_it_is_whole_within_30_seconds(spark_session: SparkSession) -> None:
    def part(id: str, index: int, size: int, ms: int, partition: int = 0) -> dict[str, Any]:
        return {
            "value": encode(Message(id.encode(), sender="a", batch=BatchMark(id, index, size))),
            "ms": ms,
            "partition": partition,
        }

    given = _messages(
        spark_session,
        part("whole", 0, 2, 0),
        part("young", 0, 2, 50_000),
        part("whole", 1, 2, 30_000),
        part("slow", 0, 2, 0),
        part("slow", 1, 2, 30_001),
        part("torn", 0, 3, 0),
        part("torn", 2, 3, 10),
        part("headless", 1, 2, 59_000),
        part("whole", 0, 2, 0, partition=1),
        {"value": encode(Message(b"single", sender="a"))},
        part("recent", 0, 2, 19_500, partition=2),  # the newest record anywhere is not 40 s younger
    )

    found = judged(given)

    assert rows_of(found, "offset", "body_text", "status") == [
        (0, "whole", "shown"), (1, "young", "undecided"), (10, "recent", "undecided"), (2, "whole", "shown"),
        (3, "slow", "torn"),
        (4, "slow", "torn"),
        (5, "torn", "torn"), (6, "torn", "torn"), (7, "headless", "torn"), (8, "whole", "torn"), (9, "single", "shown"),
    ]  # fmt: skip


def test_of_several_copies_of_a_commit_the_first_that_was_not_late_is_shown(spark_session: SparkSession) -> None:
    begin_ms = int(BEGIN.timestamp() * 1000)

    def copy(
        name: str, ms: int, began_ms: int, reason: str = "committed", batch: BatchMark | None = None
    ) -> dict[str, Any]:
        origin = Origin(name, "", "t", "orders", "", reason, 0, 0, 0, begin_ms + began_ms)
        return {"value": encode(Message(name.encode(), sender="a", origin=origin, batch=batch)), "ms": ms}

    given = _messages(
        spark_session,
        copy("late", 30_001, 0),
        copy("once", 30_000, 0),
        copy("late", 40_000, 40_000),
        copy("twice", 41_000, 40_000),
        copy("twice", 42_000, 41_000),
        copy("torn", 43_000, 40_000, batch=BatchMark("b", 0, 2)),
        copy("torn", 44_000, 40_000),
        copy("moved", 100_000, 0, "killed"),
        copy("moved", 100_000, 0, "killed"),
    )

    found = judged(given)

    assert rows_of(found, "offset", "body_text", "status") == [
        (0, "late", "repeated"), (1, "once", "shown"), (2, "late", "shown"), (3, "twice", "shown"),
        (4, "twice", "repeated"),
        (5, "torn", "torn"), (6, "torn", "shown"), (7, "moved", "shown"), (8, "moved", "shown"),
    ]  # fmt: skip
