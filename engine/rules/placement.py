"""Which partition a message goes to, and how many a queue of each kind has."""

from __future__ import annotations

import zlib

import msgspec

from engine.errors import InvalidValue
from engine.rules.fifo import partition_of_group
from engine.shapes import QueueSettings
from schemas.records import Message, QueueRecord
from schemas.vocabulary import PRIORITIES

# A standard queue's sends stay in a partition until it has got so many records: who receives then
# finds what was sent one after the other in one place, and in order. What is sent in batches of as
# many goes to another partition each time; so do messages of a fair queue's groups, for a partition
# knows only of its own which group is noisy.
RUN = 100


def fixed_partition(record: QueueRecord, group: str | None, priority: int) -> int | None:
    """Where messages of a group (FIFO) or of a priority have to go; None = any partition, in
    turn.
    """
    if record.fifo:
        return partition_of_group(record, group or "")
    return priority - 1 if record.priority else None


def priority_of(partition: int) -> int:
    """The priority of the messages in a partition of a queue with priority."""
    return partition + 1


def with_priority(record: QueueRecord, partition: int, message: Message) -> Message:
    """A message as its queue takes it: a Kafka-native producer's has the priority of the partition
    that it is in.
    """
    if not record.priority or message.sender:
        return message
    return msgspec.structs.replace(message, priority=priority_of(partition))


def moved_partition(record: QueueRecord, message: Message, from_id: str, from_tag: str) -> int:
    """Where a moved message goes: the same for each copy of a move, so that copies meet in one
    window.
    """
    fixed = fixed_partition(record, message.group, message.priority)
    return zlib.crc32(f"{from_id}/{from_tag}".encode()) % record.partitions if fixed is None else fixed


def check_priority_settings(settings: QueueSettings) -> None:
    """Raises InvalidValue for a queue with priority that is FIFO too, or names another number of
    partitions.
    """
    if not settings.priority:
        return
    if settings.fifo:
        raise InvalidValue("a queue is FIFO or has priority, not both", field="priority", limit="a standard queue", given=True)
    if settings.partitions not in (None, PRIORITIES):
        raise InvalidValue(
            f"a queue with priority has {PRIORITIES} partitions, one for each, given {settings.partitions}",
            field="partitions",
            limit=PRIORITIES,
            given=settings.partitions,
        )


def least_partitions(settings: QueueSettings) -> int | None:
    """Partitions of a queue whose kind decides that; None = the default of the service."""
    if settings.priority:
        return PRIORITIES
    return 1 if settings.fifo and settings.dedup_scope != "group" else None


class Turn:
    """The partition that a standard queue's sends go to: each in turn, RUN records or more."""

    __slots__ = ("_partition", "_records")

    def __init__(self, first: int) -> None:
        self._partition = first
        self._records = 0

    def next(self, partitions: int, records: int) -> int:
        """Where the next `records` go."""
        if self._records >= RUN:
            self._partition = (self._partition + 1) % partitions
            self._records = 0
        self._records += records
        return self._partition
