"""Tables of Iceberg beside the frames over Kafka: the same rows, each once, whatever happens to the
job.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from schemas.records import QueueRecord
from spark.frames.log import BadOption
from spark.frames.tables import Tables
from spark.lake.commits import Wish
from spark.lake.maintenance import EXPIRED
from spark.lake.tables.table import Overtaken, Table
from tests.services import Services
from tests.spark.lake_log import (
    UNIT,
    Written,
    asked,
    commit,
    counted,
    entry,
    lake,
    minute,
    moved,
    part,
    same_as_kafka,
    text,
    whole,
)
from tests.spark.plans import kept_frames

# Rounds of a copy plan for long, and longer beside others.
pytestmark = pytest.mark.timeout(900)

BROKEN = b"\x00\x00\x00\x00\x01\x02"  # The head of a message, and no message.


def test_tables_have_the_rows_that_the_frames_have_and_get_what_is_new(
    spark_session: SparkSession, stack: Services, tmp_path: Path
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails")
    for name, life in (("mails", UNIT), ("bills", "0000000000bb")):
        record = QueueRecord(name, life, "olga", 1, 1, partitions=1, tags=[], next_tag_id=1)
        log.put("control", record, key=f"queue/{name}".encode())
    log.put("q.mails", text("of the day before"), ms=-12 * 3_600_000)
    log.put("q.mails", part("torn", 0, 2), part("whole", 0, 2), part("whole", 1, 2), commit("c", 0), b"raw", BROKEN)
    log.put("journal", entry(1, 5, 6), entry(2, 7), entry(1, 5, 6), b"\x00\x00\x00\x00\x02", ms=50_000)
    log.put("meter", minute(0), minute(1), minute(0))
    log.put("requests", counted(0), counted(1), counted(0))
    log.put("audit", asked(0), asked(1), asked(0))
    copy = lake(spark_session, log.log, tmp_path)

    copy.round()

    first = same_as_kafka(spark_session, log.log, copy)
    assert first == {"messages": 7, "journal": 3, "meters": 2, "requests": 4, "audit": 2}
    status = copy.tables["messages"].rows().where("sent_at >= '2026-03-02T00:50'").groupBy("status").count()
    assert {tuple(row) for row in status.collect()} == {("torn", 1), ("shown", 4), ("undecodable", 1)}
    before = {name: table.files() for name, table in copy.tables.items()}

    copy.round()

    assert {name: table.files() for name, table in copy.tables.items()} == before
    # What was written twice comes again, behind what is there.
    log.put("q.mails", commit("c", 60_000), text("new"), ms=61_000)
    log.put("journal", entry(2, 7), entry(3, 8), ms=62_000)
    log.put("meter", minute(1), minute(2))
    log.put("requests", counted(1), counted(2))
    log.put("audit", asked(1), asked(2))

    lake(spark_session, log.log, tmp_path).round()

    grown = same_as_kafka(spark_session, log.log, copy)
    added = {name: grown[name] - first[name] for name in grown}
    assert added == {"messages": 2, "journal": 1, "meters": 1, "requests": 2, "audit": 1}
    days = copy.session.sql("SELECT count(DISTINCT partition) FROM lake.leaseway.messages.files").collect()[0][0]
    assert days == 2
    unread = whole(copy.tables["undecodable"].rows().select("topic", "partition", "offset", "reason", F.hex("value")))
    assert len(unread) == 2 and all("undecodable" in row and '"hex(value)":"00' in row for row in unread)
    queues = whole(Tables(spark_session, log.log).queues())
    assert whole(copy.tables["control"].rows().drop("logged_at", "log_partition", "log_offset", "deleted")) == queues
    assert len(queues) == 2


def test_a_commit_is_bounded_and_batches_that_lie_across_commits_are_judged_as_one(
    spark_session: SparkSession, stack: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails", partitions=2)
    bodies = [text(f"single {n}") for n in range(16)]
    # A batch whose records are far from each other, one that is never whole, copies of a commit.
    for partition in (0, 1):
        first = [
            part("far", 0, 2),
            part("torn", 0, 3),
            commit("c", 0),
            *bodies[:4],
            part("far", 1, 2),
            part("torn", 1, 3),
        ]
        log.put("q.mails", *first, partition=partition)
        log.put("q.mails", *bodies[4:], commit("c", 39_000), ms=40_000, partition=partition)
    log.put("journal", entry(1, 1), ms=100_000)
    copy = lake(spark_session, log.log, tmp_path, Wish("all", 40))
    copy._commits._most["messages"] = 8

    copy.round()

    said = [line for line in capsys.readouterr().err.splitlines() if "messages: " in line]
    assert len(said) > 3
    assert same_as_kafka(spark_session, log.log, copy, ["messages"]) == {"messages": 44}
    found = copy.tables["messages"].rows().groupBy("status").count().collect()
    assert {tuple(row) for row in found} == {("shown", 38), ("torn", 4), ("repeated", 2)}


def test_a_batch_that_may_become_whole_is_waited_for_with_what_is_behind_it(
    spark_session: SparkSession, stack: Services, tmp_path: Path
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails", partitions=2)
    log.put("q.mails", text("first"), part("b", 0, 2), text("behind"))
    log.put("q.mails", text("beside"), partition=1)
    copy = lake(spark_session, log.log, tmp_path)

    def seen() -> list[tuple[str, str]]:
        rows = copy.tables["messages"].rows().select("body_text", "status").collect()
        return sorted((row["body_text"], row["status"]) for row in rows)

    kept = kept_frames(spark_session)
    copy.round()
    assert seen() == [("beside", "shown"), ("first", "shown")]
    log.put("q.mails", part("b", 1, 2), part("late", 0, 2), ms=1_000)
    copy.round()
    assert seen() == [(body, "shown") for body in ("b-0", "b-1", "behind", "beside", "first")]
    # Nothing but the journal says that it is too late for the rest.
    log.put("journal", entry(1, 1), ms=42_000)
    copy.round()
    assert seen()[-1] == ("late-0", "torn")
    assert kept_frames(spark_session) == kept
    assert same_as_kafka(spark_session, log.log, copy, ["messages"]) == {"messages": 6}


def test_of_two_jobs_at_once_one_is_refused_and_no_row_is_there_twice(
    spark_session: SparkSession,
    stack: Services,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails")
    log.put("q.mails", text("a"), BROKEN, text("b"))
    log.put("journal", entry(1, 1))
    one, other = (lake(spark_session, log.log, tmp_path) for _ in range(2))
    append = Table.append

    def late(name: str) -> None:
        """The other job does all of its work just before the one appends to a table."""

        def after(table: Table, *given: object) -> int:
            if table is one.tables[name]:
                other.round()
            return append(table, *given)  # type: ignore[arg-type]

        monkeypatch.setattr(Table, "append", after)

    for count, name in enumerate(("journal", "undecodable", "messages"), 2):
        log.put("q.mails", text(f"{name} c"), BROKEN)
        log.put("journal", entry(count, 1))
        late(name)
        with pytest.raises(Overtaken, match=name):
            one.round()
        assert other.tables["undecodable"].rows().count() == count
    found = same_as_kafka(spark_session, log.log, other, ["messages", "journal"])
    assert found == {"messages": 2 * count + 1, "journal": count}

    # What copies again and again goes on with its next round.
    log.put("q.mails", text("last"))
    rounds = iter([one.round])

    def only_one() -> None:
        next(rounds)()

    monkeypatch.setattr(one, "round", only_one)
    with pytest.raises(StopIteration):
        one.run(0.0)
    assert "messages: another job has changed it meanwhile; what it has is whole" in capsys.readouterr().err


def test_a_topic_that_is_made_again_and_one_that_lost_records_are_said(
    spark_session: SparkSession, stack: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails", "q.bills")
    log.put("q.mails", text("old 0"), text("old 1"), text("old 2"))
    log.put("q.bills", *(text(f"bill {n}") for n in range(2)))
    copy = lake(spark_session, log.log, tmp_path)
    copy.round()
    log.delete("q.mails")
    log.put("q.bills", *(text(f"bill {n}") for n in range(2, 6)))
    [cut] = log.admin.delete_records([TopicPartition(log.topic("q.bills"), 0, 4)]).values()
    cut.result(20)
    capsys.readouterr()
    copy.round()
    assert f"{log.topic('q.bills')}: up to 2 records had left Kafka" in capsys.readouterr().err
    log.make("q.mails")
    log.put("q.mails", text("new 0"))

    copy.round()
    log.put("q.mails", text("new 1"))
    copy.round()

    rows = copy.tables["messages"].rows().select("queue", "offset", "body_text").collect()
    bills = [("bills", n, f"bill {n}") for n in (0, 1, 4, 5)]
    mails = [
        ("mails", 0, "new 0"),
        ("mails", 0, "old 0"),
        ("mails", 1, "new 1"),
        ("mails", 1, "old 1"),
        ("mails", 2, "old 2"),
    ]
    assert sorted(map(tuple, rows)) == bills + mails
    said = capsys.readouterr().err
    assert f"{log.topic('q.mails')} is another topic than before" in said


def test_maintenance_leaves_rows_and_offsets_as_they_are(
    spark_session: SparkSession,
    stack: Services,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails")
    copy = lake(spark_session, log.log, tmp_path)
    messages = copy.tables["messages"]
    for number in range(3):
        log.put("q.mails", text(f"{number}"))
        copy.round()
    rows, held = whole(messages.rows()), messages.held()
    stray = tmp_path / "leaseway" / "messages" / "data" / "of-a-job-that-was-killed.parquet"
    stray.write_bytes(b"x")
    assert messages.files() == 3
    old = {path for path in tmp_path.rglob("*.parquet") if path != stray}

    assert messages.compact(4) == 0
    assert (messages.compact(3), messages.files()) == (3, 1)
    assert messages.expire(0) > 0
    assert messages.remove_orphans(3_600_000) == 0 and stray.exists()
    assert messages.remove_orphans(-1000) == 1 and not stray.exists()

    # What tells how far the table has got is the last append, which has the files before.
    assert old < set(tmp_path.rglob("*.parquet"))
    assert (whole(messages.rows()), messages.held()) == (rows, held)
    log.put("q.mails", text("more"))
    monkeypatch.setattr("spark.lake.maintenance.MOST_FILES", 2)
    monkeypatch.setattr("spark.lake.maintenance._KEEP_MS", 0)
    copy._catalog.note({EXPIRED: str(int(time.time() * 1000) - 3_600_000)})
    capsys.readouterr()
    copy.round()
    assert "files of snapshots older than 0 min deleted" in capsys.readouterr().err
    assert messages.files() == 1
    assert not old & set(tmp_path.rglob("*.parquet"))
    assert same_as_kafka(spark_session, log.log, copy, ["messages"]) == {"messages": 4}


def test_bodies_are_left_out_where_a_mask_hides_something_or_none_is_wanted(
    spark_session: SparkSession, stack: Services, tmp_path: Path
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails", "q.bills", "q.dead")
    masked = "0000000000bb"
    for name, life, mask in (("mails", masked, ["card"]), ("bills", UNIT, []), ("dead", "0000000000cc", [])):
        record = QueueRecord(
            name,
            life,
            "olga",
            1,
            1,
            partitions=1,
            tags=[],
            next_tag_id=1,
            mask=mask,
            former_incarnations=["0000000000dd"] if mask else [],
        )
        log.put("control", record, key=f"queue/{name}".encode())
    log.put("q.mails", text("secret"), BROKEN)
    log.put("q.bills", text("open"), BROKEN)
    log.put(
        "q.dead", moved("bills", "bills", UNIT), moved("mails", "bills", UNIT), moved("bills", "mails", "0000000000dd")
    )

    def seen(wish: str) -> list[tuple[object, ...]]:
        copy = lake(spark_session, log.log, tmp_path / wish, Wish(wish))
        copy.round()
        rows = copy.tables["messages"].rows().where("status = 'shown'")
        told = rows.select(
            "queue", "offset", "body_text", F.col("body").isNull(), F.col("attributes").isNull(), "body_bytes"
        )
        broken = copy.tables["undecodable"].rows().select("topic", F.col("value").isNull()).collect()
        assert sorted(row[1] for row in broken) == [wish == "none", True]
        return sorted(map(tuple, told.collect()), key=repr)

    every = [
        ("bills", 0, "open", 4),
        ("dead", 0, "died", 4),
        ("dead", 1, "died", 4),
        ("dead", 2, "died", 4),
        ("mails", 0, "secret", 6),
    ]
    assert seen("none") == [(*row[:2], None, True, True, row[3]) for row in every]
    hidden = {("mails", 0), ("dead", 1), ("dead", 2)}
    assert seen("unmasked") == [
        (*row[:2], None, True, True, row[3]) if row[:2] in hidden else (*row[:3], False, False, row[3]) for row in every
    ]


def test_a_warehouse_is_of_one_log(spark_session: SparkSession, stack: Services, tmp_path: Path) -> None:
    lake(spark_session, Written(stack.bootstrap).log, tmp_path)
    with pytest.raises(BadOption, match="the tables of another log"):
        lake(spark_session, Written(stack.bootstrap).log, tmp_path)
