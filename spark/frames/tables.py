"""The typed frames over a log; `columns.py` says what is in them.

Half messages (undecided transactions) live in a topic of their own, `<prefix>.half`, so no frame
here can show one; what a transaction commits is an ordinary message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.topics import (
    QUEUE_KEY,
    audit_topic,
    control_topic,
    journal_topic,
    meter_topic,
    queue_topic,
    queue_topics,
    requests_topic,
    snapshot_topic,
)
from schemas.vocabulary import BATCH_CLOCK_MARGIN_MS, BATCH_SPAN_MS, DEATHS, LATE_MS
from spark.frames.columns import FRAMES, MESSAGES
from spark.frames.decode import (
    audit_of,
    avro_fields,
    entries_of,
    head_id,
    messages_of,
    meters_of,
    plus_ms,
    requests_of,
    stale_handles_of,
    time_of,
    unread_of,
)
from spark.frames.log import Log
from spark.frames.source import (
    ALL,
    Span,
    all_queues,
    newest_ms,
    one_topic,
    parts,
    queues_of_topics,
    read,
    some_queues,
)
from spark.rules.atomic_batches import judged_by
from spark.rules.deliveries import dead_letters_of, deliveries_of, leases
from spark.rules.floors import newest_snapshots, runs_of_snapshots
from spark.rules.lifecycles import lifecycles_of, lives_of, with_wanted_tags
from spark.rules.transitions import journal_of, without_repeats

# After the end of a span: what decides about a batch that began in it.
_DECIDED_MS = BATCH_SPAN_MS + BATCH_CLOCK_MARGIN_MS + 1_000


def queues_of(records: DataFrame) -> DataFrame:
    """QUEUES from records of the control topic: the newest record of each key; deleted queues give
    no row.
    """
    return queue_rows(newest_queues(records))


def newest_queues(records: DataFrame) -> DataFrame:
    """key, value of the newest record of each queue that is not deleted, of the control topic's."""
    keyed = records.where(F.col("key").cast("string").startswith(QUEUE_KEY))
    return keyed.groupBy("key").agg(F.max_by("value", "offset").alias("value")).where(F.col("value").isNotNull())


def queue_rows(records: DataFrame, *also: str) -> DataFrame:
    """QUEUES as each of these records says it, whichever is newest, after columns `also` of the
    record. Reads value.
    """
    read_ = (
        records.withColumn("schema_id", head_id())
        .withColumn("q", avro_fields("queue"))
        .where(F.col("q.name").isNotNull())
    )
    policy = F.col("q.redrive_policy")
    return read_.select(
        *also,
        F.col("q.name").alias("queue"),
        "q.incarnation",
        "q.owner",
        time_of(F.col("q.created_at_ms")).alias("created_at"),
        time_of(F.col("q.modified_at_ms")).alias("modified_at"),
        "q.partitions",
        "q.delay_ms",
        "q.lease_ms",
        "q.retention_ms",
        "q.max_message_bytes",
        policy["dead_letter_queue"].alias("dead_letter_queue"),
        policy["max_receive_count"].alias("max_receive_count"),
        "q.fifo",
        F.when(F.col("q.fifo"), F.col("q.dedup_scope")).alias("dedup_scope"),
        "q.deleting",
        time_of(F.col("q.purged_at_ms")).alias("purged_at"),
        "q.labels",
        F.transform("q.tags", _tag).alias("tags"),
    )


def _tag(tag: Column) -> Column:
    fields = ("id", "name", "created_at_ms", "start_at_ms", "start_offsets", "filter")
    return F.struct(*(tag[name].alias(name) for name in fields))


def with_queues(messages: DataFrame, queues: DataFrame) -> DataFrame:
    """Adds incarnation, dedup_scope, due_at, and the queue's own delay where a message has none.
    Columns as MESSAGES.
    """
    known = queues.select("queue", "incarnation", F.col("delay_ms").alias("queue_delay_ms"), "dedup_scope")
    joined = messages.join(F.broadcast(known), on="queue", how="left")
    delay = F.coalesce("delay_ms", "queue_delay_ms", F.lit(0))
    timed = joined.withColumn("delay_ms", delay.cast("long")).withColumn(
        "due_at", plus_ms(F.col("sent_at"), F.col("delay_ms"))
    )
    return timed.select(*MESSAGES.names)


def looked_up(numbers: Mapping[str, int], key: Column) -> Column:
    """The number of a key; null = it has none."""
    return F.try_element_at(F.from_json(F.lit(json.dumps(numbers)), "map<string,bigint>"), key)


