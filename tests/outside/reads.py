"""What a program of the Kafka world reads from the topics of all queues, as JSON lines of
[queue, partition, offset, token] rows: `python -m tests.outside.reads BOOTSTRAP GROUP`.

A process of its own: the client library may kill the one that it is in when Kafka is killed
(docs/reference/failures.md, librdkafka 5280). It reads from the beginning until its standard input
ends, and then what is left.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

# How long it may take at the end to read what is left.
REST_WITHIN_S = 60.0
_TOKEN = re.compile(rb"tk-[\w.~-]+(?=\|)")


class Reading:
    """Prints what it reads; knows where it is in each partition."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 3000,
            "log_level": 0,
        }
        self._next: dict[tuple[str, int], int] = {}

    def until(self, ended: threading.Event) -> None:
        """As a member of a group, of topics that come and go."""
        consumer = Consumer(self._settings)
        consumer.subscribe([r"^lw\.q\..*"])
        while not ended.is_set():
            self._print(consumer.consume(500, 0.5))
        consumer.close()

    def rest(self) -> None:
        """What there is now, without a group: members may wait for each other for longer than a
        session lasts when Kafka has stood still, and that is not what is looked at here.
        """
        consumer = Consumer({**self._settings, "enable.partition.eof": True})
        topics = [
            topic for topic in consumer.list_topics(timeout=10).topics.values() if topic.topic.startswith("lw.q.")
        ]
        left = {(topic.topic, number) for topic in topics for number in topic.partitions}
        consumer.assign([TopicPartition(*part, self._next.get(part, OFFSET_BEGINNING)) for part in left])
        end = time.monotonic() + REST_WITHIN_S
        while left and time.monotonic() < end:
            messages = consumer.consume(500, 0.5)
            self._print(messages)
            ends = [
                message
                for message in messages
                if (error := message.error()) and error.code() == KafkaError._PARTITION_EOF
            ]
            left -= {(str(message.topic()), message.partition() or 0) for message in ends}
        consumer.close()

    def _print(self, messages: Iterable[Message]) -> None:
        rows = []
        for message in messages:
            topic, partition, offset = str(message.topic()), message.partition() or 0, message.offset()
            if message.error() or offset is None:
                continue
            self._next[topic, partition] = offset + 1
            if found := _TOKEN.search(message.value() or b""):
                rows.append([topic[5:], partition, offset, found[0].decode()])
        if rows:
            print(json.dumps(rows, separators=(",", ":")), flush=True)


def main() -> None:
    """Until standard input ends, and what is left then."""
    reading, ended = Reading(*sys.argv[1:3]), threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    reading.until(ended)
    reading.rest()


if __name__ == "__main__":
    main()
