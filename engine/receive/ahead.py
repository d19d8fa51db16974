"""What is leased ahead of receives: a worker that is alone on a busy queue leases more than is
asked for, and gives it to who asks next without a call to Redis.

What nobody asks for within AHEAD_S goes back, uncounted. Such a lease is longer by MARGIN_MS, so
that it is as long as was asked for from when it is handed out: AHEAD_S counts from before Redis was
asked, and what is taken is handed out in the same step of the event loop. A process that is killed
leaves at most MOST messages of a tag leased to nobody: they come again when their leases end, and
one receive too many is counted (docs/explanation/architecture.md). So nothing is leased ahead where
messages die by their counts. Neighbours: `pump` leases; `waiters` has a stock for each wait list.
Must not know who waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Final

from engine.receive.returns import Returns
from engine.rules.queue import Queue
from engine.shapes import Delivery
from engine.window.body_cache import BodyCache
from engine.window.window import AHEAD_S
from schemas.records import TagRecord

# Not more: a message of which nothing is heard comes again that much later.
MARGIN_MS: Final = round(AHEAD_S * 1000)
MOST: Final = 100
# Of a shorter lease the margin would be a large part.
LEAST_LEASE_MS: Final = 1_000
# What was handed out in a span is what the next one will need. Half of AHEAD_S: what is leased for
# one is gone when its time is over.
SPAN_S: Final = AHEAD_S / 2
# After a message that may not wait here, or whose body had to come from Kafka, nothing is leased
# ahead for so long.
PAUSE_S: Final = 5.0
# Who needs what is held here to be back waits for so long at most.
BACK_S: Final = 1.0


class Stock:
    """What was leased ahead of the receives of a tag. Times are those of `time.monotonic`: the
    loop's may be of before the process was stopped.
    """

    __slots__ = ("_before", "_began", "_count", "_held", "_lease_ms", "_paused_until", "_queue", "returning", "tag", "until")

    def __init__(self, tag: int) -> None:
        self.tag = tag
        self.until = 0.0  # when what is left goes back
        self.returning: set[asyncio.Task[None]] = set()  # what nobody got is on its way back
        self._held: list[Delivery] = []
        self._queue: Queue | None = None
        self._lease_ms: int | None = None
        self._began = self._paused_until = 0.0
        self._before = self._count = 0

    def __len__(self) -> int:
        return len(self._held)

    def is_over(self, queue: Queue, now: float) -> bool:
        """Whether something is here, or on its way back, that nobody may take any more: who asks
        Redis before it is back gets what was sent later.
        """
        return bool(self.returning) or bool(self._held and (now >= self.until or queue is not self._queue))

    def note(self, count: int, now: float) -> None:
        """So many messages are handed out."""
        if now - self._began >= SPAN_S:
            self._before = self._count if now - self._began < 2 * SPAN_S else 0
            self._began, self._count = now, 0
        self._count += count

    def wanted(self, now: float) -> int:
        """How many more to lease than is asked for; none while some are left."""
        if self._held or now - self._began >= 2 * SPAN_S or now < self._paused_until:
            return 0
        return min(max(self._before, self._count), MOST)

    def pause(self, now: float) -> None:
        """Nothing is wanted for PAUSE_S."""
        self._paused_until = now + PAUSE_S

    def put(self, deliveries: list[Delivery], queue: Queue, lease_ms: int | None, until: float) -> None:
        """Keeps what was leased for `lease_ms`, as the receives say it, and MARGIN_MS."""
        self._held, self._queue, self._lease_ms, self.until = deliveries, queue, lease_ms, until

    def take(self, most: int, queue: Queue, lease_ms: int | None, now: float) -> list[Delivery]:
        """At most so many, in their order, for a receive with this lease, to be handed out at once:
        none after their time, or once anything about the queue has changed (it was purged, say).
        """
        if not self._held or lease_ms != self._lease_ms or queue is not self._queue or now >= self.until:
            return []
        taken, self._held = self._held[:most], self._held[most:]
        self.note(len(taken), now)
        return taken

    def empty(self) -> tuple[Queue | None, list[Delivery]]:
        """What is left, and of which queue."""
        left, self._held = self._held, []
        return self._queue, left


class Ahead:
    """The stocks of this worker. `start` runs what nobody waits for."""

    def __init__(self, bodies: BodyCache, returns: Returns, start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self._bodies = bodies
        self._returns = returns
        self._start = start

    def wanted(self, queue: Queue, tag: TagRecord, stock: Stock, lease_ms: int | None, now: float) -> int:
        """How many messages to lease beyond what receives with this lease ask for."""
        if not self._bodies.is_only_worker or not may_wait(queue, tag, lease_ms):
            return 0
        return stock.wanted(now)

    def keep(self, queue: Queue, stock: Stock, deliveries: list[Delivery], lease_ms: int | None, until: float) -> None:
        """Keeps what was leased ahead for who asks until then: MOST of it, if nothing is there and
        each may wait. What it does not keep goes back.
        """
        now, kept, back = monotonic(), deliveries[:MOST], deliveries[MOST:]
        is_plain = all(d.message.group is None and (lease_ms is not None or d.message.lease_ms is None) for d in kept)
        if not is_plain or now >= until:
            stock.pause(now)  # what has come too late would do so again
        if is_plain and not stock and now < until:
            stock.put(kept, queue, lease_ms, until)
            asyncio.get_running_loop().call_later(until - now, self._end, stock, until)
        else:
            back = deliveries
        if back:
            self.put_back(queue, stock, back)

    def _end(self, stock: Stock, until: float) -> None:
        """The time is over of what was put in until then, if it is still there: not by the clock,
        for a timer may be a little early.
        """
        if stock.until == until:
            self.give_back_soon(stock)

    def put_back(self, queue: Queue, stock: Stock, deliveries: list[Delivery]) -> None:
        """Nobody gets these, which were leased for a tag."""
        task = self._start(self._returns.give_back(queue, stock.tag, deliveries))
        stock.returning.add(task)
        task.add_done_callback(stock.returning.discard)

    def give_back_soon(self, stock: Stock) -> None:
        """Nobody gets what is left in a stock."""
        queue, left = stock.empty()
        if queue is not None and left:
            self.put_back(queue, stock, left)

    async def give_back(self, stock: Stock) -> None:
        """As `give_back_soon`; returns when Redis has all again that nobody got, or after BACK_S:
        what is not back then is not waited for again.
        """
        self.give_back_soon(stock)
        if under_way := set(stock.returning):
            await asyncio.wait(under_way, timeout=BACK_S)
            stock.returning -= under_way


def may_wait(queue: Queue, tag: TagRecord, lease_ms: int | None) -> bool:
    """Whether messages of a tag may be leased ahead: neither their order nor their counts matter,
    and their leases are long enough.
    """
    record, bounds = queue.record, queue.bounds[tag.id]
    if record.fifo or record.priority or bounds.dead_letter or bounds.park:
        return False
    return (record.lease_ms if lease_ms is None else lease_ms) >= LEAST_LEASE_MS
