"""What the workers have counted and the log has no more; which FIFO sends repeat another."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.frames.columns import JOURNAL, MESSAGES, METERS, QUEUES
from spark.rules.forgotten import forgotten_sends
from spark.rules.repeats import without_repeated_sends
from tests.spark.rows import BEGIN, INCARNATION, at, frame, rows_of

MINUTE = 60_000
GONE, KEPT_MS = "f" * 12, 4 * 86_400_000


def _meter(minute: int, messages: int, life: str = INCARNATION, **more: Any) -> dict[str, Any]:
    named = {"queue": "q", "tag": "", "operation": "batch_send", **more}
    return {"minute": at(minute * MINUTE), "incarnation": life, "requests": 1, "messages": messages, **named}


def _message(offset: int, ms: int, **more: Any) -> dict[str, Any]:
    known = {"queue": "q", "incarnation": INCARNATION, "partition": 0, "status": "shown", "sender": "alice"}
    return {"offset": offset, "sent_at": at(ms), **known, **more}


def _forgotten(spark_session: SparkSession, meters: DataFrame, messages: DataFrame, *journal: Any) -> Any:
    entries = [{"incarnation": INCARNATION, "partition": 0, "queue": "q", **entry} for entry in journal]
    queues = frame(spark_session, QUEUES, {"queue": "q", "incarnation": INCARNATION, "retention_ms": KEPT_MS})
    now = F.lit(BEGIN + timedelta(hours=1))
    found = forgotten_sends(meters, messages, frame(spark_session, JOURNAL, *entries), queues, now)
    return rows_of(found, "minute", "queue", "measure", "messages", "bytes")


PURGED = {"kind": "purged", "at": at(3 * MINUTE + 500), "offset": 9}


def test_what_is_gone_before_a_purge_is_what_the_log_lacks(spark_session: SparkSession) -> None:
    meters = frame(spark_session, METERS, _meter(0, 5), _meter(3, 4), _meter(9, 7), _meter(9, 9, operation="delete"))
    kept = [_message(20 + n, 3 * MINUTE + 600) for n in range(3)]
    messages = frame(spark_session, MESSAGES, *kept, _message(30, 3 * MINUTE, sender="native"))

    # Of minute 9 nothing is gone, though the log has nothing: it was sent after the purge.
    assert _forgotten(spark_session, meters, messages, PURGED) == [
        (at(0), "q", "sent", 5, 0), (at(3 * MINUTE), "q", "sent", 1, 0)
    ]  # fmt: skip
    assert _forgotten(spark_session, meters, messages) == []


def test_an_answer_in_the_next_minute_is_no_message_that_is_gone(spark_session: SparkSession) -> None:
    meters = frame(spark_session, METERS, _meter(0, 2), _meter(1, 4), _meter(2, 1))
    kept = [_message(n, minute * MINUTE + 1) for n, minute in enumerate((0, 0, 0, 1, 1, 1, 2))]

    assert _forgotten(spark_session, meters, frame(spark_session, MESSAGES, *kept), PURGED) == []
    # By a worker whose clock is ahead.
    early = frame(spark_session, METERS, _meter(0, 4), _meter(1, 2), _meter(2, 1))
    assert _forgotten(spark_session, early, frame(spark_session, MESSAGES, *kept), PURGED) == []


def test_a_life_that_is_over_has_all_from_the_meters_but_repeats(spark_session: SparkSession) -> None:
    meters = frame(spark_session, METERS, _meter(0, 5, GONE), _meter(2, 1, GONE), _meter(0, 3))
    none = frame(spark_session, MESSAGES, *(_message(n, 5) for n in range(3)))
    repeat = {"incarnation": GONE, "kind": "skipped", "reason": "duplicate", "offset": 2}
    tags = [{**repeat, "tag_id": tag, "at": at(10 + tag)} for tag in range(2)]

    assert _forgotten(spark_session, meters, none, *tags) == [
        (at(0), "q", "sent", 4, 0), (at(2 * MINUTE), "q", "sent", 1, 0)
    ]  # fmt: skip


def test_a_send_repeats_the_first_of_its_id_for_five_minutes(spark_session: SparkSession) -> None:
    ids = [
        ("a", 0, "shown"), ("a", 5, "repeated"), ("b", 1, "shown"), ("a", 6, "shown"), ("a", 11, "repeated"),
        ("a", 12, "shown"), ("b", 6, "repeated"), ("b", 7, "shown"), (None, 7, "shown"), (None, 7, "shown"),
    ]  # fmt: skip

    def messages(scope: str | None, **more: Any) -> DataFrame:
        rows = [
            _message(n, minutes * MINUTE, dedup_id=name, dedup_scope=scope, **{"group": "g", **more})
            for n, (name, minutes, _) in enumerate(ids)
        ]
        return frame(spark_session, MESSAGES, *rows)

    def judged(given: DataFrame) -> list[str]:
        return [row["status"] for row in without_repeated_sends(given).orderBy("offset").collect()]

    assert judged(messages("queue")) == judged(messages("group")) == [status for *_, status in ids]
    assert judged(messages(None)) == ["shown"] * len(ids)
    assert judged(messages("queue", status="torn")) == ["torn"] * len(ids)


def test_the_scope_of_an_id_is_its_group_or_its_queue(spark_session: SparkSession) -> None:
    for scope, expected in (("group", ["shown", "shown"]), ("queue", ["shown", "repeated"])):
        rows = [_message(n, n, dedup_id="a", dedup_scope=scope, group=group) for n, group in enumerate("gh")]
        found = without_repeated_sends(frame(spark_session, MESSAGES, *rows)).orderBy("offset").collect()
        assert [row["status"] for row in found] == expected
