"""What was settled before the journal begins is settled: on rows typed by hand; `service/` does so
on a real log whose journal was cut.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from schemas.records import SnapshotRecord, TagSnapshot
from schemas.wire import encode
from spark.frames.columns import JOURNAL
from spark.rules.floors import RUNS, newest_snapshots, runs_of_journal, runs_of_snapshots, with_forgotten
from tests.spark.rows import INCARNATION, at, frame, records, rows_of


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
