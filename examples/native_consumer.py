"""A stock Confluent Avro consumer that reads what HTTP clients sent: Kafka's own client, no code of
Leaseway's.

    python examples/native_consumer.py --queue orders \\
        --bootstrap 127.0.0.1:9092 --endpoint http://127.0.0.1:9400

`leaseway up` writes both addresses to DIR/run.json. The topic of a queue is lw.q.<queue>; the
facade serves the read side of the schema registry, so AvroDeserializer finds the schema by the id
in each record. Reading this way takes nothing from the queue: no lease, no ack, and the offsets
committed are those of this consumer's own group. Needs confluent-kafka with authlib, attrs,
cachetools, certifi, fastavro and httpx2.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError


def records(consumer: Consumer, count: int | None, idle_s: float) -> Iterator[Message]:
    """Up to `count` records; ends when none came for `idle_s` seconds. Raises KafkaException."""
    found, last = 0, time.monotonic()
    while (count is None or found < count) and time.monotonic() - last < idle_s:
        record = consumer.poll(0.5)
        if record is None:
            continue
        if record.error():
            raise KafkaException(record.error())
        found, last = found + 1, time.monotonic()
        yield record


def shown(record: Message, deserialise: AvroDeserializer) -> dict[str, Any]:
    """A record as JSON values. A plain Kafka producer's record is no Avro: then its value is the
    body, its headers the attributes.
    """
    place = {"partition": record.partition(), "offset": record.offset()}
    try:
        message = deserialise(record.value(), SerializationContext(record.topic() or "", MessageField.VALUE))
    except SerializationError:
        message = None
    if not isinstance(message, dict):
        headers = {name: text(value) for name, value in dict(record.headers() or []).items()}
        return {**place, "native": True, "body": text(record.value()), "attributes": headers}
    attributes = {name: text(attribute["value"]) for name, attribute in message["attributes"].items()}
    return {**place, "native": False, "body": text(message["body"]), "attributes": attributes}


def text(value: bytes | str | None) -> str:
    """Bytes for the eye."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value or ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a JSON line per record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="Kafka's host:port")
    parser.add_argument(
        "--endpoint", default="http://127.0.0.1:9400", help="the facade, which is the schema registry too"
    )
    parser.add_argument("--queue", required=True)
    parser.add_argument("--topic-prefix", default="lw")
    parser.add_argument("--group", default="native-example", help="the consumer group; it starts at the oldest record")
    parser.add_argument("--count", type=int, help="end after so many records")
    parser.add_argument(
        "--idle-exit", type=float, default=float("inf"), metavar="SECONDS", help="end when none came for so long"
    )
    given = parser.parse_args(arguments)
    consumer = Consumer(
        {"bootstrap.servers": given.bootstrap, "group.id": given.group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([f"{given.topic_prefix}.q.{given.queue}"])
    try:
        with SchemaRegistryClient({"url": given.endpoint}) as registry:
            deserialise = AvroDeserializer(registry)
            for record in records(consumer, given.count, given.idle_exit):
                print(json.dumps(shown(record, deserialise)), flush=True)
    except KeyboardInterrupt:
        return 130
    finally:
        consumer.close()  # commits, and leaves the group
    return 0


if __name__ == "__main__":
    sys.exit(main())
