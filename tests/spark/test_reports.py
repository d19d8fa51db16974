"""Each report on rows typed by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.frames.columns import COUNTS, DELIVERIES, DELIVERY_ENDS, JOURNAL, LIFECYCLES, MESSAGES, QUEUES
from spark.page.figures import DAY_REQUESTS, exact_daily
from spark.reports.backlog import backlog, tag_lag
from spark.reports.counts import daily_of, events, sends
from spark.reports.latency import latency, lease_histogram, slow_leases
from spark.reports.metering import metering
from spark.reports.redelivery import poison, redelivery
from spark.rules.deliveries import leases
from spark.rules.floors import RUNS
from spark.rules.lifecycles import lifecycles_of, with_wanted_tags
from tests.spark.rows import BEGIN, INCARNATION, at, frame, rows_of
from tests.unit.schemas.test_filters import TYPES

MINUTE = 60_000


def _delivery(offset: int, nonce: int, count: int, received: int, how: str, **more: Any) -> dict[str, Any]:
    times: dict[str, Any] = {n: at(more.pop(n)) for n in ("settled_at", "deadline_at", "again_at") if n in more}
    return {
        "queue": "q", "incarnation": INCARNATION, "tag": "default", "tag_id": 0, "partition": 0, "offset": offset,
        "nonce": nonce,
        "receive_count": count, "sent_at": at(0), "received_at": at(received), "how": how, "extensions": 0, **times,
        **more,
    }  # fmt: skip


def _deliveries(spark_session: SparkSession) -> DataFrame:
    """Offset 1: acked at once. 2: lapsed, then acked late. 3: released twice with a delay, then
    lapsed. 4: open, its message gone.
    """
    return frame(
        spark_session, DELIVERIES,
        _delivery(1, 1, 1, 100, "acked", settled_at=200, deadline_at=1100, wait_ms=100, lease_ms=100, body_bytes=10),
        _delivery(2, 2, 1, 300, "lapsed", settled_at=1300, deadline_at=1300, wait_ms=300, lease_ms=1000, body_bytes=20),
        _delivery(2, 3, 2, MINUTE, "acked", settled_at=MINUTE + 1500, deadline_at=MINUTE + 1000, wait_ms=5,
                  lease_ms=1500, body_bytes=20),
        _delivery(3, 4, 1, 500, "released", settled_at=600, deadline_at=1500, again_at=700, wait_ms=500, lease_ms=100,
                  body_bytes=30),
        _delivery(3, 5, 2, 800, "released", settled_at=1700, deadline_at=1800, again_at=MINUTE, wait_ms=100,
                  lease_ms=900, body_bytes=30),
        _delivery(3, 6, 3, MINUTE + 1, "lapsed", settled_at=MINUTE + 9, deadline_at=MINUTE + 9, wait_ms=1, lease_ms=8,
                  body_bytes=30),
        {**_delivery(4, 7, 1, 900, "open", deadline_at=1900), "sent_at": None},
    )  # fmt: skip


def _life(offset: int, ms: int, due: int, settled: int | None, how: str | None) -> dict[str, Any]:
    return {
        "queue": "q", "incarnation": INCARNATION, "partition": 0, "offset": offset, "tag_id": 0, "tag": "default",
        "sent_at": at(ms),
        "due_at": at(due), "body_bytes": 1, "settled_at": None if settled is None else at(settled), "settled_how": how,
    }  # fmt: skip


def _lives(spark_session: SparkSession) -> DataFrame:
    return frame(
        spark_session, LIFECYCLES,
        _life(1, 0, 0, 200, "acked"), _life(2, 0, 0, MINUTE + 1500, "acked"), _life(3, 0, 0, None, None),
        _life(5, 10, 5 * MINUTE, 2 * MINUTE, "deleted"), _life(6, 20, 20, 20, "skipped"),
        _life(7, 30, 2 * MINUTE, None, None),
    )  # fmt: skip


def test_latency_has_first_waits_and_acked_leases_by_minute(spark_session: SparkSession) -> None:
    found = latency(_deliveries(spark_session), "minute")
    assert rows_of(found, "queue", "tag", "minute", "measure", "count", "mean_ms", "p50_ms", "p99_ms", "max_ms") == [
        ("q", "default", at(0), "receive_to_ack", 1, 100.0, 100, 100, 100),
        ("q", "default", at(0), "send_to_receive", 3, 300.0, 300, 500, 500),
        ("q", "default", at(MINUTE), "receive_to_ack", 1, 1500.0, 1500, 1500, 1500),
    ]


def test_the_lease_histogram_counts_acked_leases_in_powers_of_two(spark_session: SparkSession) -> None:
    found = lease_histogram(_deliveries(spark_session))
    assert rows_of(found, "minute", "below_ms", "count", "sum_ms") == [
        (at(0), 128, 1, 100),
        (at(MINUTE), 2048, 1, 1500),
    ]


def test_slow_leases_are_late_near_or_lapsed(spark_session: SparkSession) -> None:
    found = slow_leases(_deliveries(spark_session))
    assert rows_of(found, "hour", "leases", "lapsed", "late", "near", "longest_ms") == [(at(0), 7, 2, 1, 1, 1500)]


def test_backlog_counts_what_is_open_leased_and_delayed_at_each_minutes_end(spark_session: SparkSession) -> None:
    begin, end = BEGIN + timedelta(minutes=1), BEGIN + timedelta(minutes=3)
    found = backlog(_lives(spark_session), _deliveries(spark_session), begin, end)
    # Minute 1 has what was before it: 1 and 2 are gone, 3, 5, 7 are open; 5 and 7 wait for their
    # time, 3's release is over.
    assert rows_of(found, "queue", "tag", "minute", "backlog", "in_flight", "delayed", "ready") == [
        ("q", "default", at(MINUTE), 3, 0, 2, 1),
        ("q", "default", at(2 * MINUTE), 2, 0, 0, 2),
    ]


def test_tag_lag_begins_at_the_first_open_offset(spark_session: SparkSession) -> None:
    found = tag_lag(_lives(spark_session), BEGIN + timedelta(minutes=1))
    columns = ("partition", "messages", "open", "floor", "end_offset", "lag", "oldest_sent_at", "oldest_ms")
    assert rows_of(found, *columns) == [(0, 6, 4, 2, 8, 6, at(0), MINUTE)]


def test_redelivery_counts_deliveries_after_the_first(spark_session: SparkSession) -> None:
    columns = (
        "messages",
        "deliveries",
        "redeliveries",
        "redelivered",
        "most_deliveries",
        "acked",
        "released",
        "lapsed",
        "open",
    )
    assert rows_of(redelivery(_deliveries(spark_session)), *columns) == [(4, 7, 3, 2, 3, 2, 2, 2, 1)]


def test_each_way_in_which_a_delivery_ends_has_a_column(spark_session: SparkSession) -> None:
    kinds = {
        "acked": 1,
        "released": 2,
        "lapsed": 3,
        "dying": 4,
        "purged": 9,
        "expired": 5,
        "deleted": 6,
        "moved": 7,
        "leased": 12,
    }
    entry = {
        "queue": "q",
        "incarnation": INCARNATION,
        "partition": 0,
        "tag": "default",
        "tag_id": 0,
        "reason": "killed",
    }
    leased = [
        {**entry, "seq": n, "at": at(0), "kind": "leased", "offset": n, "until": at(9)} for n in (*range(1, 9), 12)
    ]
    ended = [
        {**entry, "seq": 20 + n, "at": at(1), "kind": kind, "offset": n}
        for kind, n in kinds.items()
        if kind != "leased"
    ]
    journal = frame(spark_session, JOURNAL, *leased, *ended)

    [row] = redelivery(leases(journal).withColumn("sent_at", F.lit(at(0)))).collect()

    assert {how: row[how] for how in DELIVERY_ENDS} == dict.fromkeys(DELIVERY_ENDS, 1)
    assert row["deliveries"] == sum(row[how] for how in DELIVERY_ENDS) == 9


def test_poison_messages_were_delivered_three_times_and_never_acked(spark_session: SparkSession) -> None:
    found = poison(_deliveries(spark_session), _lives(spark_session))
    assert rows_of(found, "queue", "offset", "deliveries", "last_how", "settled_how", "rank") == [
        ("q", 3, 3, "lapsed", None, 1)
    ]


def _tally(ms: int, measure: str, requests: int, messages: int, bytes: int = 0, **more: str) -> dict[str, Any]:
    return {"minute": at(ms), "queue": "q", "tag": "", "principal": "", "measure": measure, "requests": requests,
            "messages": messages,
            "bytes": bytes, **more}  # fmt: skip


def test_daily_statistics_and_metering_add_tallies_up_by_utc_day(spark_session: SparkSession) -> None:
    counts = frame(
        spark_session, COUNTS,
        _tally(0, "sent", 2, 5, 50, principal="alice"), _tally(MINUTE, "sent", 1, 1, 10, principal="bob"),
        _tally(0, "leased", 3, 6, tag="default"), _tally(0, "extended", 1, 1, tag="default"),
        _tally(0, "released", 2, 2, tag="default"),
        _tally(0, "acked", 2, 4, tag="default"), _tally(720 * MINUTE, "acked", 1, 1, tag="default"),
    )  # fmt: skip
    queues = frame(spark_session, QUEUES, {"queue": "q", "owner": "olga"})

    days = daily_of(counts)
    meters = metering(counts, _deliveries(spark_session), queues)

    columns = ("queueName", "tagName", "SEND_REQUEST", "RECEIVE_REQUEST", "CHANGE_REQUEST", "DELETE_REQUEST",
               "sentMessageNumber",
               "sentBytes", "receivedMessageNumber", "deletedMessageNumber")  # fmt: skip
    first, second = at(0).date(), at(720 * MINUTE).date()
    assert rows_of(days, "date", *columns) == [
        (first, "q", "", 3, 0, 0, 0, 6, 60, 0, 0),
        (first, "q", "default", 0, 3, 3, 2, 0, 0, 6, 4),
        (second, "q", "default", 0, 0, 0, 1, 0, 0, 0, 1),
    ]
    assert rows_of(meters, "date", "principal", "role", "queueName", "requests", "messages", "bytes") == [
        (first, "alice", "sender", "q", 2, 5, 50), (first, "bob", "sender", "q", 1, 1, 10),
        (first, "olga", "owner", "q", 8, 7, 140),
        (second, "olga", "owner", "q", 1, 0, 0),
    ]  # fmt: skip


def test_tallies_count_shown_records_whole_batches_once_and_moves_apart(spark_session: SparkSession) -> None:
    def message(offset: int, **more: Any) -> dict[str, Any]:
        return {
            "queue": "q",
            "offset": offset,
            "sent_at": at(1),
            "status": "shown",
            "sender": "alice",
            "body_bytes": 7,
            **more,
        }

    moved = tuple("killed" if name == "reason" else None for name in MESSAGES["origin"].dataType.names)  # type: ignore[attr-defined]
    messages = frame(
        spark_session, MESSAGES, message(1), message(2, batch=("b", 0, 2)), message(3, batch=("b", 1, 2)),
        message(4, status="torn"),
        message(5, status="undecided"), message(6, origin=moved), message(7, sender="", body_bytes=1),
    )  # fmt: skip
    kinds = [("acked", 1, True), ("acked", 2, False), ("purged", 9, True), ("floor", 9, True), ("copied", 1, True)]
    kinds += [("leased", 1, True), ("leased", 2, False), ("leased", 3, False), ("returned", 3, True)]
    journal = frame(
        spark_session, JOURNAL,
        *({"queue": "q", "tag": "t", "at": at(1), "kind": kind, "offset": offset, "leads": leads}
          for kind, offset, leads in kinds),
    )  # fmt: skip

    assert rows_of(sends(messages), "principal", "measure", "requests", "messages", "bytes") == [
        ("", "sent", 1, 1, 1), ("alice", "arrived", 1, 1, 7), ("alice", "sent", 2, 3, 21),
    ]  # fmt: skip
    assert rows_of(events(journal), "minute", "tag", "measure", "requests", "messages") == [
        (at(0), "t", "acked", 1, 2), (at(0), "t", "leased", 1, 2), (at(0), "t", "purged", 1, 0),
    ]  # fmt: skip


def test_what_was_given_back_undelivered_was_not_received_and_a_lease_set_to_end_is_released(
    spark_session: SparkSession,
) -> None:
    kinds = [
        ("leased", 9, True),
        ("leased", 9, False),
        ("returned", 1, True),
        ("extended", 9, True),
        ("extended", 1, True),
    ]
    journal = frame(
        spark_session, JOURNAL,
        *({"queue": "q", "tag": "t", "at": at(1), "kind": kind, "offset": 1, "until": at(until), "leads": leads}
          for kind, until, leads in kinds),
    )  # fmt: skip

    assert rows_of(events(journal), "measure", "requests", "messages") == [
        ("extended", 1, 1),
        ("leased", 1, 1),
        ("released", 1, 1),
    ]


def test_a_tag_wants_the_types_that_the_service_takes_for_its_own(spark_session: SparkSession) -> None:
    tags = [
        (number, f"tag{number}", 0, 0, [0], ([("a", wanted, b"1")], "AND"))
        for number, (_, wanted, _) in enumerate(TYPES)
    ]
    queues = frame(spark_session, QUEUES, {"queue": "q", "incarnation": INCARNATION, "tags": tags})
    each = [
        {"incarnation": INCARNATION, "partition": 0, "offset": offset, "attributes": {"a": (given, b"1")}}
        for offset, (given, _, _) in enumerate(TYPES)
    ]

    found = with_wanted_tags(frame(spark_session, MESSAGES, *each), queues).collect()

    assert [number in found[number]["tag_ids"] for number in range(len(TYPES))] == [fits for _, _, fits in TYPES]


def test_a_message_lives_under_each_tag_that_wants_it(spark_session: SparkSession) -> None:
    def tag(id: int, name: str, start: int, conditions: Any = None, operator: str = "AND") -> Any:
        return (id, name, 0, 0, [start], None if conditions is None else (conditions, operator))

    red, any_size = ("colour", "string", b"red"), ("size", "empty", b"")
    tags = [
        tag(0, "default", 0),
        tag(1, "late", 2),
        tag(2, "both", 0, [red, any_size]),
        tag(3, "either", 0, [red, any_size], "OR"),
    ]
    queues = frame(spark_session, QUEUES, {"queue": "q", "incarnation": INCARNATION, "tags": tags})

    def message(offset: int, incarnation: str | None = INCARNATION, **attributes: bytes) -> dict[str, Any]:
        typed = {name: ("string", value) for name, value in attributes.items()}
        return {"queue": "q", "incarnation": incarnation, "partition": 0, "offset": offset, "sent_at": at(0),
                "due_at": at(0),
                "status": "shown", "attributes": typed}  # fmt: skip

    messages = frame(
        spark_session,
        MESSAGES,
        message(1, colour=b"red"),
        message(2, size=b"1", colour=b"red"),
        message(3, colour=b"blue"),
        message(4, None),
    )
    entry = {"queue": "q", "incarnation": INCARNATION, "partition": 0, "reason": ""}
    journal = frame(
        spark_session, JOURNAL, {**entry, "seq": 1, "at": at(5), "kind": "acked", "tag_id": 0, "offset": 1},
        {**entry, "seq": 2, "at": at(6), "kind": "purged", "tag_id": 0, "offset": 3},
        {**entry, "seq": 3, "at": at(7), "kind": "dead", "tag_id": 2, "offset": 2},
    )  # fmt: skip

    found = lifecycles_of(with_wanted_tags(messages, queues), journal, frame(spark_session, RUNS), queues)

    assert rows_of(found, "offset", "tag", "settled_at", "settled_how") == [
        (1, "default", at(5), "acked"), (1, "either", None, None),
        (2, "both", at(7), "dead"), (2, "default", at(6), "purged"), (2, "either", None, None), (2, "late", None, None),
        (3, "default", None, None), (3, "late", None, None), (4, "default", None, None),
    ]  # fmt: skip


def test_the_page_shows_the_requests_that_workers_have_counted(spark_session: SparkSession) -> None:
    day = at(0).date()
    log = daily_of(
        frame(
            spark_session, COUNTS, _tally(0, "sent", 2, 5, 50), _tally(0, "leased", 3, 6, tag="a"),
            _tally(0, "acked", 2, 2, tag="b"),
        )
    )  # fmt: skip
    counted = [("q", "", "send_request", 9), ("q", "", "single_send_request", 8), ("q", "a", "receive_request", 40),
               ("other", "a", "receive_request", 1)]  # fmt: skip
    statistics = spark_session.createDataFrame(
        [(day, *row) for row in counted], "date date, queue string, tag string, subject string, requests long"
    )

    found = exact_daily(log, statistics)

    columns = ("queueName", "tagName", *DAY_REQUESTS, "sentMessageNumber", "receivedMessageNumber", "exact")
    assert rows_of(found, "date", *columns) == [
        (day, "other", "a", 0, 1, 0, 0, 0, 0, True), (day, "q", "", 9, 0, 0, 0, 5, 0, True),
        (day, "q", "a", 0, 40, 0, 0, 0, 6, True), (day, "q", "b", 0, 0, 0, 2, 0, 0, False),
    ]  # fmt: skip
