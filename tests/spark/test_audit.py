"""The audit frame and its report, on records as workers write them."""

from __future__ import annotations

from datetime import date
from typing import Any

from pyspark.sql import SparkSession

from schemas.records.watching import AuditRecord
from schemas.wire import encode
from spark.frames.columns import AUDIT
from spark.frames.decode import audit_of
from spark.reports.metering import audited
from tests.spark.rows import BEGIN_MS, at, records, rows_of

ASKED = AuditRecord(
    at_ms=BEGIN_MS,
    worker="w1",
    number=1,
    principal="alice",
    key_id="a1",
    peer="10.0.0.1",
    operation="sqs.CreateQueue",
    verb="create_queue",
    queue="orders",
    tag="",
    subject="",
    outcome="done",
    status=200,
    error="",
    request_id="r1",
    suppressed=0,
)


def asked(**fields: Any) -> AuditRecord:
    return AuditRecord(**{name: getattr(ASKED, name) for name in AuditRecord.__struct_fields__} | fields)


def planted(spark_session: SparkSession, *given: AuditRecord, broken: bytes = b"\x00\x00\x00\x00\x19\x01") -> Any:
    values = [*map(encode, given), broken]
    return audit_of(records(spark_session, *({"topic": "lw.audit", "value": value} for value in values)))


def test_a_row_has_every_field_and_a_repeat_counts_once(spark_session: SparkSession) -> None:
    frame = planted(
        spark_session, ASKED, ASKED, asked(number=2, tag="t", subject="s", suppressed=3), asked(worker="w2")
    )
    assert frame.columns == AUDIT.names
    columns = ("at", "worker", "number", "principal", "key_id", "peer", "operation", "verb", "queue")
    first = (at(0), "w1", 1, "alice", "a1", "10.0.0.1", "sqs.CreateQueue", "create_queue", "orders")
    assert rows_of(frame, *columns) == [first, (*first[:2], 2, *first[3:]), (first[0], "w2", *first[2:])]
    rest = ("number", "tag", "subject", "outcome", "status", "error", "request_id", "suppressed")
    assert rows_of(frame.where("worker = 'w1'"), *rest) == [
        (1, "", "", "done", 200, "", "r1", 0),
        (2, "t", "s", "done", 200, "", "r1", 3),
    ]


def test_the_report_counts_by_day_principal_verb_queue_and_outcome(spark_session: SparkSession) -> None:
    refused = {"principal": "bob", "verb": "send", "outcome": "refused", "status": 403}
    frame = planted(
        spark_session,
        ASKED,
        asked(number=2, error="not_authorised", **refused),
        asked(number=3, at_ms=BEGIN_MS + 5, error="queue_not_found", suppressed=7, **refused),
        # Refused before the engine was asked: the dialect's name stands for the verb.
        asked(
            number=4,
            principal="",
            verb="",
            operation="sqs.SendMessage",
            queue="",
            outcome="refused",
            error="not_authenticated",
        ),
        asked(number=5, at_ms=BEGIN_MS + 86_400_000),
    )
    day = date(2026, 3, 1)
    assert rows_of(
        audited(frame),
        "date",
        "principal",
        "verb",
        "queue",
        "outcome",
        "requests",
        "suppressed",
        "last_at",
        "last_error",
    ) == [
        (day, "", "sqs.SendMessage", "", "refused", 1, 0, at(0), "not_authenticated"),
        (day, "alice", "create_queue", "orders", "done", 1, 0, at(0), ""),
        (day, "bob", "send", "orders", "refused", 2, 7, at(5), "queue_not_found"),
        (date(2026, 3, 2), "alice", "create_queue", "orders", "done", 1, 0, at(86_400_000), ""),
    ]
