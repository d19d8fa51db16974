"""Sends of a queue: those that wait for its next commit, and those that one has taken.

Each has a time until which it is answered, counted from when its request came. One timer for all of
a queue looks after that. What still waits then was never given to Kafka, and never will be; what
was given to Kafka has an unknown outcome.
"""

from __future__ import annotations

import asyncio
import collections
import math
import secrets

from engine.errors import LogUnavailable, NotStored
from engine.log import Appended
from engine.rules.linger import batch_size_if_shared
from engine.rules.placement import RUN, Turn
from engine.rules.queue import Queue
from schemas.records import Message

BATCH_BYTES = 2_000_000
# The timer does not look more often than this, however many sends end one after the other.
LOOK_S = 0.05
# A timer that is so late says that this process stood still: what came for it is read first.
STOOD_STILL_S = 1.0
LOOK_AGAIN_S = 0.3


class PendingSend:
    """The messages of one send, the hex MD5 of each body, who waits for them, and until when (loop
    time).
    """

    __slots__ = ("digests", "done", "messages", "size", "until")

    def __init__(
        self, messages: list[Message], digests: list[str], size: int, done: asyncio.Future[list[Appended]], until: float
    ) -> None:
        self.messages = messages
        self.digests = digests
        self.size = size
        self.done = done
        self.until = until

    def fail(self, error: Exception) -> None:
        """Answers it with an error, unless it was answered before."""
        if not self.done.done():
            self.done.set_exception(error)


class SendBatch:
    """Sends of one queue (FIFO: of one partition) that wait for the next commit, or are in one."""

    __slots__ = (
        "_fixed", "_timer", "_timer_at", "_turn", "last", "queue", "records", "size", "starting", "taken", "took_s",
        "under_way", "waiting",
    )  # fmt: skip

    def __init__(self, queue: Queue, partition: int | None) -> None:
        self.queue = queue
        self.waiting: collections.deque[PendingSend] = collections.deque()
        self.records = self.size = 0
        self.last = 0
        self.took_s = 0.0
        self.under_way: list[list[PendingSend]] = []
        self.starting = False  # one of those under way has not taken what waits yet
        self.taken = 0  # records of the last batch, RUN at least where it has groups
        self._fixed = partition
        self._turn = Turn(secrets.randbelow(queue.record.partitions))
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf  # loop time

    def add(self, item: PendingSend) -> None:
        self.waiting.append(item)
        self.records += len(item.messages)
        self.size += item.size
        if item.until < self._timer_at:
            self._look_at(item.until)

    def take(self, most: int, items: list[PendingSend], now: float) -> None:
        """Fills the next batch, which is under way: with whole sends, until there are `most`
        records or BATCH_BYTES. Those whose time is over `now` are refused.
        """
        waiting, records, size = self.waiting, 0, 0
        while waiting and records < most and size < BATCH_BYTES:
            item = waiting.popleft()
            if item.until <= now:
                self._refuse(item)
                continue
            items.append(item)
            records += len(item.messages)
            size += item.size
        self.records -= records
        self.size -= size
        self.taken = RUN if items and items[0].messages[0].group is not None else records
        self.last = batch_size_if_shared(records, len(items))

    def next_partition(self) -> int:
        """Where the last batch goes."""
        return self._turn.next(self.queue.record.partitions, self.taken) if self._fixed is None else self._fixed

    def _look_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = asyncio.get_running_loop().call_at(at, self._answer_late)

    def _answer_late(self, again: bool = False) -> None:
        """Answers sends whose time is over."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not again and now - self._timer_at > STOOD_STILL_S:
            self._timer = loop.call_later(LOOK_AGAIN_S, self._answer_late, True)
            return
        self._timer, self._timer_at = None, math.inf
        waiting, self.waiting = self.waiting, collections.deque()
        for item in waiting:
            if item.until <= now:
                self._refuse(item)
            else:
                self.waiting.append(item)
        left = [item.until for item in self.waiting]
        for item in [item for items in self.under_way for item in items if not item.done.done()]:
            if item.until <= now:
                item.fail(
                    LogUnavailable(
                        f"Kafka did not answer in time for queue {self.queue.name!r}: what was sent may be stored"
                    )
                )
            else:
                left.append(item.until)
        if left:
            self._look_at(max(min(left), now + LOOK_S))

    def _refuse(self, item: PendingSend) -> None:
        """Answers a send that waited until its time was over."""
        self.records -= len(item.messages)
        self.size -= item.size
        item.fail(NotStored.of(self.queue.name))
