"""What the brokers say of topics: ids and offsets, without reading a record."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from spark.frames.log import Log
from spark.frames.source import ANSWER, admin_of, java_class, unless_gone
from spark.lake.offsets import Ends, Topic

_COMMON, _ADMIN = "org.apache.kafka.common", "org.apache.kafka.clients.admin"


def cluster_of(spark_session: SparkSession, log: Log) -> str:
    """The id of the cluster. Raises Py4JJavaError."""
    with admin_of(spark_session, log, ANSWER) as admin:
        return str(admin.describeCluster().clusterId().get())


def topics_of(spark_session: SparkSession, log: Log, chosen: Callable[[str], bool]) -> dict[str, Topic]:
    """The topics whose names are chosen. The end of a partition is before the first transaction
    that is open. A topic that is deleted meanwhile is not there. Raises Py4JJavaError.
    """
    spec = java_class(spark_session, f"{_ADMIN}.OffsetSpec")
    level = java_class(spark_session, f"{_COMMON}.IsolationLevel").READ_COMMITTED
    committed = java_class(spark_session, f"{_ADMIN}.ListOffsetsOptions")(level)
    place_of, map_of = (java_class(spark_session, name) for name in (f"{_COMMON}.TopicPartition", "java.util.HashMap"))
    with admin_of(spark_session, log, ANSWER) as admin:
        names = java_class(spark_session, "java.util.ArrayList")()
        for name in sorted(name for name in map(str, admin.listTopics().names().get()) if chosen(name)):
            names.add(name)
        ids: dict[str, str] = {}
        places = {}
        for topic, future in admin.describeTopics(names).topicNameValues().items():
            about = unless_gone(future)
            if about is not None:
                ids[str(topic)] = str(about.topicId())
                for partition in range(about.partitions().size()):
                    places[str(topic), partition] = place_of(topic, partition)
        found = []
        for what in (spec.earliest(), spec.latest()):
            asked = map_of()
            for place in places.values():
                asked.put(place, what)
            told = admin.listOffsets(asked, committed)
            found.append({key: unless_gone(told.partitionResult(place)) for key, place in places.items()})
    first, end = ({key: int(info.offset()) for key, info in offsets.items() if info is not None} for offsets in found)
    firsts: Ends = {topic: {} for topic in ids}
    ends: Ends = {topic: {} for topic in ids}
    for topic, partition in first.keys() & end.keys():
        firsts[topic][partition], ends[topic][partition] = first[topic, partition], end[topic, partition]
    return {topic: Topic(ids[topic], firsts[topic], ends[topic]) for topic in ids}
