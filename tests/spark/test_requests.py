"""The frame of requests and its report, on records as workers write them."""

from __future__ import annotations

from datetime import date

from pyspark.sql import DataFrame, SparkSession

from schemas.records.watching import RequestRow, RequestsRecord
from schemas.wire import encode
from spark.frames.columns import REQUESTS
from spark.frames.decode import requests_of
from spark.reports.metering import requested
from tests.spark.rows import BEGIN_MS, at, records, rows_of

ROW = RequestRow("sqs", "sqs.SendMessage", "send", "alice", "orders", "ok", 3, 31, 20)
REFUSED = RequestRow("native", "send", "", "", "", "not_authenticated", 2, 4, 3)
DAY_MS = 86_400_000


def planted(spark_session: SparkSession, *given: tuple[int, str, int, list[RequestRow]]) -> DataFrame:
    """Records: ms after the beginning, worker, number, rows; and one that can't be read."""
    told = [encode(RequestsRecord(BEGIN_MS + ms, worker, number, rows)) for ms, worker, number, rows in given]
    values = [*told, told[0][:5] + b"\x01"]
    return requests_of(records(spark_session, *({"topic": "lw.requests", "value": value} for value in values)))


def test_each_row_of_a_record_is_a_row_and_a_repeat_counts_once(spark_session: SparkSession) -> None:
    first = (0, "w1", 1, [ROW, REFUSED])
    frame = planted(spark_session, first, first, (0, "w1", 2, [ROW]), (0, "w2", 1, [REFUSED]))
    assert (frame.columns, [field.dataType for field in frame.schema]) == (
        REQUESTS.names,
        [field.dataType for field in REQUESTS],
    )
    sent = ("sqs", "sqs.SendMessage", "send", "alice", "orders", "ok", 3, 31, 20)
    refused = ("native", "send", "", "", "", "not_authenticated", 2, 4, 3)
    assert rows_of(frame, *REQUESTS.names) == [
        (at(0), "w1", 1, *refused),
        (at(0), "w1", 1, *sent),
        (at(0), "w1", 2, *sent),
        (at(0), "w2", 1, *refused),
    ]


def test_the_report_adds_up_by_day_who_what_and_outcome(spark_session: SparkSession) -> None:
    more = RequestRow("sqs", "sqs.SendMessageBatch", "send", "alice", "orders", "ok", 1, 70, 70)
    frame = planted(
        spark_session, (0, "w1", 1, [ROW, more, REFUSED]), (60_000, "w2", 1, [ROW]), (DAY_MS, "w2", 2, [ROW])
    )
    day = date(2026, 3, 1)
    columns = ("date", "principal", "queue", "verb", "dialect", "outcome", "requests", "mean_us", "max_us")
    assert rows_of(requested(frame), *columns) == [
        (day, "", "", "send", "native", "not_authenticated", 2, 2, 3),
        (day, "alice", "orders", "send", "sqs", "ok", 7, 18, 70),
        (date(2026, 3, 2), "alice", "orders", "send", "sqs", "ok", 3, 10, 20),
    ]
