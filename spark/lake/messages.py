"""The messages of one commit: judged, cut where a batch may still become whole, without the bodies
that are not to be copied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from schemas.topics import journal_topic, queue_topics
from spark.frames.columns import MESSAGES
from spark.frames.decode import avro_fields, head_id, messages_of
from spark.frames.log import Log
from spark.frames.source import newest_ms
from spark.frames.tables import looked_up, with_queues
from spark.lake.offsets import Ends, Plan
from spark.rules.atomic_batches import judged_by
from spark.rules.commits import is_commit
from spark.rules.deliveries import incarnation_of

# So long before a message may be what tells about it: the first records of its batch (30 s), or
# another copy of its commit.
_BEFORE_US = 60 * 60 * 1_000_000
_PLACE = ["queue", "partition", "offset"]
_JUDGED = (*_PLACE, "sent_at", "status", "batch", "origin")


@dataclass(frozen=True)
class Newest:
    """The times (epoch ms) of the newest record of each partition of each topic, as the brokers
    knew them before the ends of a commit were chosen.
    """

    of: Mapping[tuple[str, int], int]
    prefix: str

    def here(self, plan: Plan, read: Mapping[tuple[str, int], int]) -> Column:
        """Of a message's partition. Where the commit does not reach its end, that of what was
        `read`: more of a batch may lie behind it.
        """
        return looked_up({self._key(*place): ms for place, ms in {**self._whole(plan), **read}.items()}, self._row())

    def anywhere(self, plan: Plan) -> Column:
        """Of its queue and the journal; null where a commit does not reach the end."""
        journal = journal_topic(self.prefix)
        floor = max((ms for (topic, _), ms in self.of.items() if topic == journal), default=0)
        newest: dict[str, int] = {}
        for (topic, _), ms in self.of.items():
            newest[topic] = max(newest.get(topic, floor), ms)
        return looked_up({self._key(*place): newest[place[0]] for place in self._whole(plan)}, self._row())

    def _whole(self, plan: Plan) -> dict[tuple[str, int], int]:
        first = queue_topics(self.prefix)
        return {place: ms for place, ms in self.of.items() if place[0].startswith(first) and place not in plan.cut}

    def _key(self, topic: str, partition: int) -> str:
        return f"{topic[len(queue_topics(self.prefix)) :]}/{partition}"

    def _row(self) -> Column:
        return F.concat_ws("/", "queue", "partition")


def newest_of(spark_session: SparkSession, log: Log, topics: Collection[str]) -> Newest:
    """What the brokers say now of these topics and the journal. Raises Py4JJavaError."""
    return Newest(newest_ms(spark_session, log, {journal_topic(log.prefix), *topics}), log.prefix)


def undecided_from(judged: DataFrame, prefix: str) -> Ends:
    """The first offset of each partition whose message may still become what it is not yet; by
    topic.
    """
    waits = judged.where("status = 'undecided'").groupBy("queue", "partition").agg(F.min("offset").alias("offset"))
    found: Ends = {}
    for row in waits.collect():
        found.setdefault(queue_topics(prefix) + row["queue"], {})[row["partition"]] = row["offset"]
    return found


def sizes(messages: DataFrame) -> DataFrame:
    """queue, partition, records, bytes, newest_ms, and how many are broken."""
    return messages.groupBy("queue", "partition").agg(
        F.count("*").alias("records"),
        F.sum("body_bytes").alias("bytes"),
        F.unix_millis(F.max("sent_at")).alias("newest_ms"),
        F.count(F.when(F.col("status") == "undecodable", 1)).alias("broken"),
    )


def special(messages: DataFrame) -> DataFrame:
    """The messages of which others tell: those of batches and of commits."""
    return messages.where(F.col("batch").isNotNull() | is_commit())


def judged(messages: DataFrame, there: DataFrame, here: Column, anywhere: Column) -> DataFrame | None:
    """queue, partition, offset, status of the `special` ones of `messages`, beside those that the
    table has of the hour before; None = there are none.
    """
    few = special(messages).select(*_JUDGED)
    low = few.agg(F.unix_micros(F.min("sent_at"))).collect()[0][0]
    if low is None:
        return None
    since = F.timestamp_micros(F.lit(low - _BEFORE_US))
    known = special(there.where((F.col("sent_at") >= since) & (F.col("status") != "undecodable")))
    units = F.broadcast(few.select("queue", "partition").distinct())
    old = known.join(units, on=["queue", "partition"], how="left_semi").select(*_JUDGED)
    # Whatever they came to be: they are judged again, as a part of what is judged now.
    both = few.withColumn("new", F.lit(True)).unionByName(
        old.withColumn("status", F.lit("shown")).withColumn("new", F.lit(False))
    )
    return judged_by(both, here, anywhere).where("new").select(*_PLACE, "status")


def with_status(messages: DataFrame, judged: DataFrame) -> DataFrame:
    """The messages with the statuses that were found for some of them."""
    found = judged.withColumnRenamed("status", "found")
    joined = messages.join(found, on=_PLACE, how="left")
    return joined.withColumn("status", F.coalesce("found", "status")).select(*messages.columns)


def before(messages: DataFrame, ends: Ends, prefix: str) -> DataFrame:
    """The messages that are before these ends, by topic."""
    first = len(queue_topics(prefix))
    ends_of = {f"{topic[first:]}/{p}": end for topic, parts in ends.items() for p, end in parts.items()}
    return messages.where(F.col("offset") < looked_up(ends_of, F.concat_ws("/", "queue", "partition")))


def masked_queues(newest: DataFrame) -> DataFrame:
    """queue, incarnation of the queues that have a mask, a row for each life that they had. Reads
    the newest record of each queue.
    """
    read = newest.withColumn("schema_id", head_id()).select(avro_fields("queue").alias("q"))
    lives = F.concat(F.array("q.incarnation"), "q.former_incarnations")
    return read.where(F.size("q.mask") > 0).select(
        F.col("q.name").alias("queue"), F.explode(lives).alias("incarnation")
    )


def bodies_left_out(messages: DataFrame, bodies: str | None, masked: DataFrame) -> DataFrame:
    """The messages without the bodies and attributes that are not to be copied: of `none`, or not
    of those that a mask hides something of.

    A dead letter is hidden as its own queue, the one it was sent to and the one it died in say.
    """
    if bodies == "all":
        return messages
    hidden = F.lit(True)
    if bodies != "none":
        rows = masked.collect()
        names, lives = [row["queue"] for row in rows], [row["incarnation"] for row in rows]
        hidden = F.col("queue").isin(names) | F.coalesce(F.col("origin.original_queue").isin(names), F.lit(False))
        hidden = hidden | F.coalesce(incarnation_of(F.col("origin.from_id")).isin(lives), F.lit(False))
    for column in ("body", "body_text", "attributes"):
        kind = MESSAGES[column].dataType
        messages = messages.withColumn(column, F.when(~hidden, F.col(column)).otherwise(F.lit(None).cast(kind)))
    return messages


def decoded(records: DataFrame, queues: DataFrame, prefix: str) -> DataFrame:
    """MESSAGES that are not judged."""
    return with_queues(messages_of(records, queue_topics(prefix)), queues)
