"""Sends that wait for the next commit of their queue.

Neighbours: `sender.py` begins and ends commits. Must not know Kafka or Redis.
"""

from __future__ import annotations

import asyncio
import collections
import secrets

from engine.linger import company
from engine.log import Appended
from engine.queue import Queue
from schemas.records import Message

GROUP_BYTES = 2_000_000


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

    __slots__ = ("fixed", "last", "queue", "records", "size", "starting", "took_s", "turn", "under_way", "waiting")

    def __init__(self, queue: Queue, partition: int | None) -> None:
        self.queue = queue
        self.waiting: collections.deque[Item] = collections.deque()
        self.records = self.size = 0
        self.last = 0
        self.took_s = 0.0
        self.under_way = 0
        self.starting = False  # one of those under way has not taken what waits yet
        self.fixed = partition is not None
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
        self.last = company(records, len(items))
        return items

    def next_partition(self) -> int:
        """Sends of a standard queue go to its partitions in turn."""
        if not self.fixed:
            self.turn = (self.turn + 1) % self.queue.record.partitions
        return self.turn
