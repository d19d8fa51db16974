"""The table of deliveries beside the frame over Kafka: the same rows after every round, whatever
has happened since the last one.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.records import JournalEntry, JournalRecord, QueueRecord, TagRecord
from spark.frames.log import Log
from spark.frames.session import empty
from spark.frames.tables import Tables
from spark.lake.answers.small import answer, tables_of
from spark.lake.answers.stored import Stored
from spark.lake.answers.subset import NotCommon
from spark.lake.derived.deliveries import Deliveries
from spark.lake.derived.made import News
from spark.lake.lake import Lake
from spark.lake.places.warehouse import Warehouse, note_of
from spark.lake.tables.table import Overtaken, Table
from spark.rules.deliveries import deliveries_of
from spark.rules.floors import RUNS
from spark.rules.lifecycles import lifecycles_of, with_wanted_tags
from spark.sql_job import lines
from tests.services import Services
from tests.spark.lake_log import LAST_MS, UNIT, Written, counts_of, lake, text, whole
from tests.spark.plans import kept_frames

LEASE_MS, RETENTION_MS = 90_000, 3_600_000
# Rounds of a copy plan for long, and longer beside others.
pytestmark = pytest.mark.timeout(900)


class Story:
    """A queue of two partitions, to which things happen; each a minute after the other."""

    def __init__(self, bootstrap: str) -> None:
        self.log = Written(bootstrap)
        self.log.make("q.mails", partitions=2)
        self._seq = [0, 0]
        self.name(TagRecord(3, "retail", 0, 0, [0, 0]))

    def name(self, *tags: TagRecord) -> None:
        """The tags that the queue has, beside the default one."""
        record = QueueRecord(
            "mails",
            UNIT,
            "olga",
            1,
            1,
            partitions=2,
            retention_ms=RETENTION_MS,
            fifo=True,
            dedup_scope="queue",
            tags=[TagRecord(0, "default", 0, 0, [0, 0]), *tags],
            next_tag_id=4,
        )
        self.log.put("control", record, key=b"queue/mails")

    def at_ms(self, partition: int = 0) -> int:
        """Of the newest entry of a unit."""
        return LAST_MS + 60_000 * self._seq[partition]

    def tell(self, kind: str, *offsets: int, partition: int = 0, until_ms: int = 0, tag: int = 0) -> None:
        """An entry; `until_ms` after it."""
        self._seq[partition] += 1
        at = self.at_ms(partition)
        times = [at + until_ms if until_ms else 0] * len(offsets)
        told = JournalEntry(self._seq[partition], at, kind, tag, list(offsets), times, "")
        self.log.put("journal", JournalRecord("mails", UNIT, partition, [told]), ms=at - LAST_MS)

    def send_again(self, minutes: int) -> None:
        """The same deduplication id once more, at so many minutes."""
        self.log.put("q.mails", text("again", dedup_id="d"), ms=60_000 * minutes)

    def lease(self, *offsets: int, partition: int = 0, tag: int = 0) -> None:
        self.tell("leased", *offsets, partition=partition, until_ms=LEASE_MS, tag=tag)


def expected(spark_session: SparkSession, log: Log, as_of_ms: int) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Deliveries, lifecycles and counts of Kafka's log."""
    tables = Tables(spark_session, log)
    journal, messages, queues = tables.journal(), tables.messages(), tables.queues()
    lives = lifecycles_of(with_wanted_tags(messages, queues), journal, empty(spark_session, RUNS), queues)
    as_of = F.timestamp_millis(F.lit(as_of_ms))
    return deliveries_of(journal, messages, as_of), lives, counts_of(messages, journal)


