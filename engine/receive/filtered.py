"""Receives that name a filter: they lease the oldest messages that fit it and leave all others to
the other receives of the tag.

A tag's own filter is in its window; this one is not, so Kafka is read from the oldest open message
on, 200,000 records of each partition at most; what was deferred, and so is older, is read one by
one.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping, Sequence

from engine.receive.browse import CHUNK, LOOKED_AT, Browse, Wanted, page_token
from engine.receive.poll import Leases, Poll, Poller
from engine.receive.serving import Completing, Refresh
from engine.receive.waits.wait_list import WaitList
from engine.rules.queue import Queue
from engine.shapes import Delivery, Peeked
from engine.window.window import Window
from schemas.filters import Filter
from schemas.records import TagRecord
from schemas.records.settings import MAX_IN_FLIGHT
from schemas.vocabulary import MessageState
from state.store import Store

# So many times LOOKED_AT records a look reads of a partition, page by page.
LOOKS = 10
# Messages below the floor that a look reads of a partition.
MOST_PASSED = 1_000
# Others may lease what was found before this receive does: it looks again.
ROUNDS = 3


class FilteredReceives:
    """Looks of this worker. Any number of tasks may look at once."""

    def __init__(
        self,
        store: Store,
        window: Window,
        browse: Browse,
        poller: Poller,
        completing: Completing,
        refresh: Refresh,
    ) -> None:
        self._store = store
        self._window = window
        self._browse = browse
        self._poller = poller
        self._completing = completing
        self._refresh = refresh

    async def receive(
        self, queue: Queue, tag: TagRecord, line: WaitList, max: int, lease_ms: int | None, filter: Filter
    ) -> list[Delivery]:
        """What is due and fits, up to `max`. Raises Unavailable, TooManyInFlight."""
        await self._completing.empty_plane(queue.incarnation, line.tag)  # it is leased to nobody, and may fit

        async def lease() -> Leases:
            leases = await self._lease(queue, tag, line, max, lease_ms, filter)
            if not leases and await self._refresh(queue):
                leases = await self._lease(queue, tag, line, max, lease_ms, filter)
            return leases

        return await self._completing.now(queue, tag, line, lease, lease_ms)

    async def _lease(
        self, queue: Queue, tag: TagRecord, line: WaitList, max: int, lease_ms: int | None, filter: Filter
    ) -> Leases:
        leases: Leases = []
        most = min(max, line.fits(queue.record.max_message_bytes))
        poll = Poll(queue, tag, line, lease_ms)
        for _ in range(ROUNDS):
            if line.full_until > asyncio.get_running_loop().time():
                break  # as much is in flight as may be: nothing is read for that
            found = await self._find(queue, tag, filter, most)
            if not found:
                break
            leases = await self._pick(poll, _by_partition(found))
            if leases or poll.full:
                break
        return leases

    async def _find(self, queue: Queue, tag: TagRecord, filter: Filter, max: int) -> list[Peeked]:
        """The oldest that fit, of all partitions; of a queue with priority those of the first
        priorities, which are its partitions.
        """
        parts = await asyncio.gather(*(self._of_partition(queue, tag, p, filter, max) for p in range(len(queue.units))))
        if queue.record.priority:
            return [one for part in parts for one in part][:max]
        return heapq.nsmallest(
            max, (one for part in parts for one in part), key=lambda one: (one.sent_at_ms, one.partition, one.offset)
        )

    async def _of_partition(
        self, queue: Queue, tag: TagRecord, partition: int, filter: Filter, max: int
    ) -> list[Peeked]:
        unit = queue.units[partition]
        (counts,) = await self._window.call(queue, lambda g: self._store.upkeep.info(unit, g, [tag.id]))
        found: list[Peeked] = []
        if counts.ready and not queue.record.fifo:
            found = await self._below_the_floor(queue, tag, partition, counts.floor, filter, max)
        token: str | None = page_token(partition, counts.floor)
        above, looked, wanted = list[Peeked](), 0, _wanted(filter)
        while counts.ready and looked < LOOKS * LOOKED_AT:
            page = await self._browse.query(queue, tag, wanted, None, None, max - len(above), token, partition)
            above += page.messages
            token = page.next
            looked += page.scanned if page.scanned > CHUNK else CHUNK
            if token is None or len(above) == max:
                break
        return found + above

    async def _below_the_floor(
        self, queue: Queue, tag: TagRecord, partition: int, floor: int, filter: Filter, max: int
    ) -> list[Peeked]:
        """What was deferred, is in the window now and fits."""
        unit = queue.units[partition]
        passed = await self._window.call(
            queue, lambda g: self._store.deferred.passed(unit, g, tag.id, floor, max=MOST_PASSED, only_due=True)
        )
        return await self._browse.among(queue, tag, partition, passed, _wanted(filter), max) if passed else []

    async def _pick(self, poll: Poll, offsets: Mapping[int, Sequence[int]]) -> Leases:
        """Leases those of the messages, by partition, that are due."""
        line = poll.line
        if sum(line.in_flight) + sum(map(len, offsets.values())) > MAX_IN_FLIGHT:
            await self._poller.room(poll)
        picks = (self._poller.pick_one(poll, partition, some) for partition, some in offsets.items())
        for outcome in await asyncio.gather(*picks, return_exceptions=True):
            if isinstance(outcome, BaseException) and not poll.leases:
                raise outcome
        return poll.leases


def _wanted(filter: Filter) -> Wanted:
    """What fits a filter, by all that it has: whoever receives it is given all of it."""
    return Wanted(None, MessageState.READY, filter)


def _by_partition(found: Sequence[Peeked]) -> dict[int, list[int]]:
    offsets: dict[int, list[int]] = {}
    for one in found:
        offsets.setdefault(one.partition, []).append(one.offset)
    return offsets
