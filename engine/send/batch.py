"""Sends that wait for the next commit of their queue.

It knows neither Kafka nor Redis.
"""

from __future__ import annotations

import collections
import secrets

from engine.log import Appended
from engine.rules.linger import batch_size_if_shared
from engine.rules.placement import RUN, Turn
from engine.rules.queue import Queue
from engine.runtime.outcomes import Outcome
from schemas.records import Message

BATCH_BYTES = 2_000_000


class PendingSend:
    """The messages of one send, the hex MD5 of each body, and who waits for them."""

    __slots__ = ("digests", "done", "messages", "size")

    def __init__(self, messages: list[Message], digests: list[str], size: int, done: Outcome[list[Appended]]) -> None:
        self.messages = messages
        self.digests = digests
        self.size = size
        self.done = done


class SendBatch:
    """Sends of one queue (FIFO: of one partition) that wait for the next commit."""

    __slots__ = ("_fixed", "_turn", "last", "queue", "records", "size", "starting", "taken", "took_s", "under_way", "waiting")

    def __init__(self, queue: Queue, partition: int | None) -> None:
        self.queue = queue
        self.waiting: collections.deque[PendingSend] = collections.deque()
        self.records = self.size = 0
        self.last = 0
        self.took_s = 0.0
        self.under_way = 0
        self.starting = False  # one of those under way has not taken what waits yet
        self.taken = 0  # records of the last batch, RUN at least where it has groups
        self._fixed = partition
        self._turn = Turn(secrets.randbelow(queue.record.partitions))

    def add(self, item: PendingSend) -> None:
        self.waiting.append(item)
        self.records += len(item.messages)
        self.size += item.size

    def take(self, most: int) -> list[PendingSend]:
        """The next batch: whole sends, until there are `most` records or BATCH_BYTES."""
        items: list[PendingSend] = []
        waiting, records, size = self.waiting, 0, 0
        while waiting and records < most and size < BATCH_BYTES:
            item = waiting.popleft()
            items.append(item)
            records += len(item.messages)
            size += item.size
        self.records -= records
        self.size -= size
        self.taken = RUN if items and items[0].messages[0].group is not None else records
        self.last = batch_size_if_shared(records, len(items))
        return items

    def next_partition(self) -> int:
        """Where the last batch goes."""
        return self._turn.next(self.queue.record.partitions, self.taken) if self._fixed is None else self._fixed
