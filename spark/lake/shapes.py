"""The tables: their columns, the day by which they are partitioned, and how rows are sorted in
files.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructField, StructType

from spark.frames.columns import (
    AUDIT,
    BYTES,
    COUNTS,
    DELIVERIES,
    FLAG,
    INT,
    JOURNAL,
    LIFECYCLES,
    LONG,
    MESSAGES,
    METERS,
    QUEUES,
    REQUESTS,
    STALE_HANDLES,
    TEXT,
    TIME,
    row,
)

# One row per record of the control topic about a queue: a history of QUEUES, which Kafka compacts
# away. Key: log_partition, log_offset.
CONTROL = StructType([
    *row(logged_at=TIME, log_partition=INT, log_offset=LONG).fields,
    StructField("deleted", FLAG, True),  # Then only `queue` is said.
    *QUEUES.fields,
])  # fmt: skip

# One row per record that no other table shows in full. Key: topic, partition, offset, at.
UNDECODABLE = row(
    topic=TEXT,
    partition=INT,
    offset=LONG,
    at=TIME,  # Log-append time.
    reason=TEXT,  # As in UNREAD.
    schema_id=INT,
    value=BYTES,  # The whole record; null where bodies are not copied.
)


@dataclass(frozen=True)
class Shape:
    """A table: `day` is the column of the time by whose UTC day it is partitioned, None = it is
    not.
    """

    columns: StructType
    day: str | None
    order: tuple[str, ...]


SHAPES = {
    "messages": Shape(MESSAGES, "sent_at", ("queue", "partition", "offset")),
    "journal": Shape(JOURNAL, "at", ("queue", "incarnation", "partition", "seq")),
    "meters": Shape(METERS, "minute", ("queue", "minute")),
    "requests": Shape(REQUESTS, "minute", ("queue", "minute")),
    "audit": Shape(AUDIT, "at", ("queue", "at")),
    "control": Shape(CONTROL, None, ("queue", "log_offset")),
    "deliveries": Shape(DELIVERIES, "received_at", ("queue", "partition", "offset")),
    "lifecycles": Shape(LIFECYCLES, "sent_at", ("queue", "partition", "offset")),
    "queue_minutes": Shape(COUNTS, "minute", ("queue", "minute")),
    "stale_handles": Shape(STALE_HANDLES, "minute", ("queue", "minute")),
    "undecodable": Shape(UNDECODABLE, "at", ("topic", "partition", "offset")),
}
