"""Which topics a frame reads, beside topics with names that are like them."""

from __future__ import annotations

import secrets

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import SparkSession

from spark.frames.log import Log
from spark.frames.source import all_queues, one_topic, read, some_queues
from tests.services import Services


def test_a_topic_whose_name_contains_that_of_another_is_not_read_for_it(
    spark_session: SparkSession, stack: Services
) -> None:
    prefix = f"n{secrets.token_hex(3)}"
    names = ("q.a", "q.a.dead", "q.b", "journal", "journal.old")
    topics = [f"{first}{prefix}.{name}" for name in names for first in ("", "other.")]
    admin = AdminClient({"bootstrap.servers": stack.bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        made.result(60)
    producer = Producer({"bootstrap.servers": stack.bootstrap})
    for topic in topics:
        producer.produce(topic, topic.replace(f"{prefix}.", "").encode())
    assert producer.flush(60) == 0
    log = Log(stack.bootstrap, prefix)

    def values(topics: dict[str, str]) -> list[str]:
        return sorted(bytes(row.value).decode() for row in read(spark_session, log, topics).select("value").collect())

    assert values(one_topic(f"{prefix}.journal")) == ["journal"]
    assert values(all_queues(log)) == ["q.a", "q.a.dead", "q.b"]
    assert (values(some_queues(log, ["b", "a", "gone"])), values(some_queues(log, []))) == (["q.a", "q.b"], [])
