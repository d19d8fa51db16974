"""Makes deliveries of what was leased, for one receive or for all who wait: bodies are read, and
the queue is looked at again. One call serves the first waiters of a list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from engine.catalog.catalog import Catalog
from engine.errors import Unavailable
from engine.receive.deliveries import Deliveries
from engine.receive.poll import Leases, Poll, Poller
from engine.receive.returns import REST_MS, Returns
from engine.receive.waits.wait_list import LOOK_AGAIN_S, WaitList
from engine.receive.waits.waiter import Waiter
from engine.rules.linger import Activity, batch_size_if_shared
from engine.rules.queue import Queue
from engine.shapes import Delivery
from runtime.background import Background
from schemas.records import TagRecord

Refresh: TypeAlias = Callable[[Queue], Coroutine[Any, Any, bool]]
# Gives back what the plane has leased ahead: incarnation, tag. Returns when it is back.
EmptyPlane: TypeAlias = Callable[[str, int], Awaitable[None]]

# How often a receive that does not wait leases anew where all was expired; the scripts that lease
# look as often.
ROUNDS = 10


class Completing:
    """Any number of tasks may ask."""

    def __init__(self, catalog: Catalog, deliveries: Deliveries, returns: Returns, empty_plane: EmptyPlane) -> None:
        self.deliveries: Final = deliveries
        self.returns: Final = returns
        self.empty_plane: Final = empty_plane
        self._catalog = catalog

    async def now(
        self, queue: Queue, tag: TagRecord, line: WaitList, lease: Callable[[], Awaitable[Leases]], lease_ms: int | None
    ) -> list[Delivery]:
        """What `lease` finds due, for who does not wait; it is asked again where all that it had
        leased was expired. Raises Unavailable.
        """
        for _ in range(ROUNDS):
            leases = await lease()
            at_hand = self.deliveries.from_memory(queue, tag, leases)
            if at_hand is not None and line.have_room(at_hand):
                return at_hand
            deliveries, fault = await self.complete(queue, tag, line, leases, lease_ms)
            if fault is not None and not deliveries:
                raise fault
            if deliveries or self._catalog.by_incarnation.get(queue.incarnation) is not queue:
                return deliveries
        return []

    async def complete(
        self, queue: Queue, tag: TagRecord, line: WaitList, leases: Leases, lease_ms: int | None
    ) -> tuple[list[Delivery], Exception | None]:
        """What of `leases` can be delivered, and why not all can: what can't is given back, and its
        partition rests. Nothing can if the queue was purged meanwhile.
        """
        deliveries, faults = await self.deliveries.complete(queue, tag, leases, lease_ms)
        line.have_room(deliveries)
        until = asyncio.get_running_loop().time() + REST_MS / 1000
        line.rests.update(dict.fromkeys(faults, until))
        now = self._catalog.by_incarnation.get(queue.incarnation)
        if deliveries and now is not None and now.record.purged_at_ms != queue.record.purged_at_ms:
            await self.returns.give_back(queue, tag.id, deliveries)
            deliveries = []
        return deliveries, next(iter(faults.values()), None)


# What nobody takes is waited for so long, until it is back in the window.
BACK_S = 1.0


class Serving:
    """Serves all wait lists of this worker. `refresh` loads what Kafka has beyond the window."""

    def __init__(
        self,
        catalog: Catalog,
        poller: Poller,
        completing: Completing,
        activity: Activity,
        background: Background,
        refresh: Refresh,
    ) -> None:
        self._catalog = catalog
        self._poller = poller
        self._completing = completing
        self._activity = activity
        self._background = background
        self._refresh = refresh

    async def serve(self, line: WaitList) -> bool:
        """Makes one call for the first waiters; returns whether it leased something. Raises
        Unavailable, TooManyInFlight.
        """
        found = self._found(line)
        if found is None:
            line.cancel_all()
            return False
        queue, tag = found
        if tag.id in queue.paused:
            line.hold(asyncio.get_running_loop().time() + LOOK_AGAIN_S)
            return False
        return await self._serve_some(*found, line)

    def _found(self, line: WaitList) -> tuple[Queue, TagRecord] | None:
        """The queue and tag of a line as they are now; None = there is none of them any more."""
        queue = self._catalog.by_incarnation.get(line.incarnation)
        tag = next((t for t in queue.tags if t.id == line.tag), None) if queue else None
        return (queue, tag) if queue and tag else None

    async def _serve_some(self, queue: Queue, tag: TagRecord, line: WaitList) -> bool:
        """One call for the first waiters (FIFO: for the first, two receivers must not share a
        group); whether it leased something.
        """
        waiters = line.pop_batch(alone=queue.record.fifo)
        if not waiters:
            return False
        for waiter in waiters:
            waiter.busy = True
        lease_ms, wanted = waiters[0].lease_ms, sum(waiter.max for waiter in waiters)
        try:
            stale = line.stale(asyncio.get_running_loop().time())
            poll = Poll(queue, tag, line, lease_ms)
            leases = await self._poller.poll(poll, min(wanted, line.most), everywhere=stale, callers=len(waiters))
        except BaseException as error:
            if isinstance(error, Unavailable):
                _refuse_new(waiters, error)
            line.requeue(waiters)
            _rest(waiters)
            raise
        leased = sum(len(received.leased) for _, received in leases)
        line.last = batch_size_if_shared(min(leased, wanted), len(waiters))
        served = _first(waiters, leased)
        line.requeue(waiters[len(served) :])
        _rest(waiters[len(served) :])
        if served:
            self._activity.note_receive(queue.incarnation, asyncio.get_running_loop().time())
            deliveries = self._completing.deliveries.from_memory(queue, tag, leases)
            if deliveries is None or not line.have_room(deliveries):
                # Bodies have to come from Kafka: the next waiters need not wait for that.
                self._start(self._serve(queue, tag, line, leases, served))
            elif left_over := line.deliver(served, deliveries, fifo=queue.record.fifo):
                # Whoever is served before they are back gets what was sent later.
                await asyncio.wait(
                    [self._start(self._completing.returns.give_back(queue, tag.id, left_over))], timeout=BACK_S
                )
        elif stale:
            self._start(self._refresh(queue))  # what Kafka has beyond the window is loaded, and a load wakes the line
        return bool(served)

    async def _serve(self, queue: Queue, tag: TagRecord, line: WaitList, leases: Leases, waiters: list[Waiter]) -> None:
        """Gives what was leased for `waiters` to them when its bodies have come from Kafka."""
        try:
            deliveries, fault = await self._completing.complete(queue, tag, line, leases, waiters[0].lease_ms)
        except BaseException:
            _rest(waiters)
            raise
        if fault is not None and not deliveries:
            _refuse_new(waiters, fault)
        if left_over := line.deliver(waiters, deliveries, fifo=queue.record.fifo):
            await self._completing.returns.give_back(queue, tag.id, left_over)
        if line.waiters and line.next_look() <= asyncio.get_running_loop().time():
            line.pump_soon()

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._background.start(work, getattr(work, "__qualname__", "receive"))


def _first(waiters: Sequence[Waiter], leased: int) -> list[Waiter]:
    """Those of the waiters who get some of what was leased; who does not is not new any more."""
    served = []
    for waiter in waiters:
        waiter.new = waiter.new and leased > 0
        if leased > 0:
            served.append(waiter)
            leased -= waiter.max
    return served


def _rest(waiters: Sequence[Waiter]) -> None:
    for waiter in waiters:
        waiter.rest()


def _refuse_new(waiters: Sequence[Waiter], error: Exception) -> None:
    """Who has only come is told at once that nobody can serve; who was waiting goes on."""
    for waiter in waiters:
        if waiter.new and not waiter.served.done():
            waiter.served.set_exception(error)
