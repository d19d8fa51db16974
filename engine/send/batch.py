"""Sends that wait for the next commit of their queue.

Neighbours: `sender.py` begins and ends commits. Must not know Kafka or Redis.
"""

from __future__ import annotations

import asyncio
import collections
import secrets

from engine.log import Appended
from engine.rules.linger import company
from engine.rules.queue import Queue
from schemas.records import Message

GROUP_BYTES = 2_000_000
# A queue's sends stay in a partition until it has got so many records: who receives then finds what
# was sent one after the other in one place, and in order. What is sent in groups of as many goes to
# another partition each time; so do messages of a fair queue's groups, for a partition knows only
# of its own which group is noisy.
RUN = 100


class Item:
    """The messages of one send, the hex MD5 of each body, and who waits for them."""

    __slots__ = ("digests", "done", "messages", "size")

    def __init__(self, messages: list[Message], digests: list[str], size: int, done: asyncio.Future[list[Appended]]) -> None:
        self.messages = messages
        self.digests = digests
        self.size = size
        self.done = done


class Group:
    """Sends of one queue (FIFO: of one partition) that wait for the next commit."""

    __slots__ = ("fixed", "last", "queue", "records", "run", "size", "starting", "taken", "took_s", "turn", "under_way", "waiting")

    def __init__(self, queue: Queue, partition: int | None) -> None:
        self.queue = queue
        self.waiting: collections.deque[Item] = collections.deque()
        self.records = self.size = 0
        self.last = 0
        self.took_s = 0.0
        self.under_way = 0
        self.starting = False  # one of those under way has not taken what waits yet
        self.fixed = partition is not None
        self.run = self.taken = 0  # records that the partition whose turn it is has got, and of the last group
        self.turn = secrets.randbelow(queue.record.partitions) if partition is None else partition

    def add(self, item: Item) -> None:
        self.waiting.append(item)
        self.records += len(item.messages)
        self.size += item.size

    def take(self, most: int) -> list[Item]:
        """The next group: whole sends, until there are `most` records or GROUP_BYTES."""
        items: list[Item] = []
        waiting, records, size = self.waiting, 0, 0
        while waiting and records < most and size < GROUP_BYTES:
            item = waiting.popleft()
            items.append(item)
            records += len(item.messages)
            size += item.size
        self.records -= records
        self.size -= size
        self.taken = RUN if items and items[0].messages[0].group is not None else records
        self.last = company(records, len(items))
        return items

    def next_partition(self) -> int:
        """Where the last group goes: those of a standard queue to its partitions in turn, RUN
        records or more to each.
        """
        if self.run >= RUN and not self.fixed:
            self.turn = (self.turn + 1) % self.queue.record.partitions
            self.run = 0
        self.run += self.taken
        return self.turn
