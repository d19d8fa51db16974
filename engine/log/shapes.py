"""What goes into the log and comes out of it. No client types here, so that the engine can import
them freely.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

TopicPartition: TypeAlias = tuple[str, int]  # topic, partition
Headers: TypeAlias = list[tuple[str, bytes | None]]
# The largest record that we ever append, a snapshot. What a topic takes is for the broker to say: 4
# MiB unless it is told otherwise.
MAX_RECORD_BYTES = 16 * 1024 * 1024


class Record(Struct, frozen=True, gc=False):
    """A record as Kafka keeps it. `timestamp_ms` is epoch ms (0 if Kafka has none); `headers` None
    if it has none.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


class Appended(Struct, frozen=True, gc=False):
    """Where an append went. `timestamp_ms` is the broker's log-append time (the client's if the
    topic says CreateTime).
    """

    partition: int
    offset: int
    timestamp_ms: int


class Chunk(Struct, frozen=True):
    """Records of one partition, ascending, with what is needed to read on.

    `next_offset` is where to read on: it has passed holes (compaction, markers), and may be below
    the offset asked for if the log is shorter than that. `at_end` says that nothing followed when
    the broker was asked. `truncated` says that retention has passed the offset asked for, so
    records are missing before the first one. `open_from`: records from there on are beyond the
    beginning of a transaction of Kafka that has not ended.
    """

    records: list[Record]
    next_offset: int
    at_end: bool
    truncated: bool = False
    open_from: int | None = None


class TopicSpec(Struct, frozen=True):
    """A topic to create. `config` holds Kafka's topic settings by name, values as text."""

    name: str
    partitions: int
    replication_factor: int
    config: dict[str, str]
