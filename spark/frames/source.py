"""Reads topics as Kafka gives them, in batch and as a stream; a range goes down to the brokers."""

from __future__ import annotations

import contextlib
import json
import re
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from schemas.topics import control_topic, queue_topics
from spark.frames.failures import kafka_failure
from spark.frames.log import Log, NoBroker, epoch_ms, moment

# A topic may be deleted, or retention move on, while a job reads: what is gone is not a failure of
# the job.
_TASK_RECORDS = "250000"  # Of one task: a queue's large partition is read by several.
# A consumer that has read asks ahead, and Spark then asks it where the partition ends: that waits
# behind, by default half a second in each task. No task reads past an end, so none asks in vain.
_BOTH = {"failOnDataLoss": "false", "includeHeaders": "true", "kafka.fetch.max.wait.ms": "10"}
# What a Kafka-native producer aborts is no message, and what it has not committed is none yet. Not
# where a range names its last offset: that may be behind a transaction that is open.
_COMMITTED = {"kafka.isolation.level": "read_committed"}
Offsets = Mapping[str, Mapping[int, int]]
# How long brokers may take to answer at all, and one of them before another is asked. 5 s were too
# few at a load of 25 on two cores.
ANSWER = {"default.api.timeout.ms": "20000", "request.timeout.ms": "7000"}


@dataclass(frozen=True)
class Span:
    """What to read: log-append times in epoch ms, `from_ms` <= time < `to_ms`, or offsets by topic
    and partition. None = no bound.

    Offsets go before times, and must name every partition of every topic that is read.
    """

    from_ms: int | None = None
    to_ms: int | None = None
    from_offsets: Offsets = field(default_factory=dict)
    to_offsets: Offsets = field(default_factory=dict)

    def padded(self, before_ms: int, after_ms: int) -> Span:
        """The same span with more time on either side."""
        low = None if self.from_ms is None else max(0, self.from_ms - before_ms)
        high = None if self.to_ms is None else self.to_ms + after_ms
        return Span(low, high, self.from_offsets, self.to_offsets)

    def both(self, other: Span) -> Span:
        """The times that are in both spans."""
        lows = [ms for ms in (self.from_ms, other.from_ms) if ms is not None]
        highs = [ms for ms in (self.to_ms, other.to_ms) if ms is not None]
        return Span(max(lows, default=None), min(highs, default=None), self.from_offsets, self.to_offsets)


ALL = Span()


def span_of(given: Namespace) -> Span:
    """The times that `--from` and `--to` name. Raises BadOption."""
    from_ms, to_ms = (None if text is None else epoch_ms(moment(text)) for text in (given.begin, given.end))
    return Span(from_ms, to_ms)


def all_queues(log: Log) -> dict[str, str]:
    """Source option for the topics of all queues."""
    return _pattern(re.escape(queue_topics(log.prefix)) + ".*")


def some_queues(log: Log, queues: Collection[str]) -> dict[str, str]:
    """Source option for the topics of these queues; one that is gone is an empty one, as in
    `one_topic`.
    """
    names = "|".join(map(re.escape, sorted(queues)))
    # Of no queue: no topic's name has a space.
    return _pattern(re.escape(queue_topics(log.prefix)) + (f"(?:{names})" if names else " "))


def one_topic(name: str) -> dict[str, str]:
    """Source option for one topic; a pattern, since a topic that does not exist yet is an empty one
    and not a failure.
    """
    return _pattern(re.escape(name))


def _pattern(names: str) -> dict[str, str]:
    """Source option for the topics whose whole name matches: Spark looks for a part that does."""
    return {"subscribePattern": f"^{names}$"}


def parts(span: Span) -> dict[str, str]:
    """Source option for exactly the partitions whose offsets a span names."""
    return {"assign": json.dumps({topic: sorted(numbers) for topic, numbers in span.from_offsets.items()})}


def read(
    spark_session: SparkSession, log: Log, topics: Mapping[str, str], span: Span = ALL, *, committed: bool = False
) -> DataFrame:
    """The records of `topics` in `span`: key, value, topic, partition, offset, timestamp, headers.

    The range is resolved to offsets by the brokers, so nothing outside is fetched. `committed`: no
    offset of the span is behind a transaction that is open, so what was aborted is left out too.
    """
    isolation = {} if span.to_offsets and not committed else _COMMITTED
    reader = spark_session.read.format("kafka").options(
        **_BOTH, **log.source_options, **isolation, **topics, **_bounds(span)
    )
    reader = reader.option("maxRecordsPerPartition", _TASK_RECORDS)
    return reader.load()


def stream(spark_session: SparkSession, log: Log, topics: Mapping[str, str], most_records: int = 200_000) -> DataFrame:
    """The same as a stream from the oldest record on; at most `most_records` in a micro-batch. New
    queues join by themselves.
    """
    options = {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(most_records),
        "kafka.metadata.max.age.ms": "10000",
    }
    return (
        spark_session.readStream.format("kafka")
        .options(**_BOTH, **log.source_options, **_COMMITTED, **topics, **options)
        .load()
    )


