"""Who waits for messages of a tag, in order of arrival, and what is known of its partitions.

The pump of a list serves the waiters in turn, with one call to the window for as many as it can:
what comes while a call is under way is asked for together, and while there are many it lingers for
more (`linger.py`). What a list knows of its partitions is kept true by wake-ups; every few seconds
all are asked anew.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeAlias

from engine.errors import TooManyInFlight, Unavailable
from engine.receive.waits.waiter import Waiter
from engine.rules.limits import MAX_RECEIVE_BYTES, message_bytes
from engine.rules.linger import LINGER_S, should_linger
from engine.shapes import Delivery
from runtime.background import Background
from schemas.records.settings import MAX_IN_FLIGHT
from state.replies import Probed, Received

# Makes one call for the first waiters of a list; returns whether it leased something.
Serve: TypeAlias = Callable[["WaitList"], Coroutine[Any, Any, bool]]

FOREVER = float("inf")
# Wake-ups may be lost (they are not stored): a line with waiters looks at everything again this
# often.
LOOK_AGAIN_S = 5.0
# What one call to the window may lease.
MAX_PER_CALL = 100
# Waiters who want so much that a call serves one of them are served by calls to several partitions
# at once: one after the other they would wait for each other. Not more of them: who is answered
# together comes back together.
MAX_PARALLEL = 4


class WaitList:
    """Waiters of one tag of a queue, when each partition may have something, and when all were
    looked at last (loop times). The list owns the pump that serves its waiters, and the timer that
    starts it.

    `heads`: since when the first message of each partition is visible (epoch ms as Redis has it), 0
    = not known. `wakes`: how often each was woken, so that what was learnt before is not taken for
    true after it. `in_flight`: how many of each are leased. `over`: how many were leased in all
    when the last call was refused for that, 0 = it was not.
    `fit`: how many messages an answer has room for if they are like those that came last, 0 = not
    known. `served`: the partition that has given messages last. `full_until`: as much is in flight
    as the queue's `max_in_flight`, so nobody who waits asks before that time.
    """

    __slots__ = (
        "again",
        "background",
        "due",
        "fit",
        "full_until",
        "heads",
        "in_flight",
        "incarnation",
        "last",
        "looked_at",
        "most",
        "over",
        "pumping",
        "rests",
        "serve",
        "served",
        "stopped",
        "tag",
        "timer",
        "turn",
        "waiters",
        "wakes",
    )

    def __init__(self, tag: int, partitions: int, serve: Serve, background: Background, incarnation: str = "") -> None:
        self.tag = tag
        self.incarnation = incarnation
        self.serve = serve
        self.background = background
        self.stopped = False
        self.due = [0.0] * partitions
        self.heads = [0] * partitions
        self.wakes = [0] * partitions
        self.in_flight = [MAX_IN_FLIGHT] * partitions  # not known: to be looked at first
        self.over = self.fit = self.served = 0
        self.looked_at = self.full_until = -FOREVER
        self.waiters: collections.deque[Waiter] = collections.deque()
        self.pumping = False
        self.again = False
        self.timer: asyncio.TimerHandle | None = None
        self.turn = 0
        self.most = MAX_PER_CALL * min(partitions, MAX_PARALLEL)
        self.last = 0  # messages of the last calls, if several shared them
        # Partitions whose bodies could not be read just now: until when they are not asked.
        self.rests: dict[int, float] = {}

    def wait(self, waiter: Waiter) -> None:
        """Somebody waits: they are served now, or when something may be due."""
        self.waiters.append(waiter)
        if self.rests or self.next_look() <= asyncio.get_running_loop().time():
            self.pump_soon()
        elif self.timer is None and not self.pumping:
            self.set_timer()

    def leave(self, waiter: Waiter) -> None:
        """Somebody waits no more."""
        if waiter in self.waiters:
            self.waiters.remove(waiter)

    def wake(self, partition: int, head_ms: int = 0) -> None:
        """Something may be due in a partition (-1: in any), visible since `head_ms` (0 = not
        known). In any: also where as much is in flight as may be.
        """
        now = asyncio.get_running_loop().time()
        if partition < 0:
            self.full_until = -FOREVER
        for p in range(len(self.due)) if partition < 0 else (partition,):
            if p < len(self.due):
                self.note_due(p, head_ms, now)
        if (self.waiters or self.pumping) and self.full_until <= now:
            self.pump_soon()

    def pump_soon(self) -> None:
        """Serves the waiters; while they are served, once more behind that."""
        if self.pumping:
            self.again = True
            return
        self.pumping = True
        self.background.start(self._pump(), "pump")

    async def _pump(self) -> None:
        """Serves waiters in turn until nothing more is due; then sets the timer for what comes
        next.
        """
        try:
            while self.waiters and not self.stopped:
                if should_linger(self.last, self.wanted()):
                    await asyncio.sleep(LINGER_S)
                self.again = False
                if not await self.serve(self) and not self.again:
                    break
        except Exception as error:
            self.pause(asyncio.get_running_loop().time() + 0.2)
            if not isinstance(error, Unavailable | TooManyInFlight):
                raise
        finally:
            self.pumping = False
            if self.stopped:
                self.cancel_all()
            self.set_timer()

    def set_timer(self) -> None:
        """Has the waiters served when there is something to ask."""
        self.stop_timer()
        if self.waiters:
            loop = asyncio.get_running_loop()
            self.timer = loop.call_at(max(self.next_look(), loop.time() + 0.001), self.pump_soon)

    def stop(self) -> None:
        """Ends all waiting receives with an empty result, and serves no more."""
        self.stopped = True
        self.stop_timer()
        self.cancel_all()

    def note_due(self, partition: int, head_ms: int, now: float) -> None:
        """Something may be due in a partition, visible since `head_ms` (0 = not known): behind what
        is known to be due there.
        """
        self.wakes[partition] += 1
        if self.due[partition] > now or 0 < head_ms < self.heads[partition]:
            self.heads[partition] = head_ms
        self.due[partition] = 0.0

    def learn(self, partition: int, wakes: int, seen: Received | Probed, now: float) -> None:
        """An answer of a partition that had been woken `wakes` times when it was asked."""
        head_ms = seen.head_ms
        self.in_flight[partition] = seen.in_flight
        if self.wakes[partition] == wakes:
            self.due[partition] = FOREVER if seen.wait_ms is None else now + seen.wait_ms / 1000
            self.heads[partition] = head_ms or 0
        elif head_ms is not None and head_ms < self.heads[partition]:
            self.heads[partition] = head_ms

    def forget(self, partition: int) -> None:
        """A partition did not answer: nothing is known of it."""
        self.due[partition] = 0.0
        self.heads[partition] = 0

    def forget_all(self) -> None:
        """Nobody answered: every partition may have something."""
        self.due = [0.0] * len(self.due)

    def oldest(self, order: Iterable[int], now: float) -> list[int]:
        """Those of the partitions in `order` that may have something, that with the oldest message
        first; not known ones before them. Of two with messages of one ms it is the one that has
        served last: a sender stays in a partition for a while, so the others follow.
        """
        due = [partition for partition in order if self.due[partition] <= now]
        if len(due) > 1:
            heads, served = self.heads, self.served
            due.sort(key=heads.__getitem__)
            if heads[due[0]] == heads[due[1]] == heads[served] > 0 and served in due:
                due.remove(served)
                due.insert(0, served)
        return due

    def wanted(self) -> int:
        """Messages that the waiters of the next calls would take, about."""
        return sum(waiter.max for waiter in itertools.islice(self.waiters, MAX_PER_CALL))

    def have_room(self, deliveries: Sequence[Delivery]) -> bool:
        """Returns whether one answer has room for deliveries; sets `fit` by their bytes."""
        size = 0
        for one in deliveries:
            size += message_bytes(one.message) if one.message.attributes else len(one.message.body)
        if deliveries:
            self.fit = MAX_RECEIVE_BYTES * len(deliveries) // (size or 1) or 1
        return size <= MAX_RECEIVE_BYTES or len(deliveries) == 1

    def fits(self, max_message_bytes: int) -> int:
        """Returns `fit`; before any message came, what fits if each has as many bytes as its queue
        allows: 1 or more.
        """
        return self.fit or MAX_RECEIVE_BYTES // max_message_bytes or 1

    def stale(self, now: float) -> bool:
        """Whether it is time to ask every partition."""
        return self.looked_at + LOOK_AGAIN_S <= now

    def next_look(self) -> float:
        """When there is something to ask."""
        if self.rests:
            due = (max(due, self.rests.get(partition, 0.0)) for partition, due in enumerate(self.due))
            return max(self.full_until, min(*due, max(self.looked_at + LOOK_AGAIN_S, min(self.rests.values()))))
        return max(self.full_until, min(*self.due, self.looked_at + LOOK_AGAIN_S))

    def awake(self, order: list[int], now: float) -> list[int]:
        """Those of the partitions in `order` that do not rest."""
        for partition in [p for p, until in self.rests.items() if until <= now]:
            del self.rests[partition]
        return [partition for partition in order if partition not in self.rests]

    def pause(self, until: float) -> None:
        """Nothing is asked before that time, unless something wakes the line or somebody comes."""
        self.due = [until] * len(self.due)
        self.looked_at = max(self.looked_at, until - LOOK_AGAIN_S)

    def hold(self, until: float) -> None:
        """As `pause`, of a tag that is paused: who waits, waits as at an empty queue."""
        self.over = 0
        self.pause(until)

    def pop_batch(self, *, alone: bool) -> list[Waiter]:
        """The first waiters: all of one lease, and MAX_PER_CALL messages, or MAX_PARALLEL waiters
        and `most` messages; `alone`: the first one.
        """
        taken: list[Waiter] = []
        wanted = 0
        while self.waiters:
            waiter = self.waiters[0]
            if not waiter.served.done():
                most = self.most if len(taken) < MAX_PARALLEL else MAX_PER_CALL
                if taken and (alone or waiter.lease_ms != taken[0].lease_ms or wanted + waiter.max > most):
                    break
                taken.append(waiter)
                wanted += waiter.max
            self.waiters.popleft()
        return taken

    def requeue(self, waiters: Iterable[Waiter]) -> None:
        """To the front, in their order; who has gone is left out."""
        self.waiters.extendleft(reversed([waiter for waiter in waiters if not waiter.served.done()]))

    def deliver(self, waiters: list[Waiter], deliveries: list[Delivery], *, fifo: bool) -> list[Delivery]:
        """Serves `waiters`; what is left, for one of them has gone, to those behind. Returns what
        nobody takes.

        Not to those behind in a FIFO queue: two receivers must not share a group.
        """
        lease_ms = waiters[0].lease_ms
        self.requeue(waiters)
        while deliveries and (behind := self.pop_batch(alone=True)):
            (waiter,) = behind
            if waiter.lease_ms != lease_ms or (fifo and waiter not in waiters):
                self.requeue(behind)
                break
            waiter.served.set_result(deliveries[: waiter.max])
            deliveries = deliveries[waiter.max :]
            if fifo:
                break
        for waiter in waiters:
            waiter.rest()
        return deliveries

    def cancel_all(self) -> None:
        """Everybody is told that there is nothing."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.served.done():
                waiter.served.set_result([])

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
