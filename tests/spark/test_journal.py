"""The journal as rows, deliveries out of it, dead letters and queues, on rows typed by hand."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.identity import MessageId
from schemas.records import JournalEntry, QueueRecord, TagRecord
from schemas.records.settings import RedrivePolicy
from schemas.vocabulary import BOUNDS, ENDS, LEASES, NOTES, PROLONGS, SETTLES, UNDOES, EventKind
from schemas.wire import encode
from spark.frames.columns import JOURNAL, MESSAGES, QUEUES
from spark.frames.decode import entries_of, unread_of
from spark.frames.tables import queues_of
from spark.rules.deliveries import dead_letters_of, deliveries_of, leases
from spark.rules.floors import RUNS
from spark.rules.transitions import journal_of, without_repeats
from tests.spark.rows import BEGIN_MS, INCARNATION, at, frame, journal_value, records, rows_of

TAGS = [{"id": 0, "name": "default"}, {"id": 2, "name": "billing"}]


def _queues(spark_session: SparkSession) -> DataFrame:
    tags = [(t["id"], t["name"], 0, 0, [0], None) for t in TAGS]
    return frame(spark_session, QUEUES, {"queue": "orders", "incarnation": INCARNATION, "tags": tags})


def test_entries_become_a_row_per_offset_with_the_tags_name(spark_session: SparkSession) -> None:
    value = journal_value(
        JournalEntry(1, BEGIN_MS + 5, "leased", 2, [7, 9], [BEGIN_MS + 100, BEGIN_MS + 200]),
        JournalEntry(2, BEGIN_MS + 6, "dying", 0, [3], [BEGIN_MS + 300], "killed"),
        JournalEntry(3, BEGIN_MS + 7, "acked", 5, [7]),
        partition=3,
    )

    found = journal_of(
        entries_of(records(spark_session, {"value": value, "topic": "lw.journal", "ms": 50})), _queues(spark_session)
    )

    assert found.columns == JOURNAL.names
    assert rows_of(found, *JOURNAL.names) == [
        ("orders", INCARNATION, 3, 1, at(5), "leased", "billing", 2, 7, at(100), "", at(50), True),
        ("orders", INCARNATION, 3, 1, at(5), "leased", "billing", 2, 9, at(200), "", at(50), False),
        ("orders", INCARNATION, 3, 2, at(6), "dying", "default", 0, 3, at(300), "killed", at(50), True),
        ("orders", INCARNATION, 3, 3, at(7), "acked", "#5", 5, 7, None, "", at(50), True),
    ]


def test_a_delivery_is_one_though_its_tag_was_deleted_between_two_copies(spark_session: SparkSession) -> None:
    """As in tables, whose rows have the names of tags at the time of their copy."""
    unit = {"queue": "orders", "incarnation": INCARNATION, "partition": 0, "tag_id": 2, "offset": 7}
    journal = frame(
        spark_session,
        JOURNAL,
        {**unit, "seq": 1, "at": at(5), "kind": "leased", "tag": "billing", "until": at(100)},
        {**unit, "seq": 2, "at": at(9), "kind": "acked", "tag": "#2"},
    )

    assert rows_of(leases(journal), "tag", "nonce", "how", "lease_ms") == [("billing", 1, "acked", 4)]


def test_entries_that_were_appended_again_count_once(spark_session: SparkSession) -> None:
    def entry(seq: int, offset: int) -> JournalEntry:
        return JournalEntry(seq, BEGIN_MS, "acked", 0, [offset])

    given = records(
        spark_session,
        {"value": journal_value(entry(1, 10), entry(2, 20))},
        {"value": journal_value(entry(1, 10), entry(2, 20), entry(4, 40))},
        {"value": journal_value(entry(3, 30), entry(5, 50))},
        {"value": journal_value(entry(1, 11), partition=1)},
    )

    found = without_repeats(entries_of(given))

    assert rows_of(found, "partition", "seq", "offsets", "log_offset") == [
        (0, 1, [10], 0), (0, 2, [20], 0), (0, 4, [40], 1), (0, 5, [50], 2), (1, 1, [11], 3),
    ]  # fmt: skip


def test_a_journal_record_of_a_newer_schema_or_broken_is_counted(spark_session: SparkSession) -> None:
    whole = journal_value(JournalEntry(1, BEGIN_MS, "acked", 0, [1]))
    given = records(
        spark_session,
        {"value": whole},
        {"value": b"\x00\x00\x00\x00\x63new"},
        {"value": whole[:8]},
        {"value": b"raw"},
        {"value": None},
    )

    assert entries_of(given).count() == 1
    assert rows_of(unread_of(given, "journal"), "reason", "schema_id", "records", "first_offset") == [
        ("undecodable", 2, 1, 2), ("unknown_schema", 99, 1, 1), ("unknown_schema", None, 1, 3),
    ]  # fmt: skip


def _journal(spark_session: SparkSession, *given: tuple[Any, ...]) -> DataFrame:
    """Rows (seq, ms, kind, offset, until ms or None, reason) of tag 0, partition 0."""
    rows = []
    for seq, ms, kind, offset, *more in given:
        until, reason = [*more, None, ""][:2] if len(more) < 2 else more
        rows.append({
            "queue": "orders", "incarnation": INCARNATION, "partition": 0, "seq": seq, "at": at(ms), "kind": kind,
            "tag": "default",
            "tag_id": 0, "offset": offset, "until": None if until is None else at(until), "reason": reason or "",
        })  # fmt: skip
    return frame(spark_session, JOURNAL, *rows)


def _message(offset: int, ms: int, due: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "queue": "orders", "incarnation": INCARNATION, "partition": 0, "offset": offset, "sent_at": at(ms),
        "due_at": at(ms if due is None else due), "status": "shown", **more,
    }  # fmt: skip


def test_deliveries_tell_when_each_lease_began_and_how_it_ended(spark_session: SparkSession) -> None:
    journal = _journal(
        spark_session,
        (1, 1000, "leased", 1, 4000), (2, 1500, "extended", 1, 9000), (3, 2000, "acked", 1),
        (4, 1000, "leased", 2, 2000), (5, 5000, "lapsed", 2), (6, 5000, "leased", 2, 6000),
        (7, 1000, "leased", 3, 8000), (8, 3000, "released", 3, 7000), (9, 8000, "leased", 3, 9000),
        (10, 8500, "dying", 3, 9999, "killed"),
        (11, 8600, "dead", 3),
        (12, 1000, "leased", 4, 2000), (13, 2500, "dying", 4, 9999, "exhausted"), (14, 2500, "lapsed", 4),
        (15, 2600, "dead", 4),
        (16, 9000, "leased", 8, 9900), (17, 9100, "purged", 8), (18, 9200, "purged", 9),
        (19, 9300, "acked", 7), (20, 9300, "leased", 8, 9900),
        (21, 1000, "leased", 6, 2000), (22, 2500, "parked", 6, 99_999), (23, 2500, "lapsed", 6),
        (24, 2600, "unparked", 6, 2600),
        (25, 3000, "leased", 6, 9000), (26, 3500, "acked", 6),
    )  # fmt: skip
    messages = frame(spark_session, MESSAGES, _message(1, 0, 600), _message(2, 0), _message(3, 0), _message(8, 9500))

    found = deliveries_of(journal, messages, F.lit(at(9899)))

    times = ("sent_at", "visible_at", "received_at", "deadline_at", "extensions", "settled_at", "again_at")
    columns = ("offset", "nonce", "receive_count", *times, "how", "wait_ms", "lease_ms")
    assert rows_of(found, *columns) == [
        (1, 1, 1, at(0), at(600), at(1000), at(9000), 1, at(2000), None, "acked", 400, 1000),
        (2, 4, 1, at(0), at(0), at(1000), at(2000), 0, at(2000), None, "lapsed", 1000, 1000),
        (2, 6, 2, at(0), at(2000), at(5000), at(6000), 0, at(6000), None, "lapsed", 3000, 1000),
        (3, 7, 1, at(0), at(0), at(1000), at(8000), 0, at(3000), at(7000), "released", 1000, 2000),
        (3, 9, 2, at(0), at(7000), at(8000), at(9000), 0, at(8500), None, "killed", 1000, 500),
        (4, 12, 1, None, None, at(1000), at(2000), 0, at(2000), None, "lapsed", None, 1000),
        (6, 21, 1, None, None, at(1000), at(2000), 0, at(2000), None, "lapsed", None, 1000),
        (6, 25, 2, None, at(2000), at(3000), at(9000), 0, at(3500), None, "acked", 1000, 500),
        (8, 16, 1, at(9500), at(9500), at(9000), at(9900), 0, at(9200), None, "purged", 0, 200),
        (8, 20, 2, at(9500), at(9200), at(9300), at(9900), 0, None, None, "open", 100, None),
    ]


def test_a_delivery_that_no_answer_carried_is_none(spark_session: SparkSession) -> None:
    journal = _journal(
        spark_session,
        (1, 1000, "leased", 1, 4000), (2, 1100, "returned", 1, 500), (3, 1200, "leased", 1, 4200),
        (4, 1300, "acked", 1),
        (5, 1000, "leased", 2, 2000), (6, 2500, "lapsed", 2), (7, 2500, "leased", 2, 5000),
        (8, 2600, "returned", 2, 700),
        (9, 1000, "leased", 3, 2000), (10, 1100, "extended", 3, 9000), (11, 1200, "returned", 3, 2200),
    )  # fmt: skip
    messages = frame(spark_session, MESSAGES, _message(1, 500), _message(2, 700), _message(3, 0))

    found = deliveries_of(journal, messages)

    assert rows_of(found, "offset", "nonce", "receive_count", "visible_at", "how", "wait_ms") == [
        (1, 3, 1, at(500), "acked", 700),
        (2, 5, 1, at(700), "lapsed", 300),
    ]


def test_a_lease_whose_time_is_over_has_lapsed_though_nobody_has_noticed(spark_session: SparkSession) -> None:
    journal = _journal(
        spark_session,
        (1, 1000, "leased", 1, 2000), (2, 1000, "leased", 2, 3000), (3, 1000, "leased", 3, 2000),
        (4, 5000, "expired", 3),
        (5, 1000, "leased", 4, 2000), (6, 1500, "deleted", 4), (7, 1000, "leased", 5, 2000), (8, 5000, "acked", 5),
    )  # fmt: skip

    def ends(as_of: int | None) -> list[tuple[Any, ...]]:
        return rows_of(
            leases(journal, None if as_of is None else F.lit(at(as_of))), "offset", "how", "settled_at", "lease_ms"
        )

    noticed = [(3, "lapsed", at(2000), 1000), (4, "deleted", at(1500), 500), (5, "acked", at(5000), 4000)]
    assert ends(2999) == [(1, "lapsed", at(2000), 1000), (2, "open", None, None), *noticed]
    assert ends(3000) == [(1, "lapsed", at(2000), 1000), (2, "lapsed", at(3000), 2000), *noticed]
    assert ends(None) == [(1, "open", None, None), (2, "open", None, None), *noticed]


def test_a_lease_that_its_holder_sets_to_end_at_once_is_released(spark_session: SparkSession) -> None:
    """ChangeMessageVisibility(0): the next receive notices a lapse, which was none."""
    journal = _journal(
        spark_session,
        (1, 1000, "leased", 1, 9000), (2, 1200, "extended", 1, 1200), (3, 1700, "lapsed", 1),
        (4, 1700, "leased", 1, 9000),
        (5, 1800, "extended", 1, 9500), (6, 1900, "extended", 1, 1900),
        (7, 1000, "leased", 2, 9000), (8, 1200, "extended", 2, 1200), (9, 1300, "acked", 2),
        (10, 1000, "leased", 3, 9000), (11, 1200, "extended", 3, 1200), (12, 1300, "extended", 3, 3300),
        (13, 4000, "lapsed", 3),
        (14, 1000, "leased", 4, 9000), (15, 1200, "extended", 4, 1200), (16, 1300, "dying", 4, 9999, "exhausted"),
    )  # fmt: skip

    columns = (
        "offset",
        "nonce",
        "received_at",
        "deadline_at",
        "extensions",
        "settled_at",
        "again_at",
        "how",
        "before_at",
    )
    assert rows_of(leases(journal), *columns) == [
        (1, 1, at(1000), at(9000), 0, at(1200), at(1200), "released", None),
        (1, 4, at(1700), at(9500), 1, at(1900), at(1900), "released", at(1200)),
        (2, 7, at(1000), at(9000), 0, at(1300), None, "acked", None),
        (3, 10, at(1000), at(3300), 1, at(3300), None, "lapsed", None),
        (4, 14, at(1000), at(9000), 0, at(1200), at(1200), "released", None),
    ]


def test_what_was_given_back_undelivered_is_no_delivery_and_an_unknown_kind_changes_none(
    spark_session: SparkSession,
) -> None:
    journal = _journal(
        spark_session,
        (1, 1000, "leased", 1, 9000), (2, 1100, "returned", 1, 1100), (3, 2000, "leased", 1, 9000),
        (4, 2100, "of tomorrow", 1),
        (5, 2200, "acked", 1),
    )  # fmt: skip

    found = deliveries_of(journal, frame(spark_session, MESSAGES, _message(1, 500)))

    assert rows_of(found, "offset", "nonce", "receive_count", "visible_at", "how") == [(1, 3, 1, at(500), "acked")]


def test_each_kind_of_entry_is_in_a_table_that_says_what_it_does() -> None:
    tables = (SETTLES, BOUNDS, LEASES, PROLONGS, ENDS, UNDOES, NOTES)
    assert frozenset(EventKind) <= frozenset().union(*tables)


def test_dead_letters_name_their_source_and_what_became_of_them(spark_session: SparkSession) -> None:
    source = MessageId("00112233aabb", 5, (1 << 39) + 77).text(b"secret")

    def origin(reason: str) -> dict[str, Any]:
        return {
            "from_id": source, "from_tag": "billing", "original_id": "first", "original_queue": "orders",
            "original_tag": "default",
            "reason": reason, "receive_count": 3, "first_received_at_ms": 0, "original_sent_at_ms": BEGIN_MS - 500,
            "moved_at_ms": 0, "note": f"note of {reason}",
        }  # fmt: skip

    messages = frame(
        spark_session, MESSAGES,
        _message(0, 100, origin=origin("exhausted")), _message(1, 100, origin=origin("killed")),
        _message(2, 100, origin=origin("killed")),
        _message(3, 100, origin=origin("")), _message(4, 100), _message(5, 100, origin=origin("killed")),
        {**_message(6, 100, origin=origin("killed")), "status": "torn"}, _message(7, 100, origin=origin("killed")),
    )  # fmt: skip
    journal = _journal(
        spark_session, (1, 900, "moved", 1), (2, 950, "skipped", 2, None, "duplicate_move"), (3, 999, "purged", 1)
    )
    queues = frame(
        spark_session,
        QUEUES,
        {"queue": "pay", "incarnation": "00112233aabb"},
        {"queue": "orders", "incarnation": INCARNATION},
    )

    runs = frame(spark_session, RUNS, {"incarnation": INCARNATION, "partition": 0, "tag_id": 0, "first": 4, "end": 6})
    found = dead_letters_of(messages, journal, runs, queues)

    of_source = ("source_queue", "source_tag", "source_partition", "source_offset")
    columns = (
        "offset",
        "address",
        "reason",
        "note",
        *of_source,
        "first_received_at",
        "lived_ms",
        "settled_how",
        "settled_at",
    )
    place = ("pay", "billing", 5, (1 << 39) + 77, None, 600)
    assert rows_of(found, *columns) == [
        (0, f"{INCARNATION}/0/0", "exhausted", "note of exhausted", *place, "purged", at(999)),
        (1, f"{INCARNATION}/0/1", "killed", "note of killed", *place, "moved", at(900)),
        (5, f"{INCARNATION}/0/5", "killed", "note of killed", *place, "settled", at(100)),
        (7, f"{INCARNATION}/0/7", "killed", "note of killed", *place, None, None),
    ]


def test_queues_are_the_newest_record_of_each_key(spark_session: SparkSession) -> None:
    def queue(name: str, lease_ms: int, tags: list[TagRecord], policy: RedrivePolicy | None = None) -> bytes:
        return encode(
            QueueRecord(
                name,
                INCARNATION,
                "alice",
                BEGIN_MS,
                BEGIN_MS + 1,
                partitions=4,
                delay_ms=0,
                lease_ms=lease_ms,
                retention_ms=60_000,
                max_message_bytes=1024,
                receive_wait_ms=0,
                max_receive_messages=10,
                tags=tags,
                next_tag_id=3,
                redrive_policy=policy,
            )
        )

    tags = [TagRecord(0, "default", BEGIN_MS, 0, [0, 0])]
    given = records(
        spark_session,
        {"key": b"queue/orders", "value": queue("orders", 1000, tags)},
        {"key": b"queue/gone", "value": queue("gone", 1000, tags)},
        {"key": b"queue/orders", "value": queue("orders", 2000, tags, RedrivePolicy("dlq", 3))},
        {"key": b"queue/gone", "value": None},
        {"key": b"key/alice", "value": b"\x00\x00\x00\x00\x04"},
        {"key": b"queue/newer", "value": b"\x00\x00\x00\x00\x63"},
    )

    columns = (
        "queue",
        "owner",
        "created_at",
        "lease_ms",
        "dead_letter_queue",
        "max_receive_count",
        "purged_at",
        "tags",
    )
    assert rows_of(queues_of(given), *columns) == [
        ("orders", "alice", at(0), 2000, "dlq", 3, None, [(0, "default", BEGIN_MS, 0, [0, 0], None)])
    ]
