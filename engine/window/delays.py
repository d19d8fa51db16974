"""How many delayed messages a partition may have under a tag: each is open in Redis from its send
on, beside what is ready.

The window takes a bounded number of open messages. Were it full of delayed ones, nothing behind
them would come; so a send that would make more of them than MAX_DELAYED is refused, which leaves
room for the others. What is delayed is counted by Redis twice a second, and here in between;
without Redis nothing is known and nothing refused. What comes past that (a native producer's, or
what stood behind a full window) is told by an alarm (`alarms.py`). A release with a delay is
refused likewise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from engine.errors import TooManyDelayed
from engine.rules.limits import MAX_DELAYED
from engine.rules.queue import Queue
from schemas.records import Message, QueueRecord
from schemas.vocabulary import FAR_DELAY_MS
from state.errors import StateError
from state.keys import Unit
from state.store import Store

LOOK_S = 0.5
# How many messages of the tag with the most a unit has, of those that are not due at a time.
Look: TypeAlias = Callable[[Unit, Sequence[int], int], Awaitable[int]]


def is_kept_delayed(record: QueueRecord, message: Message) -> bool:
    """Whether a message is delayed and in the window from its send on: not deferred."""
    return message.delay_ms > 0 and (record.fifo or message.delay_ms < FAR_DELAY_MS)


class Seen:
    """The most that a partition had under a tag when it was looked at (loop time), and how many
    came here since.
    """

    def __init__(self) -> None:
        self.at = float("-inf")
        self.most = self.since = 0
        self.looking = asyncio.Lock()


class Delays:
    """What this worker knows of the delayed messages of queues that get some."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sent: dict[str, Seen] = {}
        self._released: dict[str, Seen] = {}

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone."""
        self._sent.pop(queue.incarnation, None)
        self._released.pop(queue.incarnation, None)

    async def check(self, queue: Queue, count: int) -> None:
        """Before `count` delayed messages are sent together. Raises TooManyDelayed: then nothing of
        them is to be stored.
        """
        await self._check(queue, count, self._sent, self._store.delayed)

    async def check_release(self, queue: Queue, count: int) -> None:
        """Before `count` leased messages are given back with a delay: they stay open, and others
        may be leased in their place. What is leased counts too. Raises TooManyDelayed.
        """
        await self._check(queue, count, self._released, self._store.not_due)

    async def _check(self, queue: Queue, count: int, known: dict[str, Seen], look: Look) -> None:
        seen = known.setdefault(queue.incarnation, Seen())
        async with seen.looking:  # one look for all who came meanwhile
            if asyncio.get_running_loop().time() - seen.at > LOOK_S:
                seen.most, seen.since = await self._most(queue, look), 0
                seen.at = asyncio.get_running_loop().time()
        # What came since is spread over all partitions, about.
        most = seen.most + seen.since // len(queue.units)
        if most + count > MAX_DELAYED:
            raise TooManyDelayed(
                f"a partition of queue {queue.name!r} may have {MAX_DELAYED} delayed messages under a tag, the fullest has {most},"
                f" given {count} more; send them when some are due, without a delay, or to a queue with more partitions",
                field="delay_ms",
                limit=MAX_DELAYED,
                given=most + count,
            )
        seen.since += count

    async def _most(self, queue: Queue, look: Look) -> int:
        try:
            at_ms = self._store.now_ms()
            looks = (look(unit, queue.tag_ids, at_ms) for unit in queue.units)
            return max(await self._store.soon(lambda: asyncio.gather(*looks)))
        except StateError:
            return 0
