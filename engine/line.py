"""Who waits for messages of a tag, in order of arrival, and what is known of its partitions.

Neighbours: `receiver.py` fills and serves lines. Must not know Redis, Kafka or HTTP.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
from collections.abc import Iterable

from engine.verbs import Delivery

FOREVER = float("inf")
# Wake-ups may be lost (they are not stored): a line with waiters looks at everything again this often.
LOOK_AGAIN_S = 5.0
# What one call to the window may lend.
MOST = 100
# Waiters who want so much that a call serves one of them are served by calls to several partitions at once: one after the other they would
# wait for each other. Not more of them: who is answered together comes back together.
AT_ONCE = 4


class Waiter:
    """A receive that waits for up to `max` messages. `new`: nobody has looked for it yet, so it may still be told that nobody can."""

    __slots__ = ("lease_ms", "max", "new", "served")

    def __init__(self, max: int, lease_ms: int | None, served: asyncio.Future[list[Delivery]]) -> None:
        self.max = max
        self.lease_ms = lease_ms
        self.served = served
        self.new = True

    def give_up(self) -> None:
        """Its time is over: it is told that there is nothing, unless it has been served."""
        if not self.served.done():
            self.served.set_result([])


class Line:
    """Waiters of one tag of a queue, when each partition may have something, and when all were looked at last (loop times)."""

    __slots__ = ("again", "due", "last", "looked_at", "most", "pumping", "tag", "timer", "turn", "waiters")

    def __init__(self, tag: int, partitions: int) -> None:
        self.tag = tag
        self.due = [0.0] * partitions
        self.looked_at = -FOREVER
        self.waiters: collections.deque[Waiter] = collections.deque()
        self.pumping = False
        self.again = False
        self.timer: asyncio.TimerHandle | None = None
        self.turn = 0
        self.most = MOST * min(partitions, AT_ONCE)
        self.last = 0  # messages of the last calls, if several shared them

    def wanted(self) -> int:
        """Messages that the waiters of the next calls would take, about."""
        return sum(waiter.max for waiter in itertools.islice(self.waiters, MOST))

    def stale(self, now: float) -> bool:
        """Whether it is time to ask every partition."""
        return self.looked_at + LOOK_AGAIN_S <= now

    def next_look(self) -> float:
        """When there is something to ask."""
        return min(*self.due, self.looked_at + LOOK_AGAIN_S)

    def take(self, *, alone: bool) -> list[Waiter]:
        """The first waiters: all of one lease, and MOST messages, or AT_ONCE waiters and `most` messages; `alone`: the first one."""
        taken: list[Waiter] = []
        wanted = 0
        while self.waiters:
            waiter = self.waiters[0]
            if not waiter.served.done():
                most = self.most if len(taken) < AT_ONCE else MOST
                if taken and (alone or waiter.lease_ms != taken[0].lease_ms or wanted + waiter.max > most):
                    break
                taken.append(waiter)
                wanted += waiter.max
            self.waiters.popleft()
        return taken

    def put_back(self, waiters: Iterable[Waiter]) -> None:
        """To the front, in their order; who has gone is left out."""
        self.waiters.extendleft(reversed([waiter for waiter in waiters if not waiter.served.done()]))

    def hand_out(self, waiters: list[Waiter], deliveries: list[Delivery], *, fifo: bool) -> list[Delivery]:
        """Serves `waiters`; what is left, for one of them has gone, to those behind. Returns what nobody takes.

        Not to those behind in a FIFO queue: two receivers must not share a group.
        """
        lease_ms = waiters[0].lease_ms
        self.put_back(waiters)
        while deliveries and (behind := self.take(alone=True)):
            (waiter,) = behind
            if waiter.lease_ms != lease_ms or (fifo and waiter not in waiters):
                self.put_back(behind)
                break
            waiter.served.set_result(deliveries[: waiter.max])
            deliveries = deliveries[waiter.max :]
            if fifo:
                break
        return deliveries

    def drop(self) -> None:
        """Everybody is told that there is nothing."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.served.done():
                waiter.served.set_result([])

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