class Rounds:
    """Copies a story, by rounds whose clock is the test's."""

    def __init__(
        self, spark_session: SparkSession, story: Story, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._spark_session, self._story, self._monkeypatch = spark_session, story, monkeypatch
        self.copy = lake(spark_session, story.log.log, folder)

    def at(self, as_of_ms: int) -> None:
        """A round as of then."""
        before = kept_frames(self._spark_session)
        self._monkeypatch.setattr("spark.lake.lake.time.time", lambda: as_of_ms / 1000)
        self.copy.round()
        self._monkeypatch.undo()
        assert kept_frames(self._spark_session) == before

    def sent(self) -> tuple[int, int]:
        """Requests and messages of all minutes."""
        sent = self.copy.tables["queue_minutes"].rows().where("measure = 'sent'")
        [row] = sent.agg(F.sum("requests").alias("requests"), F.sum("messages").alias("messages")).collect()
        return row["requests"], row["messages"]

    def check(self, as_of_ms: int) -> dict[str, int]:
        """A round as of then, after which the table has the rows of Kafka's frame; how many end
        how.
        """
        self.at(as_of_ms)
        rows = whole(self.copy.tables["deliveries"].rows())
        deliveries, lifecycles, counts = expected(self._spark_session, self._story.log.log, as_of_ms)
        assert rows == whole(deliveries)
        assert whole(self.copy.tables["lifecycles"].rows()) == whole(lifecycles)
        assert whole(self.copy.tables["queue_minutes"].rows()) == whole(counts)
        ends: dict[str, int] = {}
        for row in rows:
            how = json.loads(row)["how"]
            ends[how] = ends.get(how, 0) + 1
        return ends


def check_answers(spark_session: SparkSession, rounds: Rounds, warehouse: Warehouse) -> None:
    """Both engines answer from the tables that were made."""
    query = "SELECT how, count(*) AS n FROM deliveries GROUP BY how ORDER BY how"
    small = tables_of(warehouse)
    counted = ["how,n", "acked,3", "lapsed,4", "purged,3", "released,1"]
    assert list(answer(small, query, 10, (None, None)).lines("csv")) == counted
    # A span cuts what ends a delivery too.
    with pytest.raises(NotCommon, match="deliveries of a span"):
        answer(small, query, 10, (None, LAST_MS))
    query = """SELECT state, last_how, count(*) AS n, sum(deliveries) AS had, max(age_ms) AS age FROM lives
        GROUP BY 1, 2 ORDER BY 1, 2"""
    lives = list(answer(small, query, 20, (None, None)).lines("csv"))
    tables = Stored(spark_session, warehouse, None)
    tables.frame("lives").createOrReplaceTempView("lives")
    assert lives == list(lines(tables.spark_session.sql(query), "csv", 20)) and len(lives) > 5
    stored = tables.frame("deliveries")
    assert "deliveries" in stored._jdf.queryExecution().optimizedPlan().toString()
    assert whole(stored) == whole(rounds.copy.tables["deliveries"].rows())


def test_each_round_changes_what_has_changed_and_questions_are_answered_from_the_table(
    spark_session: SparkSession, stack: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(stack.bootstrap)
    rounds = Rounds(spark_session, story, tmp_path, monkeypatch)
    # No message yet is an answer, too.
    rounds.at(LAST_MS)
    none = answer(tables_of(Warehouse(tmp_path)), "SELECT count(*) AS n FROM dead_letters", 10, (None, None))
    assert list(none.lines("csv")) == ["n", "0"]
    for partition in (0, 1):
        story.log.put("q.mails", *(text(str(n)) for n in range(8)), partition=partition)
    story.send_again(-20)
    story.lease(0, 1, 2, 3)
    story.tell("acked", 0)
    story.lease(4, tag=3)
    # The journal has come before the message of 8.
    story.lease(0, 8, partition=1)
    assert rounds.check(LAST_MS + 60_000 + 1) == {"acked": 1, "open": 6}

    # Time alone ends what is open. A second delivery of one, another end of a second, and two that
    # may yet be told of as carried by no answer; one of these is.
    story.tell("released", 1, until_ms=5_000)
    story.tell("acked", 2)
    story.lease(1, 3, 5)
    story.tell("returned", 5)
    # The second repeats the first. Were that forgotten, the third would repeat the second.
    story.send_again(-16)
    story.log.put("q.mails", text("8"), ms=story.at_ms(1) - LAST_MS - 1, partition=1)
    assert rounds.check(story.at_ms()) == {"acked": 2, "released": 1, "lapsed": 4, "open": 2}
    found = rounds.copy.tables["deliveries"].rows().where("partition = 1 AND offset = 8").collect()
    assert [row["wait_ms"] for row in found] == [1]

    # The other was never delivered either; its message's delivery before is the last. One is held
    # longer, and two are purged: one before its lease ran out, which is written down now.
    story.tell("returned", 3)
    story.tell("extended", 1, until_ms=10 * LEASE_MS)
    story.lease(6, 7)
    story.tell("purged", 7)
    story.tell("purged", 1, partition=1)
    story.lease(5, tag=3)
    story.send_again(-12)
    ends = {"acked": 2, "released": 1, "lapsed": 4, "purged": 3, "open": 1}
    assert rounds.check(story.at_ms() + 1) == ends

    assert rounds.sent() == (20, 19)

    # The tag is deleted, and its name is gone from what comes now. That is a day after the others'
    # retention.
    story.name()
    story.log.put("q.mails", text("late"), ms=RETENTION_MS + 25 * 3_600_000)
    story.tell("acked", 5, tag=3)
    rounds.at(story.at_ms() + 2)
    gone = rounds.copy.tables["lifecycles"].rows().where("tag_id = 3").groupBy("tag", "settled_how").count()
    assert {(row["tag"], row["settled_how"]) for row in gone.collect()} == {("retail", "acked"), ("retail", "deleted")}
    lives = rounds.copy.tables["lifecycles"].rows().where("tag_id = 0").orderBy("sent_at").collect()
    last = {row["settled_how"]: row for row in lives}
    assert set(last) == {"acked", "purged", "expired", None} and last[None]["offset"] == lives[-1]["offset"]
    kept = last["expired"]["settled_at"] - last["expired"]["due_at"]
    assert kept.total_seconds() * 1000 == RETENTION_MS
    of_tag = rounds.copy.tables["deliveries"].rows().where("tag_id = 3").orderBy("offset").select("tag", "how")
    assert list(map(tuple, of_tag.collect())) == [("retail", "lapsed"), ("retail", "acked")]
    check_answers(spark_session, rounds, Warehouse(tmp_path))


def test_a_round_that_was_ended_or_overtaken_anywhere_is_made_again(
    spark_session: SparkSession, stack: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(stack.bootstrap)
    rounds = Rounds(spark_session, story, tmp_path, monkeypatch)
    story.log.put("q.mails", *(text(str(n)) for n in range(4)))
    story.lease(0, 1)
    as_of_ms = story.at_ms()
    rounds.at(as_of_ms)
    noted = rounds.copy._catalog.noted()[note_of("deliveries")]

    # Killed behind the commit: nothing is noted, and the same is made once more.
    story.tell("acked", 0)
    story.lease(2)
    rounds.copy._copy(*rounds_of(rounds.copy))
    Deliveries(rounds.copy.tables).update(News.since(noted, rounds.copy.tables, as_of_ms))
    # Nor would it matter, had the snapshot that it was made of been forgotten.
    rounds.copy._catalog.note({note_of("deliveries"): json.dumps({"journal": 1, "messages": 2, "as_of_ms": 0})})
    assert rounds.check(as_of_ms) == {"acked": 1, "open": 2}

    # Another job makes them while one does.
    story.tell("acked", 1)
    merge = Table.merge

    def late(self: Table, *given: object) -> None:
        monkeypatch.setattr(Table, "merge", merge)
        lake(spark_session, story.log.log, tmp_path).round()
        merge(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Table, "merge", late)
    with pytest.raises(Overtaken, match="deliveries: another job has changed it meanwhile"):
        rounds.copy.round()
    story.lease(3)
    assert rounds.check(int(time.time() * 1000)) == {"acked": 2, "lapsed": 2}


def rounds_of(copy: Lake) -> tuple[DataFrame, DataFrame]:
    """What a round copies with: no queue is known, and none has a mask."""
    queues = Tables(copy.session, copy._log).queues()
    return queues, queues.select("queue").limit(0)
