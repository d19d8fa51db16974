"""A log with all that tables hold: a day of `benchmarks.spark_log`, requests, audit, records that
can't be read, batches and commits.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.spark_log import fill
from schemas.identity import MessageId
from schemas.records import BatchMark, JournalEntry, JournalRecord, Message, Origin
from schemas.records.watching import AuditRecord, MeterRecord, MeterRow, RequestRow, RequestsRecord
from schemas.vocabulary import Operation
from schemas.wire import encode
from spark.frames.log import Log
from spark.frames.tables import Tables
from spark.lake.commits import Wish
from spark.lake.lake import Lake
from spark.lake.places.warehouse import Warehouse
from spark.reports.counts import added, events, sends
from spark.rules.repeats import without_repeated_sends

BEGIN_MS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000)
LAST_MS = BEGIN_MS + 25 * 3_600_000  # Behind what `fill` writes.
ALL = Wish(bodies="all")
UNIT = "0000000000aa"  # Of the journal's entries that are written here.


class Written:
    """A log of its own prefix, that grows."""

    def __init__(self, bootstrap: str, messages: int = 0) -> None:
        self.log = Log(bootstrap, f"k{secrets.token_hex(3)}")
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap})
        if messages:
            fill(bootstrap, self.log.prefix, messages, 64, BEGIN_MS, partitions=2)
            self.make("meter", "requests", "audit")
        else:
            self.make("control", "journal", "meter", "requests", "audit")

    def topic(self, name: str) -> str:
        return f"{self.log.prefix}.{name}"

    def make(self, *names: str, partitions: int = 1) -> None:
        config = {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}
        new = [NewTopic(self.topic(name), partitions, 1, config=config) for name in names]
        for made in self.admin.create_topics(new).values():
            made.result(20)

    def delete(self, name: str) -> None:
        self.admin.delete_topics([self.topic(name)])[self.topic(name)].result(20)

    def put(self, name: str, *values: Any, ms: int = 0, key: bytes | None = None, partition: int = 0) -> None:
        """Records, `ms` after the day and 1 ms apart: bytes, None, or what a schema has."""
        for place, value in enumerate(values):
            told = value if value is None or isinstance(value, bytes) else encode(value)
            self._producer.produce(self.topic(name), told, key, partition, timestamp=LAST_MS + ms + place)
        assert self._producer.flush(20) == 0


def written_day(bootstrap: str) -> Written:
    """Six queues of two partitions, one day; in `mails` also batches that are whole and that are
    not, a commit that came twice, and records that can't be read.
    """
    made = Written(bootstrap, 640)
    parts = [part("torn", 0, 2), part("whole", 0, 2), part("whole", 1, 2)]
    made.put("q.mails", *parts, commit("c", 0), commit("c", 0), b"raw", b"")
    made.put("q.mails", text('über, "all"\n'), b"\x00\x00\x00\x00\x63newer", ms=500)
    # Only the journal tells that the batch at the end of its queue is never whole.
    made.put("journal", entry(1, 5, 6), entry(2, 7), ms=50_000)
    made.put("meter", minute(0), minute(1))
    made.put("requests", counted(0), counted(1))
    made.put("audit", asked(0), asked(1))
    return made


def text(body: str, **fields: Any) -> Message:
    return Message(body.encode(), sender="a", body_is_text=True, **fields)


def part(id: str, index: int, size: int) -> Message:
    return text(f"{id}-{index}", batch=BatchMark(id, index, size))


def commit(name: str, moved_ms: int) -> Message:
    return text(name, origin=Origin(name, "", "t", "mails", "", "committed", 0, 0, 0, LAST_MS + moved_ms))


def moved(sent_to: str, died_in: str, life: str) -> Message:
    """A dead letter of a message that was sent to one queue and died in another, which has that
    life.
    """
    died = MessageId(life, 0, 0).text(b"secret")
    return text("died", origin=Origin(died, "default", "id", sent_to, "default", "killed", 1, 1, 1, 1))


def entry(seq: int, *offsets: int) -> JournalRecord:
    given = JournalEntry(seq, LAST_MS + seq, "acked", 0, list(offsets), [0] * len(offsets), "")
    return JournalRecord("mails", UNIT, 0, [given])


def minute(number: int, worker: str = "w1") -> MeterRecord:
    row = MeterRow("", Operation.SINGLE_SEND, number + 1, 3, 500, 200, [4], [number + 1])
    return MeterRecord(LAST_MS + 60_000 * number, worker, "mails", UNIT, [row])


def counted(number: int) -> RequestsRecord:
    """Two rows."""
    who = ("alice", "mails")
    rows = [
        RequestRow("sqs", "sqs.SendMessage", "send", *who, "ok", number + 1, 900, 400),
        RequestRow("native", "receive", "receive", *who, "not_authorised", 2, 30, 20),
    ]
    return RequestsRecord(LAST_MS + 60_000 * number, "w1", number + 1, rows)


def asked(number: int) -> AuditRecord:
    return AuditRecord(
        LAST_MS + number, "w1", number, "alice", "k", "::1", "op", "send", "mails", "", "", "done", 200, "", "r", 0
    )


def lake(spark_session: SparkSession, log: Log, folder: Path, wish: Wish = ALL) -> Lake:
    return Lake(spark_session, log, Warehouse(folder), wish)


def counts_of(messages: DataFrame, journal: DataFrame) -> DataFrame:
    """COUNTS of Kafka's MESSAGES and JOURNAL, which the table of minutes must have."""
    return added(sends(without_repeated_sends(messages)).unionByName(events(journal)))


def whole(frame: DataFrame) -> list[str]:
    """The rows, each as JSON, sorted."""
    return sorted(row["line"] for row in frame.select(F.to_json(F.struct("*")).alias("line")).collect())


def same_as_kafka(
    spark_session: SparkSession,
    log: Log,
    copy: Lake,
    names: Sequence[str] = ("messages", "journal", "meters", "requests", "audit"),
) -> dict[str, int]:
    """Asserts that the tables have the rows that Kafka alone gives, each once; how many."""
    tables, found = Tables(spark_session, log), {}
    for name in names:
        rows = whole(copy.tables[name].rows())
        assert rows == whole(getattr(tables, name)()), name
        found[name] = len(rows)
    return found
