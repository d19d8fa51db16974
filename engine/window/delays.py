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
from engine.window.topic_retention import LEAST_DELAY_MS, TopicRetention
from schemas.records import Message, QueueRecord
from schemas.vocabulary import FAR_DELAY_MS
from state.errors import StateError
from state.keys import Unit
from state.upkeep import UpkeepScripts

LOOK_S = 0.5
# What is sent without asking: so many at once at most.
SPARE = 1_000
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

    def __init__(self, upkeep: UpkeepScripts, topic_retention: TopicRetention) -> None:
        self._upkeep = upkeep
        self._topic_retention = topic_retention
        self._sent: dict[str, Seen] = {}
        self._released: dict[str, Seen] = {}

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone."""
        self._sent.pop(queue.incarnation, None)
        self._released.pop(queue.incarnation, None)

    async def make_room(self, queue: Queue, messages: Sequence[Message], longest_ms: int) -> None:
        """Returns when messages may be sent, the one with the longest delay too. Raises
        TooManyDelayed: then nothing of them is to be stored.
        """
        if longest_ms > LEAST_DELAY_MS:
            await self._topic_retention.keep(queue, longest_ms)
        if kept := sum(is_kept_delayed(queue.record, message) for message in messages):
            await self.check(queue, kept)

    async def make_room_for(self, queue: Queue, delay_ms: int) -> None:
        """Returns when a message that was sent may be delayed for so long in all. Raises
        TooManyDelayed.
        """
        await self.check(queue, 1)
        await self._topic_retention.keep(queue, delay_ms)

    async def check(self, queue: Queue, count: int) -> None:
        """Before `count` delayed messages are sent together. Raises TooManyDelayed: then nothing of
        them is to be stored.
        """
        await self._check(queue, count, self._sent, self._upkeep.delayed)

    async def check_release(self, queue: Queue, count: int) -> None:
        """Before `count` leased messages are given back with a delay: they stay open, and others
        may be leased in their place. What is leased counts too. Raises TooManyDelayed.
        """
        await self._check(queue, count, self._released, self._upkeep.not_due)

    async def spare(self, queue: Queue) -> int:
        """Counts some delayed messages as sent, for who sends them without asking: few enough that
        what nobody sends keeps no others out. Returns how many.
        """
        seen, most = await self._look(queue, self._sent, self._upkeep.delayed)
        count = max(0, min(SPARE, (MAX_DELAYED - most) // 8))
        seen.since += count
        return count

    async def _look(self, queue: Queue, known: dict[str, Seen], look: Look) -> tuple[Seen, int]:
        """Returns what is known of a queue, and how many its fullest partition has, about."""
        seen = known.setdefault(queue.incarnation, Seen())
        async with seen.looking:  # one look for all who came meanwhile
            if asyncio.get_running_loop().time() - seen.at > LOOK_S:
                seen.most, seen.since = await self._most(queue, look), 0
                seen.at = asyncio.get_running_loop().time()
        # What came since is spread over all partitions, about.
        return seen, seen.most + seen.since // len(queue.units)

    async def _check(self, queue: Queue, count: int, known: dict[str, Seen], look: Look) -> None:
        seen, most = await self._look(queue, known, look)
        if most + count > MAX_DELAYED:
            raise TooManyDelayed(
                f"a partition of queue {queue.name!r} may have {MAX_DELAYED} delayed messages under a tag, the fullest "
                f"has {most}, given {count} more; send them when some are due, without a delay, or to a queue with "
                "more partitions",
                field="delay_ms",
                limit=MAX_DELAYED,
                given=most + count,
            )
        seen.since += count

    async def _most(self, queue: Queue, look: Look) -> int:
        try:
            at_ms = self._upkeep.units.now_ms()
            looks = (look(unit, queue.tag_ids, at_ms) for unit in queue.units)
            return max(await self._upkeep.units.scripts.soon(lambda: asyncio.gather(*looks)))
        except StateError:
            return 0
