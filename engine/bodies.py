"""Messages that this worker has just sent, kept until they are acked, so that their bodies need not go to Redis and back.

Only while no other worker listens for wake-ups: of such a message the window then has what its scripts need (`store.HEADER_BYTES`), and
whoever finds no body, there or here, reads it from Kafka. So what is kept may be forgotten at any time: it is a matter of speed alone.
Neighbours: `entries` keeps, `deliveries` and `mover` look up, `leases` settles, `loaders` counts the workers. Must not know Redis or Kafka.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Iterable, Sequence

from msgspec import Struct

from engine.queue import Queue
from schemas.records import Message
from state.keys import Unit

# Of a message that is kept, besides its record: about.
OVERHEAD_BYTES = 500
# What was not acked for so long gives way to what is sent now.
OLD_S = 30.0


class Together(Struct):
    """Messages that were sent together: when (loop time), their offsets in a unit, and how many of them are still kept."""

    at: float
    unit: Unit
    offsets: list[int]
    left: int = 0


class Kept(Struct):
    """A message: its offset, when it was sent, hex MD5 of its body, bytes that it takes, and how many tags have not acked it."""

    offset: int
    message: Message
    sent_at_ms: int
    digest: str
    size: int
    tags: int
    together: Together


class Bodies:
    """What is kept `of` each unit, by offset, `most_bytes` at most.

    `alone`: whether this worker is the only one, as of the last look; else nothing more is kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self.alone = False
        self.bytes = 0
        self._most_bytes = most_bytes
        self.of: dict[Unit, dict[int, Kept]] = {}
        self._sent: collections.deque[Together] = collections.deque()

    def count(self, workers: int) -> None:
        """So many workers are there, this one included. What is old is forgotten when there are others: they may have acked it."""
        self.alone = workers == 1
        old = asyncio.get_running_loop().time() - OLD_S
        while not self.alone and self._sent and self._sent[0].at < old:
            first = self._sent.popleft()
            self.forget(first.unit, first.offsets)

    def together(self, unit: Unit, size: int, messages: int) -> Together | None:
        """For so many messages of one send or group of sends, `size` bytes together; None = they may not be kept.

        What is old is forgotten for them.
        """
        if not self.alone:
            return None
        now, most = asyncio.get_running_loop().time(), self._most_bytes - size - messages * OVERHEAD_BYTES
        while self._sent and (not self._sent[0].left or (self.bytes > most and self._sent[0].at < now - OLD_S)):
            first = self._sent.popleft()
            self.forget(first.unit, first.offsets)
        return Together(now, unit, []) if self.bytes <= most else None

    def keep(self, messages: Sequence[Kept]) -> None:
        """Keeps messages that some tag wants, all of one `together`."""
        together = messages[0].together
        kept = self.of.setdefault(together.unit, {})
        for one in messages:
            if one.offset in kept:
                self.forget(together.unit, (one.offset,))
            kept[one.offset] = one
            self.bytes += one.size
            together.offsets.append(one.offset)
        together.left = len(together.offsets)
        self._sent.append(together)

    def settle(self, unit: Unit, pairs: Iterable[tuple[int, int]]) -> None:
        """A tag has done with these (offset, nonce)."""
        kept = self.of.get(unit, {})
        for offset, _ in pairs:
            one = kept.get(offset)
            if one is not None:
                one.tags -= 1
                if one.tags <= 0:
                    del kept[offset]
                    self.bytes -= one.size
                    one.together.left -= 1

    def gone(self, queue: Queue) -> None:
        """A queue is no more: nothing of it is kept."""
        for unit in queue.units:
            self.forget(unit, list(self.of.get(unit, ())))
            self.of.pop(unit, None)

    def forget(self, unit: Unit, offsets: Iterable[int]) -> None:
        """Keeps these no longer, if it did."""
        kept = self.of.get(unit, {})
        for offset in offsets:
            one = kept.pop(offset, None)
            if one is not None:
                self.bytes -= one.size
                one.together.left -= 1
