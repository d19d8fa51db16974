"""receive: a short poll asks every partition before it says "nothing"; a long poll waits in the
list of its tag until there is something: a wake-up (a load here or elsewhere), the next visible
time, or its deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, NotAllowedOnQueue, NotAuthorised, Unavailable
from engine.receive.filtered import FilteredReceives
from engine.receive.poll import Leases, Poll, Poller, too_many
from engine.receive.returns import Returns
from engine.receive.serving import Completing, Refresh
from engine.receive.waits.wait_list import Serve, WaitList
from engine.receive.waits.wait_lists import WaitLists
from engine.receive.waits.waiter import Waiter, late_receive
from engine.rules.limits import check_asked, check_filter
from engine.rules.queue import Ids, Queue
from engine.rules.rights import NOBODY, Asker
from engine.shapes import Delivery
from runtime import deadline
from runtime.background import Background
from schemas.filters import Filter
from schemas.identity import Handle
from schemas.records import TagRecord
from state.redis.wake import Wake

# How often a receive with a filter looks again at what Kafka has.
LOOK_AGAIN_S = 0.25
# After so long a wait rights are asked in any case: keys may have an end.
LONG_S = 1.0


class ShortPolls:
    """Receives that do not wait."""

    def __init__(self, poller: Poller, completing: Completing, refresh: Refresh) -> None:
        self._poller = poller
        self._completing = completing
        self._refresh = refresh

    async def now(
        self, queue: Queue, tag: TagRecord, line: WaitList, count: int, lease_ms: int | None
    ) -> list[Delivery]:
        """What is due: in the window, else in Kafka beyond it."""
        await self._completing.empty_plane(queue.incarnation, line.tag)  # it is leased to nobody

        async def lease() -> Leases:
            leases = await self._poller.poll(Poll(queue, tag, line, lease_ms), count, everywhere=True)
            if not leases and (await self._completing.returns.tried(queue, tag.id) or await self._refresh(queue)):
                leases = await self._poller.poll(Poll(queue, tag, line, lease_ms), count, everywhere=True)
            return leases

        try:
            return await self._completing.now(queue, tag, line, lease, lease_ms)
        except Unavailable:
            line.forget_all()
            raise


class LongPolls:
    """Receives that wait in the list of their tag."""

    def __init__(
        self, wait_lists: WaitLists, serve: Serve, wake: Wake, returns: Returns, background: Background
    ) -> None:
        self._wait_lists = wait_lists
        self._serve = serve
        self._wake = wake
        self._returns = returns
        self._background = background

    async def start(self) -> None:
        await self._wake.start()

    async def stop(self) -> None:
        self._wait_lists.stop()
        await self._wake.stop()

    def forget_queue(self, queue: Queue) -> None:
        """A queue is gone: who waits for it is told that there is nothing."""
        self._wait_lists.drop_queue(queue.incarnation)
        self._wake.forget(queue.incarnation)

    def list_of(self, queue: Queue, tag: TagRecord) -> WaitList:
        """Returns the wait list of a tag."""
        return self._wait_lists.for_tag(queue, tag, self._serve)

    @contextlib.contextmanager
    def counted(self, queue: Queue, tag: TagRecord, asker: Asker) -> Iterator[None]:
        """Counts a receive that waits in no list. Raises Overloaded, QuotaExceeded."""
        at = queue.incarnation, tag.id
        self._wait_lists.enter(asker, at, in_list=False)
        try:
            yield
        finally:
            self._wait_lists.leave(asker, at, in_list=False)

    async def wait(
        self,
        queue: Queue,
        tag: TagRecord,
        line: WaitList,
        count: int,
        lease_ms: int | None,
        wait_s: float,
        asker: Asker,
    ) -> list[Delivery]:
        """Leases up to `count` messages, or none after `wait_s`."""
        at = queue.incarnation, tag.id
        self._wait_lists.enter(asker, at)
        loop = asyncio.get_running_loop()
        began, rights = loop.time(), self._wait_lists.rights_changes
        served: asyncio.Future[list[Delivery]] = loop.create_future()
        waiter = Waiter(count, lease_ms, served, asker)
        timer = loop.call_later(wait_s, waiter.give_up)
        try:
            self._wake.want(queue.incarnation)
            line.wait(waiter)
            deliveries = await served
            if rights != self._wait_lists.rights_changes or loop.time() - began > LONG_S:
                self.check(queue, tag, asker, deliveries)
            if not deliveries and line.over:
                raise too_many(queue, line.over, waited=True)
            return deliveries
        except asyncio.CancelledError:
            if served.done() and not served.cancelled() and served.exception() is None:
                self._start(self._returns.give_back(queue, tag.id, served.result()))
            raise
        finally:
            timer.cancel()
            self._wait_lists.leave(asker, at)
            served.cancel()
            line.leave(waiter)

    def check(self, queue: Queue, tag: TagRecord, asker: Asker, deliveries: list[Delivery]) -> None:
        """Who lost the right to receive while they waited gets nothing: it is given back,
        uncounted. Raises NotAuthorised.
        """
        try:
            asker.check()
        except NotAuthorised:
            if deliveries:
                self._start(self._returns.give_back(queue, tag.id, deliveries))
            raise

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._background.start(work, getattr(work, "__qualname__", "receive"))


class Receiver:
    """Receives of this worker. Any number of tasks may receive at once."""

    def __init__(
        self,
        catalog: Catalog,
        ids: Ids,
        short_polls: ShortPolls,
        long_polls: LongPolls,
        filtered: FilteredReceives,
        returns: Returns,
        background: Background,
    ) -> None:
        self._catalog = catalog
        self._ids = ids
        self._short_polls = short_polls
        self._long_polls = long_polls
        self._filtered = filtered
        self._returns = returns
        self._background = background

    async def start(self) -> None:
        await self._long_polls.start()

    async def stop(self) -> None:
        self._returns.stop()
        await self._long_polls.stop()
        await self._background.finished()

    async def receive(
        self,
        queue: Queue,
        tag: TagRecord,
        max: int | None,
        wait_ms: int | None,
        lease_ms: int | None,
        filter: Filter | None = None,
        asker: Asker = NOBODY,
    ) -> list[Delivery]:
        """Leases 1 to `max` due messages that fit `filter`, or none after `wait_ms`. None = the
        queue's setting; no filter.

        `asker`: who waits and may not receive any more is told so (NotAuthorised).
        Under a tag that is paused there is nothing, as in an empty queue.
        A cancelled call has leased nothing: what it had is given back, uncounted. Raises
        InvalidValue, Unavailable, TooManyInFlight, Overloaded (too many wait), NotAllowedOnQueue (a
        filter on a FIFO queue).
        """
        check_asked("max", max)
        check_asked("wait_ms", wait_ms)
        check_asked("lease_ms", lease_ms)
        record = queue.record
        count = min(max or record.max_receive_messages, record.max_receive_messages)
        wait_s = (record.receive_wait_ms if wait_ms is None else wait_ms) / 1000
        line = self._long_polls.list_of(queue, tag)
        if filter is not None:
            deliveries = await self._receive_filtered(queue, tag, line, count, lease_ms, filter, wait_s, asker)
        elif wait_s > 0:
            deliveries = await self._long_polls.wait(queue, tag, line, count, lease_ms, wait_s, asker)
        elif tag.id in queue.paused:
            return []
        else:
            deliveries = await self._kept(queue, tag, self._short_polls.now(queue, tag, line, count, lease_ms))
        if (
            deliveries
            and self._catalog.by_incarnation.get(queue.incarnation) is not queue
            and self._is_paused(queue, tag)
        ):
            self._start(self._returns.give_back(queue, tag.id, deliveries))
            return []
        return deliveries

    async def _receive_filtered(
        self,
        queue: Queue,
        tag: TagRecord,
        line: WaitList,
        count: int,
        lease_ms: int | None,
        filter: Filter,
        wait_s: float,
        asker: Asker,
    ) -> list[Delivery]:
        """Looks now and then until something fits or the time is over."""
        if queue.record.fifo:
            raise NotAllowedOnQueue("a receive of a FIFO queue has no filter: groups are in order", field="filter")
        check_filter(filter)
        loop = asyncio.get_running_loop()
        end = loop.time() + wait_s
        with self._long_polls.counted(queue, tag, asker) if wait_s > 0 else contextlib.nullcontext():
            while True:
                deliveries: list[Delivery] = []
                if not self._is_paused(queue, tag):
                    deliveries = await self._kept(
                        queue, tag, self._filtered.receive(queue, tag, line, count, lease_ms, filter)
                    )
                left = end - loop.time()
                self._long_polls.check(queue, tag, asker, deliveries)
                if deliveries or left <= 0 or self._returns.stopping:
                    return deliveries
                await asyncio.sleep(min(LOOK_AGAIN_S, left))

    def _is_paused(self, queue: Queue, tag: TagRecord) -> bool:
        """Whether nobody receives under a tag now."""
        now = self._catalog.by_incarnation.get(queue.incarnation)
        return now is not None and tag.id in now.paused

    def undelivered(self, deliveries: Sequence[Delivery]) -> None:
        """No answer carried these, of one receive: they are given back, uncounted."""
        handle = Handle.parse(deliveries[0].handle, self._ids.secret)
        queue = self._catalog.by_incarnation.get(handle.incarnation)
        if queue is not None:
            self._start(self._returns.give_back(queue, handle.tag, deliveries))

    async def _kept(self, queue: Queue, tag: TagRecord, work: Coroutine[Any, Any, list[Delivery]]) -> list[Delivery]:
        """Finishes `work` also when the caller is cancelled meanwhile, or has waited MESSAGES_S:
        then it gives back what it has leased.
        """
        task = self._background.start(work, "receive", awaited=True)
        answer = asyncio.shield(task)
        timer = asyncio.get_running_loop().call_later(deadline.MESSAGES_S, _refuse, answer)
        try:
            return await answer
        except (asyncio.CancelledError, Unavailable):
            self._start(self._return(queue, tag, task))
            raise
        finally:
            timer.cancel()

    async def _return(self, queue: Queue, tag: TagRecord, task: asyncio.Task[list[Delivery]]) -> None:
        with contextlib.suppress(EngineError):
            await self._returns.give_back(queue, tag.id, await task)

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._background.start(work, getattr(work, "__qualname__", "receive"))


def _refuse(answer: asyncio.Future[list[Delivery]]) -> None:
    if not answer.done():
        answer.set_exception(late_receive())
