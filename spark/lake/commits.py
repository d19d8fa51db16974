"""One commit of a table: offsets are chosen, exactly these records are read, and rows and offsets
are added together.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.topics import queue_topic, queue_topics
from spark.frames.decode import unread_rows
from spark.frames.log import Log
from spark.frames.session import once
from spark.frames.source import Span, parts, queues_of_topics, read
from spark.frames.tables import looked_up
from spark.lake import messages as rules
from spark.lake.brokers import topics_of
from spark.lake.feeds import Feed
from spark.lake.offsets import Ends, Held, Plan, Topic, advanced, planned
from spark.lake.tables.table import Overtaken, Table
from spark.progress import tell

# Until the first commit has shown how large records are.
_FIRST_RECORDS = 10_000
_MIB = 1 << 20


@dataclass(frozen=True)
class Wish:
    """What to copy: `bodies` of all messages, of none, or only of those of which no mask hides
    anything (`unmasked`), None = as before; about `commit_bytes` of records in a commit, however
    many there are.
    """

    bodies: str | None = None
    commit_bytes: int = 128 * _MIB


class Commits:
    """Makes commits, one at a time. Each method raises Overtaken when somebody else has added rows
    meanwhile, Py4JJavaError when Kafka or the catalog fails; then nothing was added.
    """

    def __init__(self, spark_session: SparkSession, log: Log, tables: dict[str, Table], wish: Wish) -> None:
        self._spark_session = spark_session
        self._log = log
        self._tables = tables
        self._wish = wish
        self._most = dict.fromkeys(tables, _FIRST_RECORDS)
        self._least = 0  # So many messages at least: fewer have nothing that is decided.

    def of_topic(self, feed: Feed, queues: DataFrame) -> bool | None:
        """Takes what is new of a topic; whether there is more, None = nothing was new."""
        table, name = self._tables[feed.table], feed.topic(self._log.prefix)
        held, topics, plan = self._planned(table, lambda topic: topic == name)
        if not plan.end:
            return None
        began = time.monotonic()
        of_keys = F.col("key").cast("string").startswith(feed.keys) if feed.keys else F.lit(True)
        records = self._read(plan).where(of_keys).persist()
        try:
            size = records.agg(F.count("*"), F.sum(F.length("value"))).collect()[0]
            self._learn(feed.table, size[0], size[1] or 0)
            self._keep_unread(unread_rows(records, feed.subject), topics, plan.end)
            rows = feed.rows(records, queues, table.rows())
            self._append(table, rows, advanced(held, topics, plan.end, _now_ms()), plan, began)
        finally:
            records.unpersist()
        return bool(plan.cut)

    def of_messages(self, queues: DataFrame, masked: DataFrame) -> bool | None:
        """The same of all queues' topics. What is behind a message that is not decided yet waits
        with it.
        """
        table, first = self._tables["messages"], queue_topics(self._log.prefix)
        # Before the ends are chosen: what is younger than they are does not say what is missing.
        names = queues_of_topics(self._spark_session, self._log)
        newest = rules.newest_of(self._spark_session, self._log, {queue_topic(self._log.prefix, n) for n in names})
        held, topics, plan = self._planned(table, lambda topic: topic.startswith(first))
        if not plan.end:
            return None
        began = time.monotonic()
        with contextlib.ExitStack() as kept:
            messages = rules.decoded(self._read(plan), queues, self._log.prefix).persist()
            kept.callback(messages.unpersist)
            ends, rows, broken = self._judged(messages, kept, table, plan, newest)
            if ends == plan.begin:
                # All that was read waits for what was not, or for what is still to come.
                self._least = 2 * plan.records
                return True if plan.cut else None
            self._least = 0
            if broken:
                self._keep_unread(self._broken(plan, ends, masked), topics, ends)
            rows = rules.bodies_left_out(rows, self._wish.bodies, masked)
            self._append(table, rows, advanced(held, topics, ends, _now_ms()), plan, began)
        return bool(plan.cut)

    def _judged(
        self, messages: DataFrame, kept: contextlib.ExitStack, table: Table, plan: Plan, newest: rules.Newest
    ) -> tuple[Ends, DataFrame, int]:
        """Where the commit of these messages ends, its rows, and how many undecodable ones there
        are. What the rows are made of is there as long as it is `kept`.
        """
        sizes = rules.sizes(messages).collect()
        self._learn("messages", sum(row["records"] for row in sizes), sum(row["bytes"] or 0 for row in sizes))
        broken = sum(row["broken"] for row in sizes)
        first = queue_topics(self._log.prefix)
        read = {(f"{first}{row['queue']}", row["partition"]): row["newest_ms"] for row in sizes}
        here = newest.here(plan, {place: ms for place, ms in read.items() if place in plan.cut})
        found = rules.judged(messages, table.rows(), here, newest.anywhere(plan))
        if found is None:
            return plan.end, messages, broken
        # Asked for twice, and small beside the messages.
        judged = kept.enter_context(once(found))
        waits = rules.undecided_from(judged, self._log.prefix)
        ends = {
            topic: {p: min(end, waits.get(topic, {}).get(p, end)) for p, end in parts.items()}
            for topic, parts in plan.end.items()
        }
        rows = rules.before(rules.with_status(messages, judged), ends, self._log.prefix)
        return ends, rows, broken

    def _planned(self, table: Table, chosen: Callable[[str], bool]) -> tuple[dict[str, Held], dict[str, Topic], Plan]:
        held = table.held()
        topics = topics_of(self._spark_session, self._log, chosen)
        plan = planned(held, topics, max(self._most[table.name], self._least))
        if plan.end:
            for topic in plan.remade:
                tell("lake", f"{topic} is another topic than before: it is copied from its beginning")
            for topic, records in plan.lost.items():
                tell("lake", f"{topic}: up to {records:,} records had left Kafka before they were copied")
        return held, topics, plan

    def _read(self, plan: Plan) -> DataFrame:
        span = Span(from_offsets=plan.begin, to_offsets=plan.end)
        return read(self._spark_session, self._log, parts(span), span, committed=True)

    def _learn(self, table: str, records: int, size: int) -> None:
        """From how large these records were, how many make a commit."""
        if records:
            self._most[table] = max(1, self._wish.commit_bytes * records // max(size, records))

    def _broken(self, plan: Plan, ends: Ends, masked: DataFrame) -> DataFrame:
        """The undecodable ones among queues' records."""
        unread = unread_rows(self._read(plan), "message").where("reason = 'undecodable'")
        queue = F.substring("topic", len(queue_topics(self._log.prefix)) + 1, 1000)
        found = rules.before(unread.withColumn("queue", queue), ends, self._log.prefix)
        if self._wish.bodies == "none":
            return found.withColumn("value", F.lit(None).cast("binary"))
        if self._wish.bodies == "all":
            return found
        hidden = F.col("queue").isin([row["queue"] for row in masked.collect()])
        return found.withColumn("value", F.when(~hidden, F.col("value")))

    def _keep_unread(self, unread: DataFrame, topics: dict[str, Topic], ends: Ends) -> None:
        """Adds records to `undecodable`, unless it has them: when a job has ended between this
        commit and the next.
        """
        table = self._tables["undecodable"]
        held = table.held()
        there = {
            f"{topic}/{p}": offset
            for topic, has in held.items()
            if topic in topics and topics[topic].id == has.id
            for p, offset in has.next.items()
        }
        fresh = unread.where(
            F.col("offset") >= F.coalesce(looked_up(there, F.concat_ws("/", "topic", "partition")), F.lit(0))
        )
        if not fresh.isEmpty():
            ours = {topic: has for topic, has in held.items() if topic in topics}
            rows = fresh.withColumnRenamed("timestamp", "at")
            table.append(rows, {**held, **advanced(ours, topics, ends, _now_ms())})

    def _append(self, table: Table, rows: DataFrame, held: dict[str, Held], plan: Plan, began: float) -> None:
        now = topics_of(self._spark_session, self._log, lambda topic: topic in plan.end)
        if any(topic in now and now[topic].id != held[topic].id for topic in plan.end):
            raise Overtaken(f"{table.name}: a topic was deleted and made again meanwhile")
        added = table.append(rows, held)
        tell("lake", f"{table.name}: {added:,} rows added in {time.monotonic() - began:.1f} s")


def _now_ms() -> int:
    return int(time.time() * 1000)
