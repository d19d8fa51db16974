"""Micro-batch after micro-batch gives what one look at all of it gives: repeats, atomic batches,
leases.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from schemas.records import JournalEntry
from spark.frames.columns import JOURNAL
from spark.frames.decode import entries_of
from spark.live.streaming_state import RECORDS, SEQS, decided, new_entries, next_seqs, still_open, with_open_leases
from spark.rules.deliveries import leases
from tests.spark.rows import BEGIN_MS, INCARNATION, at, frame, journal_value, records, rows_of


def test_entries_that_an_earlier_micro_batch_had_are_no_news(spark_session: SparkSession) -> None:
    def entry(seq: int) -> JournalEntry:
        return JournalEntry(seq, BEGIN_MS, "acked", 0, [seq])

    seqs = frame(spark_session, SEQS, {"incarnation": INCARNATION, "partition": 0, "last_seq": 4})
    entries = entries_of(
        records(
            spark_session,
            {"value": journal_value(entry(3), entry(4), entry(5))},
            {"value": journal_value(entry(1), partition=1)},
        )
    )

    assert rows_of(new_entries(entries, seqs), "partition", "seq") == [(0, 5), (1, 1)]
    assert rows_of(next_seqs(entries, seqs), "incarnation", "partition", "last_seq") == [
        (INCARNATION, 0, 5),
        (INCARNATION, 1, 1),
    ]


def _record(offset: int, ms: int, batch: tuple[str, int, int] | None = None, status: str = "shown") -> dict[str, Any]:
    return {
        "queue": "orders",
        "partition": 0,
        "offset": offset,
        "sent_at": at(ms),
        "status": status,
        "body_bytes": 1,
        "batch": batch,
    }


def test_a_batch_that_two_micro_batches_bring_is_shown_with_the_second(spark_session: SparkSession) -> None:
    pending = frame(
        spark_session, RECORDS, _record(0, 0, ("a", 0, 2), "undecided"), _record(1, 10_000, ("b", 0, 3), "undecided"),
        _record(2, 0, ("c", 0, 2), "undecided"),
    )  # fmt: skip
    new = frame(
        spark_session, RECORDS, _record(3, 30_000, ("a", 1, 2)), _record(4, 35_000), _record(5, 35_000, ("d", 1, 2))
    )

    assert rows_of(decided(new, pending), "offset", "status") == [
        (0, "shown"), (1, "undecided"), (2, "torn"), (3, "shown"), (4, "shown"), (5, "torn"),
    ]  # fmt: skip


def _journal(spark_session: SparkSession, *given: tuple[int, int, str, int, int | None]) -> DataFrame:
    rows = [
        {"queue": "orders", "incarnation": INCARNATION, "partition": 0, "seq": seq, "at": at(ms), "kind": kind,
         "tag": "default",
         "tag_id": 0, "offset": offset, "until": None if until is None else at(until), "reason": ""}
        for seq, ms, kind, offset, until in given
    ]  # fmt: skip
    return frame(spark_session, JOURNAL, *rows)


def test_a_lease_is_carried_until_something_ends_it(spark_session: SparkSession) -> None:
    carried = _journal(spark_session, (1, 0, "leased", 1, 900), (2, 10, "extended", 1, 1900), (3, 0, "leased", 2, 900))
    new = _journal(
        spark_session, (5, 500, "acked", 1, None), (6, 1000, "lapsed", 2, None), (7, 1000, "leased", 2, 2000),
        (8, 1000, "leased", 7, 2000),
        (9, 1000, "leased", 3, 2000), (10, 1001, "purged", 3, None), (11, 1002, "leased", 4, 3000),
        (12, 1003, "leased", 5, 3000), (13, 1004, "returned", 5, 0),
    )  # fmt: skip

    both = with_open_leases(new, carried)

    assert rows_of(leases(both), "offset", "nonce", "how", "lease_ms") == [
        (1, 1, "acked", 500), (2, 3, "lapsed", 900), (2, 7, "purged", 1), (3, 9, "open", None), (4, 11, "open", None),
        (7, 8, "open", None),
    ]  # fmt: skip
    assert rows_of(still_open(both), "offset", "seq", "kind") == [(3, 9, "leased"), (4, 11, "leased"), (7, 8, "leased")]
