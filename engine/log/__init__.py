"""Kafka, as the engine sees it: append, fetch, look after topics. The only package that imports the
Kafka client.

Neighbours: `produce` appends, `read` fetches, `admin` looks after topics, `faults` maps errors,
`log` is all of it for the engine. Nothing here knows queues, tags or what a value means.
"""

from engine.log.log import Log
from engine.log.shapes import MAX_RECORD_BYTES, Appended, Chunk, Headers, Record, TopicPartition, TopicSpec

__all__ = ["MAX_RECORD_BYTES", "Appended", "Chunk", "Headers", "Log", "Record", "TopicPartition", "TopicSpec"]