def not_settled_later(frame: DataFrame, end_ms: int) -> DataFrame:
    """The frame (LIFECYCLES, DEAD_LETTERS) as of then: what was settled later was not settled
    yet.
    """
    by_then = F.coalesce(F.unix_millis("settled_at") < end_ms, F.lit(False))
    settled = [name for name in ("settled_how", "settled_at", "settled_reason") if name in frame.columns]
    return frame.withColumns({name: F.when(by_then, F.col(name)) for name in settled})


class Tables:
    """The frames of one log in one span. Each call reads Kafka anew; nothing is cached.

    `names`: read the topics of these queues alone, for messages; None = of all. `known`: QUEUES
    that somebody has read already; None = read them.
    """

    def __init__(
        self,
        spark_session: SparkSession,
        log: Log,
        span: Span = ALL,
        names: Collection[str] | None = None,
        known: DataFrame | None = None,
    ) -> None:
        self.spark_session = spark_session
        self.log = log
        self.span = span
        self.names = names
        self._known = known

    def queues(self) -> DataFrame:
        """QUEUES, as of now whatever the span."""
        if self._known is not None:
            return self._known
        return queues_of(read(self.spark_session, self.log, one_topic(control_topic(self.log.prefix))))

    def unjudged_messages(self) -> DataFrame:
        """MESSAGES whose atomic batches are not judged yet (see `atomic_batches.judged`), from 30 s
        before the span to 41 s after it: so far what decides about a batch may be.

        For jobs that drop the bodies before they judge: judging reads its input twice.
        """
        span = self.span.padded(BATCH_SPAN_MS, _DECIDED_MS)
        records = read(self.spark_session, self.log, self._topics(), span)
        return with_queues(messages_of(records, queue_topics(self.log.prefix)), self.queues())

    def messages(self) -> DataFrame:
        """MESSAGES. Read wider than the span, so that no batch at its edge looks torn.

        Each topic is read once. How young the log is, the brokers say now: its own partition, and
        that of the queue or of the journal which is youngest.
        """
        return self.within(judged_by(self.unjudged_messages(), *self._newest()), "sent_at")

    def _topics(self) -> dict[str, str]:
        return all_queues(self.log) if self.names is None else some_queues(self.log, self.names)

    def _newest(self) -> tuple[Column, Column]:
        """The times (epoch ms) of the newest record of a message's partition, and of its queue and
        the journal.
        """
        names = queues_of_topics(self.spark_session, self.log) if self.names is None else self.names
        journal = journal_topic(self.log.prefix)
        found = newest_ms(self.spark_session, self.log, {journal, *(queue_topic(self.log.prefix, n) for n in names)})
        first = len(queue_topics(self.log.prefix))
        here = {f"{topic[first:]}/{place}": ms for (topic, place), ms in found.items() if topic != journal}
        of_journal = max((ms for (topic, _), ms in found.items() if topic == journal), default=0)
        anywhere: dict[str, int] = {}
        for place, ms in here.items():
            queue = place.rpartition("/")[0]
            anywhere[queue] = max(anywhere.get(queue, of_journal), ms)
        return looked_up(here, F.concat_ws("/", "queue", "partition")), looked_up(anywhere, F.col("queue"))

    def messages_at(self, ranges: Mapping[str, Mapping[int, tuple[int, int]]], queues: DataFrame) -> DataFrame:
        """MESSAGES of some places: queue -> partition -> (first offset, one after the last). Atomic
        batches are not judged.
        """
        topic = queue_topics(self.log.prefix)
        low, high = (
            {
                queue_topic(self.log.prefix, queue): {p: pair[n] for p, pair in of.items()}
                for queue, of in ranges.items()
            }
            for n in (0, 1)
        )
        span = Span(from_offsets=low, to_offsets=high)
        return with_queues(messages_of(read(self.spark_session, self.log, parts(span), span), topic), queues)

    def journal(self, queues: DataFrame | None = None, about: str | None = None) -> DataFrame:
        """JOURNAL, with the tags' names of `queues` (None = read them), of the queues for which
        `about` is true (a condition in SQL over `queue`).

        The span bounds the time of the append (`logged_at`), which is at most some seconds after
        `at`.
        """
        entries = entries_of(read(self.spark_session, self.log, one_topic(journal_topic(self.log.prefix)), self.span))
        some = entries if about is None else entries.where(about)
        return journal_of(without_repeats(some), self.queues() if queues is None else queues)

    def meters(self) -> DataFrame:
        """METERS whose minute is in the span. A record is appended up to an hour after its
        minute.
        """
        return self.within(meters_of(self._meter_records()), "minute")

    def stale_handles(self) -> DataFrame:
        """STALE_HANDLES whose minute is in the span, as `meters`."""
        return self.within(stale_handles_of(self._meter_records()), "minute")

    def _meter_records(self) -> DataFrame:
        topic = one_topic(meter_topic(self.log.prefix))
        return read(self.spark_session, self.log, topic, self.span.padded(0, LATE_MS))

    def requests(self) -> DataFrame:
        """REQUESTS whose minute is in the span, as `meters`."""
        topic = one_topic(requests_topic(self.log.prefix))
        records = read(self.spark_session, self.log, topic, self.span.padded(0, LATE_MS))
        return self.within(requests_of(records), "minute")

    def audit(self) -> DataFrame:
        """AUDIT: who has asked for what in the span."""
        records = read(
            self.spark_session, self.log, one_topic(audit_topic(self.log.prefix)), self.span.padded(0, LATE_MS)
        )
        return self.within(audit_of(records), "at")

    def snapshots(self) -> DataFrame:
        """The newest snapshot of each unit, as of now whatever the span: records of Kafka."""
        return newest_snapshots(read(self.spark_session, self.log, one_topic(snapshot_topic(self.log.prefix))))

    def until_now(self) -> Tables:
        """The same log from the beginning of the span on, without an end."""
        return Tables(self.spark_session, self.log, Span(self.span.from_ms), self.names, self._known)

    def as_of(self) -> Column:
        """The moment of which the frames tell: the end of the span, or now when that is to come."""
        now = F.current_timestamp()
        return now if self.span.to_ms is None else F.least(now, F.timestamp_millis(F.lit(self.span.to_ms)))

    def sent(self) -> DataFrame:
        """MESSAGES that were appended in the span, with `status` as in `unjudged_messages`."""
        return self.within(self.unjudged_messages(), "sent_at")

    def deliveries(self, journal: DataFrame | None = None, sent: DataFrame | None = None) -> DataFrame:
        """DELIVERIES that began in the span, as far as the span tells. `journal` is that of the
        span, and `sent` tells when messages were sent (None = read them).
        """
        messages = self.sent() if sent is None else sent
        return deliveries_of(self.journal() if journal is None else journal, messages, self.as_of())

    def dead_letters(self, journal: DataFrame | None = None) -> DataFrame:
        """DEAD_LETTERS that were appended in the span; what became of them as of now. `journal` is
        that of `until_now` (None = read it).
        """
        queues = self.queues()
        # What was moved is in no batch and no commit, so it can be judged without the others.
        moved = self.unjudged_messages().where(F.col("origin.reason").isin(*map(str, DEATHS)))
        unknown = F.lit(None).cast("long")
        messages = self.within(judged_by(moved, unknown, unknown), "sent_at")
        told = self.until_now().journal(queues) if journal is None else journal
        return dead_letters_of(messages, told, runs_of_snapshots(self.snapshots()), queues)

    def lives(self, journal: DataFrame | None = None) -> DataFrame:
        """LIVES of messages that were sent in the span; what became of them as of now. `journal` is
        that of `until_now` (None = read it).
        """
        queues, now = self.queues(), F.current_timestamp()
        runs = runs_of_snapshots(self.snapshots())  # Before the journal: no younger than that.
        told = self.until_now().journal(queues) if journal is None else journal
        messages = with_wanted_tags(self.messages(), queues)
        return lives_of(lifecycles_of(messages, told, runs, queues), leases(told, now), now)

    def unread(self) -> DataFrame:
        """UNREAD of queues' topics, journal, snapshots and control topic."""
        messages = read(self.spark_session, self.log, self._topics(), self.span)
        return unread_of(messages, "message").unionByName(self.unread_events())

    def unread_events(self) -> DataFrame:
        """UNREAD of journal, snapshots and control topic."""
        journal = read(self.spark_session, self.log, one_topic(journal_topic(self.log.prefix)), self.span)
        control = read(self.spark_session, self.log, one_topic(control_topic(self.log.prefix)))
        of_queues = control.where(F.col("key").cast("string").startswith(QUEUE_KEY))
        unread = unread_of(journal, "journal").unionByName(unread_of(of_queues, "queue"))
        return unread.unionByName(unread_of(self.snapshots(), "snapshot"))

    def create_views(self, query: str | None = None) -> list[str]:
        """Makes the frames temporary views of the session, for SQL; with `query` only those whose
        names occur in it. Their names.
        """
        found = [name for name in FRAMES if query is None or re.search(rf"\b{name}\b", query, re.IGNORECASE)]
        for name in found:
            getattr(self, name)().createOrReplaceTempView(name)
        return found

    def until_end(self, frame: DataFrame, time: str) -> DataFrame:
        """The rows of a frame whose column `time` is before the end of the span."""
        high = self.span.to_ms
        return frame if high is None else frame.where(F.unix_millis(time) < high)

    def within(self, frame: DataFrame, time: str) -> DataFrame:
        """The rows of a frame whose column `time` is in the span."""
        low = self.span.from_ms
        return self.until_end(frame if low is None else frame.where(F.unix_millis(time) >= low), time)
