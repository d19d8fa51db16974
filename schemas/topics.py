"""Names in Kafka: topics, consumer groups and record keys, each spelled here alone."""

from __future__ import annotations

import zlib
from typing import Final

DEFAULT_PREFIX: Final = "lw"  # First part of every topic, and of every key in Redis.
QUEUE_KEY: Final = "queue/"  # Keys of queues' records in the control topic begin so; the name follows.
WATCH_KEY: Final = "watch/"  # Keys of what is watched of a queue; its name follows.
METER_PARTITIONS: Final = 4  # A queue has all of its minutes in one of them.
METER_DAYS: Final = 35  # Kafka keeps the meters, and the requests, so long.


def queue_topics(prefix: str) -> str:
    """What the names of all queues' topics begin with; the queue's name follows."""
    return f"{prefix}.q."


def queue_topic(prefix: str, queue: str) -> str:
    """Topic of a queue's messages."""
    return f"{queue_topics(prefix)}{queue}"


def control_topic(prefix: str) -> str:
    """Topic of the control records: queues, keys, tasks, the generation."""
    return f"{prefix}.control"


def journal_topic(prefix: str) -> str:
    """Topic of what happened to messages under tags."""
    return f"{prefix}.journal"


def snapshot_topic(prefix: str) -> str:
    """Topic of the folded journal."""
    return f"{prefix}.snapshot"


def half_topic(prefix: str) -> str:
    """Topic of transactions: messages that are not committed yet, and what was decided."""
    return f"{prefix}.half"


def meter_topic(prefix: str) -> str:
    """Topic of what requests the queues have seen, minute by minute."""
    return f"{prefix}.meter"


def meter_partition(incarnation: str) -> int:
    """The partition of the meter topic that has a life of a queue."""
    return zlib.crc32(incarnation.encode()) % METER_PARTITIONS


def requests_topic(prefix: str) -> str:
    """Topic of who has asked for what, minute by minute, and what came of it."""
    return f"{prefix}.requests"


def delay_topic(prefix: str) -> str:
    """Topic of the wheel: pointers to messages that are due much later."""
    return f"{prefix}.delay"


def history_topic(prefix: str) -> str:
    """Topic of what the numbers of queues were, by their names in Redis."""
    return f"{prefix}.history"


def audit_topic(prefix: str) -> str:
    """Topic of who has asked for what, and what came of it."""
    return f"{prefix}.audit"


def rates_topic(prefix: str) -> str:
    """Topic of the rates that `leaseway live` writes, unless it is told another."""
    return f"{prefix}.rates"


def group_name(prefix: str, queue: str, tag: str) -> str:
    """Consumer group whose committed offsets show a tag's floor to Kafka's lag tools; never read by
    us.
    """
    return f"{prefix}.{queue}.{tag}"
