"""Which partition a message goes to."""

from __future__ import annotations

import zlib

from engine.rules.fifo import partition_of_group
from schemas.records import QueueRecord

# A standard queue's sends stay in a partition until it has got so many records: who receives then
# finds what was sent one after the other in one place, and in order. What is sent in batches of as
# many goes to another partition each time; so do messages of a fair queue's groups, for a partition
# knows only of its own which group is noisy.
RUN = 100


def fixed_partition(record: QueueRecord, group: str | None) -> int | None:
    """Where a group of a FIFO queue has its messages; None = a standard queue: any, in turn."""
    return partition_of_group(record, group or "") if record.fifo else None


def moved_partition(record: QueueRecord, group: str | None, from_id: str, from_tag: str) -> int:
    """Where a moved message goes: the same for each copy of a move, so that copies meet in one
    window.
    """
    fixed = fixed_partition(record, group)
    return zlib.crc32(f"{from_id}/{from_tag}".encode()) % record.partitions if fixed is None else fixed


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