def answered(spark_session: SparkSession, log: Log) -> None:
    """Looks whether the brokers answer, and let us read what every table needs. Raises NoBroker.

    A topic that we may not read is to Spark's source as one that is not there: without a word.
    """
    control = control_topic(log.prefix)
    try:
        with admin_of(spark_session, log, ANSWER) as admin:
            admin.describeCluster().nodes().get()
            admin.describeTopics([control]).allTopicNames().get()
    except Py4JJavaError as error:
        reason = _reason(error)
        if reason.startswith("UnknownTopicOrPartitionException"):  # no service has run yet
            return
        if reason.startswith("TopicAuthorizationException"):
            raise NoBroker(
                f"the brokers of {log.bootstrap} do not let us read {control}, which has the names of the queues: "
                "give --data, or a --kafka-config with credentials that may"
            ) from None
        raise NoBroker(f"the brokers of {log.bootstrap} do not answer: {reason}") from None


def queues_of_topics(spark_session: SparkSession, log: Log) -> list[str]:
    """The names of the queues that have a topic. Raises Py4JJavaError."""
    with admin_of(spark_session, log, ANSWER) as admin:
        topics = map(str, admin.listTopics().names().get())
    first = queue_topics(log.prefix)
    return sorted(topic.removeprefix(first) for topic in topics if topic.startswith(first))


def newest_ms(spark_session: SparkSession, log: Log, topics: Collection[str]) -> dict[tuple[str, int], int]:
    """The time of the newest record of each partition of these topics, as the brokers know it:
    epoch ms; an empty partition, and a topic that is not there, have none. Reads no record. Raises
    Py4JJavaError.
    """
    newest = java_class(spark_session, "org.apache.kafka.clients.admin.OffsetSpec").maxTimestamp()
    place_of = java_class(spark_session, "org.apache.kafka.common.TopicPartition")
    there, asked = (java_class(spark_session, f"java.util.{name}")() for name in ("ArrayList", "HashMap"))
    found = {}
    with admin_of(spark_session, log, ANSWER) as admin:
        for topic in sorted(set(map(str, admin.listTopics().names().get())).intersection(topics)):
            there.add(topic)
        for topic, future in admin.describeTopics(there).topicNameValues().items():
            about = unless_gone(future)
            for partition in range(0 if about is None else about.partitions().size()):
                asked.put(place_of(topic, partition), newest)
        told = admin.listOffsets(asked)
        for place in asked:
            info = unless_gone(told.partitionResult(place))
            if info is not None and info.timestamp() >= 0:
                found[str(place.topic()), int(place.partition())] = int(info.timestamp())
    return found


def unless_gone(future: Any) -> Any:
    """What Kafka answered; None = the topic has been deleted meanwhile. Raises Py4JJavaError."""
    try:
        return future.get()
    except Py4JJavaError as error:
        if _reason(error).startswith("UnknownTopicOrPartitionException"):
            return None
        raise


def _reason(error: Py4JJavaError) -> str:
    return kafka_failure(error) or str(error.java_exception.getMessage())


def java_class(spark_session: SparkSession, name: str) -> Any:
    """A class of the JVM by its whole name. Of `jvm.a.b.C` py4j asks for `a` and `a.b` before, and
    the JVM looks for each of these into every jar of Spark.
    """
    return getattr(spark_session._jvm, name)  # noqa: SLF001 - PySpark has no other way to what its sources bring


@contextlib.contextmanager
def admin_of(spark_session: SparkSession, log: Log, options: Mapping[str, str] = MappingProxyType({})) -> Iterator[Any]:
    """Kafka's own admin client. Raises Py4JJavaError."""
    properties = java_class(spark_session, "java.util.Properties")()
    for name, value in {**log.client_options, **options}.items():
        properties.setProperty(name, value)
    admin = java_class(spark_session, "org.apache.kafka.clients.admin.Admin").create(properties)
    try:
        yield admin
    finally:
        # What did not answer is not waited for.
        admin.close(java_class(spark_session, "java.time.Duration").ZERO)


def make_topic(spark_session: SparkSession, log: Log, topic: str) -> None:
    """Makes a topic with the brokers' defaults unless it is there. Raises Py4JJavaError: not
    allowed, or no broker.
    """
    with admin_of(spark_session, log) as admin:
        if not admin.listTopics().names().get().contains(topic):
            # The number of partitions and of replicas: the brokers'.
            brokers = java_class(spark_session, "java.util.Optional").empty()
            new = java_class(spark_session, "org.apache.kafka.clients.admin.NewTopic")(topic, brokers, brokers)
            one = java_class(spark_session, "java.util.Collections").singleton(new)
            admin.createTopics(one).all().get()


def write_topic(frame: DataFrame, log: Log, topic: str) -> None:
    """Appends a frame of key and value to a topic, at least once."""
    frame.write.format("kafka").options(**log.source_options).option("topic", topic).save()


def _bounds(span: Span) -> dict[str, str]:
    bounds = {"startingOffsets": "earliest", "endingOffsets": "latest"}
    if span.from_offsets:
        bounds["startingOffsets"] = _json(span.from_offsets)
    elif span.from_ms is not None:
        # A partition without a record that young has nothing to give; the source's default is to
        # fail.
        bounds.update(startingTimestamp=str(span.from_ms), startingOffsetsByTimestampStrategy="latest")
        del bounds["startingOffsets"]
    if span.to_offsets:
        bounds["endingOffsets"] = _json(span.to_offsets)
    elif span.to_ms is not None:
        bounds["endingTimestamp"] = str(span.to_ms)
        del bounds["endingOffsets"]
    return bounds


def _json(offsets: Offsets) -> str:
    return json.dumps({topic: {str(p): offset for p, offset in parts.items()} for topic, parts in offsets.items()})
