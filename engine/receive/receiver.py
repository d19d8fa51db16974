"""receive: which partitions to ask, how to wait, whom to wake.

A short poll asks every partition before it says "nothing". A long poll stands in the line of its
tag until there is something: a wake-up (a load here or elsewhere), the next visible time, or its
deadline. One pump per line serves the waiters in turn, with one call to the window for as many as
it can: what comes while a call is under way is asked for together, and while there are many it
lingers for more (`linger.py`). What the line knows of its partitions is kept true by wake-ups;
every few seconds all are asked anew. Neighbours: `waiters.py` keeps waiters; `loader.py` brings
what is in Kafka only; `mover.py` takes what is dying. Must not know HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from engine.core import Core
from engine.errors import EngineError, TooManyInFlight, Unavailable
from engine.receive.deliveries import Deliveries
from engine.receive.poll import Lent, Sweeper, too_many
from engine.receive.returns import REST_MS, Returns
from engine.receive.waiters import Line, Waiter
from engine.rules.limits import check_asked
from engine.rules.linger import LINGER_S, company, lingers
from engine.rules.queue import Queue
from engine.shapes import Delivery
from schemas.identity import Handle
from schemas.records import TagRecord
from state.background import Background
from state.replies import Dying
from state.wake import Wake

Move = Callable[[Queue, TagRecord, int, Sequence[Dying]], Coroutine[Any, Any, None]]
Refresh = Callable[[Queue], Coroutine[Any, Any, bool]]


class Receiver:
    """Receives of this worker. Any number of tasks may receive at once."""

    def __init__(self, core: Core, move: Move, refresh: Refresh) -> None:
        self._core = core
        self._sweeper = Sweeper(core, lambda *dying: self._start(move(*dying)))
        self._refresh = refresh
        self._returns = Returns(core)
        self._deliveries = Deliveries(core, self._returns, self._start)
        self._lines: dict[str, dict[int, Line]] = {}
        self._background = Background()
        self._wake = Wake(core.settings.redis_url, core.settings.topic_prefix, core.store.name, self.woken)
        self._stopping = False
        self.waiting = 0
        core.control.gone.append(self._gone)

    async def start(self) -> None:
        await self._wake.start()

    async def stop(self) -> None:
        self._stopping = self._returns.stopping = True
        for lines in self._lines.values():
            for line in lines.values():
                line.stop_timer()
                line.drop()
        await self._wake.stop()
        await self._background.finished()

    def waits(self, queue: Queue) -> bool:
        """Whether somebody waits for messages of this queue here."""
        return any(line.waiters for line in self._lines.get(queue.incarnation, {}).values())

    def woken(self, incarnation: str, partition: int, head_ms: int = 0) -> None:
        """Something may be receivable in a partition (-1: in any) of a queue, visible since
        `head_ms` (0 = not known).
        """
        for line in self._lines.get(incarnation, {}).values():
            now = asyncio.get_running_loop().time()
            for p in range(len(line.due)) if partition < 0 else (partition,):
                if p < len(line.due):
                    line.wake(p, head_ms, now)
            if line.waiters or line.pumping:
                self._pump_soon(incarnation, line)

    async def receive(self, queue: Queue, tag: TagRecord, max: int | None, wait_ms: int | None, lease_ms: int | None) -> list[Delivery]:
        """Lends 1 to `max` due messages, or none after `wait_ms`. None = the queue's setting.

        A cancelled call has lent nothing: what it had is given back, uncounted. Raises
        InvalidValue, Unavailable, TooManyInFlight.
        """
        check_asked("max", max)
        check_asked("wait_ms", wait_ms)
        check_asked("lease_ms", lease_ms)
        record = queue.record
        count = min(max or record.max_receive_messages, record.max_receive_messages)
        wait_s = (record.receive_wait_ms if wait_ms is None else wait_ms) / 1000
        line = self._line(queue, tag)
        if wait_s <= 0:
            return await self._kept(queue, tag, self._now(queue, tag, line, count, lease_ms))
        return await self._wait(queue, tag, line, Waiter(count, lease_ms, asyncio.get_running_loop().create_future()), wait_s)

    async def _now(self, queue: Queue, tag: TagRecord, line: Line, count: int, lease_ms: int | None) -> list[Delivery]:
        """What is due: in the window, else in Kafka beyond it."""
        try:
            lent = await self._sweeper.sweep(queue, tag, line, count, lease_ms, everywhere=True)
            if not lent and await self._refresh(queue):
                lent = await self._sweeper.sweep(queue, tag, line, count, lease_ms, everywhere=True)
            at_hand = self._deliveries.at_hand(queue, tag, lent)
            if at_hand is not None:
                return at_hand
            deliveries, fault = await self._delivered(queue, tag, line, lent, lease_ms)
            if fault is not None and not deliveries:
                raise fault
            return deliveries
        except Unavailable:
            line.due = [0.0] * len(line.due)  # nothing was learnt
            raise

    async def _delivered(
        self, queue: Queue, tag: TagRecord, line: Line, lent: Lent, lease_ms: int | None
    ) -> tuple[list[Delivery], Exception | None]:
        """What of `lent` can be delivered, and why not all can: what can't is given back, and its
        partition rests.
        """
        deliveries, faults = await self._deliveries.of(queue, tag, lent, lease_ms)
        until = asyncio.get_running_loop().time() + REST_MS / 1000
        line.rests.update(dict.fromkeys(faults, until))
        return deliveries, next(iter(faults.values()), None)

    def undelivered(self, lent: Sequence[Delivery]) -> None:
        """No answer carried these, of one receive: they are given back, uncounted."""
        handle = Handle.parse(lent[0].handle, self._core.secret)
        queue = self._core.control.by_incarnation.get(handle.incarnation)
        if queue is not None:
            self._start(self._returns.give_back(queue, handle.tag, lent))

    async def _kept(self, queue: Queue, tag: TagRecord, work: Coroutine[Any, Any, list[Delivery]]) -> list[Delivery]:
        """Finishes `work` also when the caller is cancelled meanwhile, and then gives back what it
        has lent.
        """
        task = self._background.start(work, "receive", awaited=True)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._start(self._return(queue, tag, task))
            raise

    async def _return(self, queue: Queue, tag: TagRecord, task: asyncio.Task[list[Delivery]]) -> None:
        with contextlib.suppress(EngineError):
            await self._returns.give_back(queue, tag.id, await task)

    def _line(self, queue: Queue, tag: TagRecord) -> Line:
        lines = self._lines.setdefault(queue.incarnation, {})
        line = lines.get(tag.id)
        if line is None:
            line = lines[tag.id] = Line(tag.id, queue.record.partitions)
        return line

    async def _wait(self, queue: Queue, tag: TagRecord, line: Line, waiter: Waiter, wait_s: float) -> list[Delivery]:
        loop = asyncio.get_running_loop()
        line.waiters.append(waiter)
        self.waiting += 1
        timer = loop.call_later(wait_s, waiter.give_up)
        try:
            await self._wake.want(queue.incarnation)
            if line.rests or line.next_look() <= loop.time():
                self._pump_soon(queue.incarnation, line)
            elif line.timer is None and not line.pumping:
                self._set_timer(queue.incarnation, line)
            deliveries = await waiter.served
            if not deliveries and line.over:
                raise too_many(queue, line.over, waited=True)
            return deliveries
        except asyncio.CancelledError:
            if waiter.served.done() and not waiter.served.cancelled() and waiter.served.exception() is None:
                self._start(self._returns.give_back(queue, tag.id, waiter.served.result()))
            raise
        finally:
            timer.cancel()
            self.waiting -= 1
            waiter.served.cancel()
            if waiter in line.waiters:
                line.waiters.remove(waiter)

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._background.start(work, getattr(work, "__qualname__", "receive"))

    def _pump_soon(self, incarnation: str, line: Line) -> None:
        if line.pumping:
            line.again = True
            return
        line.pumping = True
        self._start(self._pump(incarnation, line))

    async def _pump(self, incarnation: str, line: Line) -> None:
        """Serves waiters in turn until nothing more is due; then sets the timer for what comes
        next.
        """
        loop = asyncio.get_running_loop()
        try:
            while line.waiters and not self._stopping:
                if lingers(line.last, line.wanted()):
                    await asyncio.sleep(LINGER_S)
                line.again = False
                queue = self._core.control.by_incarnation.get(incarnation)
                tag = next((t for t in queue.tags if t.id == line.tag), None) if queue else None
                if queue is None or tag is None:
                    line.drop()
                    return
                if not await self._serve_some(queue, tag, line) and not line.again:
                    break
        except Exception as error:
            line.pause(loop.time() + 0.2)
            if not isinstance(error, Unavailable | TooManyInFlight):
                raise
        finally:
            line.pumping = False
            if self._stopping:
                line.drop()
            self._set_timer(incarnation, line)

    async def _serve_some(self, queue: Queue, tag: TagRecord, line: Line) -> bool:
        """One call for the first waiters (FIFO: for the first, two receivers must not share a
        group); whether it lent something.
        """
        waiters = line.take(alone=queue.record.fifo)
        if not waiters:
            return False
        for waiter in waiters:
            waiter.busy = True
        stale = line.stale(asyncio.get_running_loop().time())
        try:
            wanted = min(sum(waiter.max for waiter in waiters), line.most)
            lent = await self._sweeper.sweep(queue, tag, line, wanted, waiters[0].lease_ms, everywhere=stale, callers=len(waiters))
        except BaseException as error:
            if isinstance(error, Unavailable):
                _refuse_new(waiters, error)
            line.put_back(waiters)
            _rest(waiters)
            raise
        left = sum(len(received.leased) for _, received in lent)
        line.last = company(left, len(waiters))
        served = []
        for waiter in waiters:
            waiter.new = waiter.new and left > 0
            if left > 0:
                served.append(waiter)
                left -= waiter.max
        line.put_back(waiters[len(served) :])
        _rest(waiters[len(served) :])
        if served:
            self._core.lent_at[queue.incarnation] = asyncio.get_running_loop().time()
            deliveries = self._deliveries.at_hand(queue, tag, lent)
            if deliveries is None:
                # Bodies have to come from Kafka: the next waiters need not wait for that.
                self._start(self._serve(queue, tag, line, lent, served))
            elif left_over := line.hand_out(served, deliveries, fifo=queue.record.fifo):
                self._start(self._returns.give_back(queue, tag.id, left_over))
        elif stale:
            self._start(self._refresh(queue))  # what Kafka has beyond the window is loaded, and a load wakes the line
        return bool(served)

    async def _serve(self, queue: Queue, tag: TagRecord, line: Line, lent: Lent, waiters: list[Waiter]) -> None:
        """Gives what was lent for `waiters` to them when its bodies have come from Kafka."""
        try:
            deliveries, fault = await self._delivered(queue, tag, line, lent, waiters[0].lease_ms)
        except BaseException:
            _rest(waiters)
            raise
        if fault is not None and not deliveries:
            _refuse_new(waiters, fault)
        if left_over := line.hand_out(waiters, deliveries, fifo=queue.record.fifo):
            await self._returns.give_back(queue, tag.id, left_over)
        if line.waiters and line.next_look() <= asyncio.get_running_loop().time():
            self._pump_soon(queue.incarnation, line)

    def _set_timer(self, incarnation: str, line: Line) -> None:
        line.stop_timer()
        if line.waiters:
            loop = asyncio.get_running_loop()
            line.timer = loop.call_at(max(line.next_look(), loop.time() + 0.001), self._pump_soon, incarnation, line)

    def _gone(self, queue: Queue) -> None:
        self._core.lent_at.pop(queue.incarnation, None)
        for line in self._lines.pop(queue.incarnation, {}).values():
            line.stop_timer()
            line.drop()
        with contextlib.suppress(RuntimeError):
            self._start(self._wake.forget(queue.incarnation))


def _rest(waiters: Sequence[Waiter]) -> None:
    for waiter in waiters:
        waiter.rest()


def _refuse_new(waiters: Sequence[Waiter], error: Exception) -> None:
    """Who has only come is told at once that nobody can serve; who was waiting goes on."""
    for waiter in waiters:
        if waiter.new and not waiter.served.done():
            waiter.served.set_exception(error)
