"""Kafka, as the engine sees it: append, fetch, look after topics. The only package that imports the
Kafka client.

Nothing here knows queues, tags or what a value means.
"""

from engine.log.log import Log, value_bytes
from engine.log.shapes import MAX_RECORD_BYTES, Appended, Chunk, Headers, Record, TopicPartition, TopicSpec

__all__ = [
    "MAX_RECORD_BYTES",
    "Appended",
    "Chunk",
    "Headers",
    "Log",
    "Record",
    "TopicPartition",
    "TopicSpec",
    "value_bytes",
]
