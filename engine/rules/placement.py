"""Which partition a message goes to."""

from __future__ import annotations

import zlib

import msgspec

from engine.rules.fifo import partition_of_group
from schemas.identity import address_of
from schemas.records import Message, QueueRecord

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
    window, also when another secret made the id meanwhile.
    """
    fixed = fixed_partition(record, message.group, message.priority)
    return zlib.crc32(f"{address_of(from_id)}/{from_tag}".encode()) % record.partitions if fixed is None else fixed


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
