"""receive: which partitions to ask, how to wait, whom to wake.

A `_Line` is the queue of waiters for one tag, with what is known of each partition: when something there may be due. A short
poll asks every partition before it says "nothing". A long poll that found nothing waits in line until a wake-up (a load
here or elsewhere), the next visible time, or its deadline; one pump per line serves the waiters in turn, so a wake-up
wakes one of them.
Neighbours: `loader.py` brings what is in Kafka only; `mover.py` takes what is dying. Must not know HTTP.
Longer than 250 lines: sweeps, waiters and the pump change one state, the `_Line`.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from engine.core import MOVE_MS, Core
from engine.deliveries import Deliveries
from engine.errors import EngineError, Unavailable
from engine.limits import MAX_LEASE_MS, MAX_WAIT_MS, check_range
from engine.queue import Queue
from engine.verbs import Delivery
from schemas.records import TagRecord
from state.replies import Dying, Received
from state.wake import Wake

FOREVER = float("inf")
# Wake-ups may be lost (they are not stored): a line with waiters looks at everything again this often.
LOOK_AGAIN_S = 5.0


class _Waiter:
    __slots__ = ("lease_ms", "max", "served")

    def __init__(self, max: int, lease_ms: int | None, served: asyncio.Future[list[Delivery]]) -> None:
        self.max = max
        self.lease_ms = lease_ms
        self.served = served


class _Line:
    """Waiters of one tag of a queue, in order of arrival, and when each partition may have something (loop time)."""

    __slots__ = ("again", "due", "pumping", "tag", "timer", "turn", "waiters")

    def __init__(self, tag: int, partitions: int) -> None:
        self.tag = tag
        self.due = [0.0] * partitions
        self.waiters: collections.deque[_Waiter] = collections.deque()
        self.pumping = False
        self.again = False
        self.timer: asyncio.TimerHandle | None = None
        self.turn = 0


Move = Callable[[Queue, TagRecord, int, Sequence[Dying]], Coroutine[Any, Any, None]]
Refresh = Callable[[Queue], Coroutine[Any, Any, bool]]


class Receiver:
    """Receives of this worker. Any number of tasks may receive at once."""

    def __init__(self, core: Core, move: Move, refresh: Refresh) -> None:
        self._core = core
        self._move = move
        self._refresh = refresh
        self._deliveries = Deliveries(core)
        self._lines: dict[str, dict[int, _Line]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = Wake(core.settings.redis_url, core.settings.topic_prefix, self.woken)
        self.waiting = 0
        core.control.gone.append(self._gone)

    async def start(self) -> None:
        await self._wake.start()

    async def stop(self) -> None:
        for lines in self._lines.values():
            for line in lines.values():
                if line.timer is not None:
                    line.timer.cancel()
                for waiter in line.waiters:
                    if not waiter.served.done():
                        waiter.served.set_result([])
        await self._wake.stop()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def waits(self, queue: Queue) -> bool:
        """Whether somebody waits for messages of this queue here."""
        return any(line.waiters for line in self._lines.get(queue.incarnation, {}).values())

    def woken(self, incarnation: str, partition: int) -> None:
        """Something may be receivable in a partition (-1: in any) of a queue."""
        for line in self._lines.get(incarnation, {}).values():
            for p in range(len(line.due)) if partition < 0 else (partition,):
                if p < len(line.due):
                    line.due[p] = 0.0
            if line.waiters:
                self._pump_soon(incarnation, line)

    async def receive(self, queue: Queue, tag: TagRecord, max: int | None, wait_ms: int | None, lease_ms: int | None) -> list[Delivery]:
        """Lends 1 to `max` due messages, or none after `wait_ms`. None = the queue's setting.

        A cancelled call has lent nothing that is not released again. Raises InvalidValue, Unavailable.
        """
        check_range("max", max, 1, 100)
        check_range("wait_ms", wait_ms, 0, MAX_WAIT_MS)
        check_range("lease_ms", lease_ms, 0, MAX_LEASE_MS)
        record = queue.record
        count = min(max or record.max_receive_messages, record.max_receive_messages)
        wait_s = (record.receive_wait_ms if wait_ms is None else wait_ms) / 1000
        line = self._line(queue, tag)
        lent = await self._kept(queue, tag, self._now(queue, tag, line, count, lease_ms))
        if lent or wait_s <= 0:
            return lent
        return await self._wait(queue, tag, line, _Waiter(count, lease_ms, asyncio.get_running_loop().create_future()), wait_s)

    async def _now(self, queue: Queue, tag: TagRecord, line: _Line, count: int, lease_ms: int | None) -> list[Delivery]:
        """What is due: in the window, else in Kafka beyond it."""
        try:
            lent = await self._sweep(queue, tag, line, count, lease_ms, everywhere=True)
            if not lent and await self._refresh(queue):
                lent = await self._sweep(queue, tag, line, count, lease_ms, everywhere=True)
            return lent
        except Unavailable:
            line.due = [0.0] * len(line.due)  # nothing was learnt
            raise

    async def _kept(self, queue: Queue, tag: TagRecord, work: Coroutine[Any, Any, list[Delivery]]) -> list[Delivery]:
        """Finishes `work` also when the caller is cancelled meanwhile, and then gives back what it has lent."""
        task = asyncio.get_running_loop().create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._start(self._return(queue, tag, task))
            raise

    async def _return(self, queue: Queue, tag: TagRecord, task: asyncio.Task[list[Delivery]]) -> None:
        with contextlib.suppress(EngineError):
            await self._deliveries.give_back(queue, tag, await task)

    def _line(self, queue: Queue, tag: TagRecord) -> _Line:
        lines = self._lines.setdefault(queue.incarnation, {})
        line = lines.get(tag.id)
        if line is None:
            line = lines[tag.id] = _Line(tag.id, queue.record.partitions)
        return line

    async def _wait(self, queue: Queue, tag: TagRecord, line: _Line, waiter: _Waiter, wait_s: float) -> list[Delivery]:
        line.waiters.append(waiter)
        self.waiting += 1
        try:
            await self._wake.want(queue.incarnation)
            self._pump_soon(queue.incarnation, line)
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(asyncio.shield(waiter.served), wait_s)
            line.waiters.remove(waiter) if waiter in line.waiters else None
            return waiter.served.result() if waiter.served.done() else []
        except asyncio.CancelledError:
            if waiter.served.done() and not waiter.served.cancelled():
                self._start(self._deliveries.give_back(queue, tag, waiter.served.result()))
            raise
        finally:
            self.waiting -= 1
            waiter.served.cancel()
            with contextlib.suppress(ValueError):
                line.waiters.remove(waiter)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pump_soon(self, incarnation: str, line: _Line) -> None:
        if line.pumping:
            line.again = True
            return
        line.pumping = True
        self._start(self._pump(incarnation, line))

    async def _pump(self, incarnation: str, line: _Line) -> None:
        """Serves waiters in turn until nothing more is due; then sets the timer for what comes next."""
        try:
            while line.waiters:
                line.again = False
                queue = self._core.control.by_incarnation.get(incarnation)
                tag = next((t for t in queue.tags if t.id == line.tag), None) if queue else None
                if queue is None or tag is None:
                    self._drop(line)
                    return
                waiter = line.waiters[0]
                lent = await self._sweep(queue, tag, line, waiter.max, waiter.lease_ms, everywhere=False)
                if lent:
                    self._serve(queue, tag, line, lent)
                elif not line.again:
                    break
        except Unavailable:
            line.due = [asyncio.get_running_loop().time() + 0.2] * len(line.due)
        finally:
            line.pumping = False
            self._set_timer(incarnation, line)

    def _serve(self, queue: Queue, tag: TagRecord, line: _Line, lent: list[Delivery]) -> None:
        """Gives what was lent for the first waiter to who is first now (that one may have gone), and the rest to those behind.

        Not so in a FIFO queue: two receivers must not share a group.
        """
        while line.waiters:
            waiter = line.waiters.popleft()
            if not waiter.served.done():
                waiter.served.set_result(lent[: waiter.max])
                lent = lent[waiter.max :]
                if not lent:
                    return
                if queue.record.fifo:
                    break
        self._start(self._deliveries.give_back(queue, tag, lent))

    def _drop(self, line: _Line) -> None:
        while line.waiters:
            waiter = line.waiters.popleft()
            if not waiter.served.done():
                waiter.served.set_result([])

    def _set_timer(self, incarnation: str, line: _Line) -> None:
        if line.timer is not None:
            line.timer.cancel()
            line.timer = None
        if not line.waiters:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        soonest = min(line.due)
        if soonest > now + LOOK_AGAIN_S:
            line.timer = loop.call_at(now + LOOK_AGAIN_S, self.woken, incarnation, -1)
        else:
            line.timer = loop.call_at(max(soonest, now + 0.001), self._pump_soon, incarnation, line)

    async def _sweep(
        self, queue: Queue, tag: TagRecord, line: _Line, max: int, lease_ms: int | None, *, everywhere: bool
    ) -> list[Delivery]:
        """Asks partitions that may have something; with `everywhere`, those that seem to have nothing too before it gives up."""
        loop = asyncio.get_running_loop()
        partitions = len(line.due)
        line.turn = (line.turn + 1) % partitions
        order = [(line.turn + i) % partitions for i in range(partitions)]
        lent: list[Delivery] = []
        asked = set()
        for p in order:
            if line.due[p] <= loop.time():
                asked.add(p)
                lent += await self._receive_one(queue, tag, line, p, max - len(lent), lease_ms)
                if len(lent) >= max:
                    return lent
        rest = [p for p in order if p not in asked]
        if lent or not everywhere or not rest:
            return lent
        for p in rest:
            line.due[p] = FOREVER  # before the question: a wake-up that comes meanwhile must not be forgotten
        looks = await asyncio.gather(*(self._probe(queue, tag, p) for p in rest))
        for p, wait_ms in zip(rest, looks, strict=True):
            if wait_ms is not None:
                line.due[p] = min(line.due[p], loop.time() + wait_ms / 1000)
            if wait_ms == 0 and len(lent) < max:
                lent += await self._receive_one(queue, tag, line, p, max - len(lent), lease_ms)
        return lent

    async def _probe(self, queue: Queue, tag: TagRecord, partition: int) -> int | None:
        probed = await self._core.on_state(queue, lambda g: self._core.store.probe(queue.units[partition], g, tag.id))
        self._core.nudge(queue, partition, probed)
        return probed.wait_ms

    async def _receive_one(
        self, queue: Queue, tag: TagRecord, line: _Line, partition: int, max: int, lease_ms: int | None
    ) -> list[Delivery]:
        record = queue.record
        policy = record.redrive_policy
        dead_letters = policy is not None and policy.dead_letter_queue in self._core.control.queues
        line.due[partition] = FOREVER
        received: Received = await self._core.on_state(
            queue,
            lambda g: self._core.store.receive(
                queue.units[partition],
                g,
                tag.id,
                max=max,
                lease_ms=lease_ms,
                queue_lease_ms=record.lease_ms,
                max_receive_count=policy.max_receive_count if policy is not None and dead_letters else 0,
                retention_ms=record.retention_ms,
                move_ms=MOVE_MS,
            ),
        )
        self._core.touched(queue, partition)
        self._core.nudge(queue, partition, received)
        if received.wait_ms is not None:
            line.due[partition] = min(line.due[partition], asyncio.get_running_loop().time() + received.wait_ms / 1000)
        if received.dying:
            self._start(self._move(queue, tag, partition, received.dying))
        return await self._deliveries.of(queue, tag, partition, received, lease_ms)

    def _gone(self, queue: Queue) -> None:
        for line in self._lines.pop(queue.incarnation, {}).values():
            self._drop(line)
            if line.timer is not None:
                line.timer.cancel()
        with contextlib.suppress(RuntimeError):
            self._start(self._wake.forget(queue.incarnation))
