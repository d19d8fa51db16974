"""Serves those who wait: one pump for each wait list.

It serves the waiters in turn, with one call to the window for as many as it can: what comes while a
call is under way is asked for together, and while there are many it lingers for more (`linger.py`).
What a list knows of its partitions is kept true by wake-ups; every few seconds all are asked anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from engine.catalog.catalog import Catalog
from engine.errors import TooManyInFlight, Unavailable
from engine.receive.deliveries import Deliveries
from engine.receive.poll import Leases, Poll, Poller
from engine.receive.returns import REST_MS, Returns
from engine.receive.waiters import Waiter, WaitList, WaitLists
from engine.rules.contention import Activity
from engine.rules.linger import LINGER_S, batch_size_if_shared, should_linger
from engine.rules.queue import Queue
from engine.shapes import Delivery
from schemas.records import TagRecord
from state.background import Background

Refresh = Callable[[Queue], Coroutine[Any, Any, bool]]

# How often a receive that does not wait leases anew where all was expired; the scripts that lease
# look as often.
ROUNDS = 10
# What nobody takes is waited for so long, until it is back in the window.
BACK_S = 1.0


class Pump:
    """Pumps of all wait lists of this worker. `refresh` loads what Kafka has beyond the window."""

    def __init__(
        self,
        catalog: Catalog,
        wait_lists: WaitLists,
        poller: Poller,
        deliveries: Deliveries,
        returns: Returns,
        activity: Activity,
        background: Background,
        refresh: Refresh,
        empty_plane: Callable[[str, int], Awaitable[None]],
    ) -> None:
        """`empty_plane(incarnation, tag)` gives back what the plane has leased ahead, and returns
        when it is back.
        """
        self.empty_plane = empty_plane
        self._catalog = catalog
        self._wait_lists = wait_lists
        self._poller = poller
        self._deliveries = deliveries
        self._returns = returns
        self._activity = activity
        self._background = background
        self._refresh = refresh
        self._stopping = False

    def stop(self) -> None:
        """Who waits is told that there is nothing; nobody is served any more."""
        self._stopping = True
        for line in self._wait_lists:
            line.stop_timer()
            line.cancel_all()

    def woken(self, incarnation: str, partition: int, head_ms: int = 0) -> None:
        """Something may be receivable in a partition (-1: in any) of a queue, visible since
        `head_ms` (0 = not known).
        """
        for line in self._wait_lists.of_queue(incarnation):
            now = asyncio.get_running_loop().time()
            for p in range(len(line.due)) if partition < 0 else (partition,):
                if p < len(line.due):
                    line.wake(p, head_ms, now)
            if line.waiters or line.pumping:
                self.pump_soon(incarnation, line)

    def pump_soon(self, incarnation: str, line: WaitList) -> None:
        if line.pumping:
            line.again = True
            return
        line.pumping = True
        self._start(self._pump(incarnation, line))

    async def _pump(self, incarnation: str, line: WaitList) -> None:
        """Serves waiters in turn until nothing more is due; then sets the timer for what comes
        next.
        """
        loop = asyncio.get_running_loop()
        try:
            while line.waiters and not self._stopping:
                if should_linger(line.last, line.wanted()):
                    await asyncio.sleep(LINGER_S)
                line.again = False
                found = self._found(incarnation, line)
                if found is None:
                    line.cancel_all()
                    return
                if not await self._serve_some(*found, line) and not line.again:
                    break
        except Exception as error:
            line.pause(loop.time() + 0.2)
            if not isinstance(error, Unavailable | TooManyInFlight):
                raise
        finally:
            line.pumping = False
            if self._stopping:
                line.cancel_all()
            self.set_timer(incarnation, line)

    def _found(self, incarnation: str, line: WaitList) -> tuple[Queue, TagRecord] | None:
        """The queue and tag of a line as they are now; None = there is none of them any more."""
        queue = self._catalog.by_incarnation.get(incarnation)
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
            deliveries = self._deliveries.from_memory(queue, tag, leases)
            if deliveries is None or not line.have_room(deliveries):
                # Bodies have to come from Kafka: the next waiters need not wait for that.
                self._start(self._serve(queue, tag, line, leases, served))
            elif left_over := line.deliver(served, deliveries, fifo=queue.record.fifo):
                # Whoever is served before they are back gets what was sent later.
                await asyncio.wait([self._start(self._returns.give_back(queue, tag.id, left_over))], timeout=BACK_S)
        elif stale:
            self._start(self._refresh(queue))  # what Kafka has beyond the window is loaded, and a load wakes the line
        return bool(served)

    async def _serve(self, queue: Queue, tag: TagRecord, line: WaitList, leases: Leases, waiters: list[Waiter]) -> None:
        """Gives what was leased for `waiters` to them when its bodies have come from Kafka."""
        try:
            deliveries, fault = await self.complete(queue, tag, line, leases, waiters[0].lease_ms)
        except BaseException:
            _rest(waiters)
            raise
        if fault is not None and not deliveries:
            _refuse_new(waiters, fault)
        if left_over := line.deliver(waiters, deliveries, fifo=queue.record.fifo):
            await self._returns.give_back(queue, tag.id, left_over)
        if line.waiters and line.next_look() <= asyncio.get_running_loop().time():
            self.pump_soon(queue.incarnation, line)

    async def now(
        self, queue: Queue, tag: TagRecord, line: WaitList, lease: Callable[[], Awaitable[Leases]], lease_ms: int | None
    ) -> list[Delivery]:
        """What `lease` finds due, for who does not wait; it is asked again where all that it had
        leased was expired. Raises Unavailable.
        """
        for _ in range(ROUNDS):
            leases = await lease()
            at_hand = self._deliveries.from_memory(queue, tag, leases)
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
        deliveries, faults = await self._deliveries.complete(queue, tag, leases, lease_ms)
        line.have_room(deliveries)
        until = asyncio.get_running_loop().time() + REST_MS / 1000
        line.rests.update(dict.fromkeys(faults, until))
        now = self._catalog.by_incarnation.get(queue.incarnation)
        if deliveries and now is not None and now.record.purged_at_ms != queue.record.purged_at_ms:
            await self._returns.give_back(queue, tag.id, deliveries)
            deliveries = []
        return deliveries, next(iter(faults.values()), None)

    def set_timer(self, incarnation: str, line: WaitList) -> None:
        line.stop_timer()
        if line.waiters:
            loop = asyncio.get_running_loop()
            line.timer = loop.call_at(max(line.next_look(), loop.time() + 0.001), self.pump_soon, incarnation, line)

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
