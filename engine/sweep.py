"""Asks the partitions of a queue what is due, those first that are known to have something.

Neighbours: `receiver.py` says for whom; `line.py` knows when which partition may have something. Must not know who waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from engine.core import MOVE_MS, Core
from engine.errors import Unavailable
from engine.line import FOREVER, MOST, Line
from engine.queue import Queue
from schemas.records import TagRecord
from state.replies import Dying, Received

# What a partition is asked for at least, when several are asked at once: a call that lends five costs little more than one that lends one.
# Much more, and a quiet partition would wait for its turn behind busy ones while consumers come in waves.
SHARE = 5

# What partitions have lent, each as its call answered.
Lent: TypeAlias = list[tuple[int, Received]]
Move: TypeAlias = Callable[[Queue, TagRecord, int, Sequence[Dying]], None]


class Sweeper:
    """Lends what is due. `move` is told of what is dying instead; any number of tasks may sweep at once."""

    def __init__(self, core: Core, move: Move) -> None:
        self._core = core
        self._move = move

    async def sweep(
        self, queue: Queue, tag: TagRecord, line: Line, max: int, lease_ms: int | None, *, everywhere: bool, callers: int = 1
    ) -> Lent:
        """Asks partitions that may have something; with `everywhere`, those that seem to have nothing too before it gives up.

        In turn, so that a quiet partition is not behind a busy one: for several callers as few as may do, then all others at once.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        partitions = len(line.due)
        order = [(line.turn + 1 + i) % partitions for i in range(partitions)]
        few = -(-max // SHARE)
        line.turn = (line.turn + few) % partitions
        lent: Lent = []
        asked: set[int] = set()
        left = max
        for most in (few, partitions) if callers > 1 else ():
            some = [p for p in order if line.due[p] <= began and p not in asked][:most]
            asked.update(some)
            if left > 0 and some:
                left -= await self._receive_some(queue, tag, line, some, left, lease_ms, lent)
        for p in order:
            if left > 0 and line.due[p] <= loop.time():
                asked.add(p)
                try:
                    left -= await self._receive_one(queue, tag, line, p, left, lease_ms, lent)
                except Unavailable:
                    if not lent:
                        raise
        if lent or not everywhere:
            return lent
        rest = [p for p in order if p not in asked]
        for p in rest:
            line.due[p] = FOREVER  # before the question: a wake-up that comes meanwhile must not be forgotten
        looks = await asyncio.gather(*(self._probe(queue, tag, p) for p in rest))
        for p, wait_ms in zip(rest, looks, strict=True):
            if wait_ms is not None:
                line.due[p] = min(line.due[p], loop.time() + wait_ms / 1000)
            if wait_ms == 0 and left > 0:
                left -= await self._receive_some(queue, tag, line, [p], left, lease_ms, lent)
        line.looked_at = began
        return lent

    async def _receive_some(
        self, queue: Queue, tag: TagRecord, line: Line, partitions: Sequence[int], max: int, lease_ms: int | None, lent: Lent
    ) -> int:
        """Asks partitions at once, each for its share; fails only when none has lent, these or others before."""
        if len(partitions) == 1:
            try:
                return await self._receive_one(queue, tag, line, partitions[0], max, lease_ms, lent)
            except Unavailable:
                if not lent:
                    raise
                return 0
        shares = [max // len(partitions) + (n < max % len(partitions)) for n in range(len(partitions))]
        asks = (self._receive_one(queue, tag, line, p, share, lease_ms, lent) for p, share in zip(partitions, shares, strict=True) if share)
        outcomes = await asyncio.gather(*asks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not lent:
                raise outcome
        return sum(outcome for outcome in outcomes if isinstance(outcome, int))

    async def _probe(self, queue: Queue, tag: TagRecord, partition: int) -> int | None:
        probed = await self._core.on_state(queue, lambda g: self._core.store.probe(queue.units[partition], g, tag.id))
        self._core.nudge(queue, partition, probed)
        return probed.wait_ms

    async def _receive_one(
        self, queue: Queue, tag: TagRecord, line: Line, partition: int, max: int, lease_ms: int | None, lent: Lent
    ) -> int:
        """Asks a partition, adds what it lends to `lent`, and says how many messages that is."""
        record = queue.record
        policy = record.redrive_policy
        dead_letters = policy is not None and policy.dead_letter_queue in self._core.control.queues
        line.due[partition] = FOREVER
        try:
            received: Received = await self._core.on_state(
                queue,
                lambda g: self._core.store.receive(
                    queue.units[partition],
                    g,
                    tag.id,
                    max=min(max, MOST),
                    lease_ms=lease_ms,
                    queue_lease_ms=record.lease_ms,
                    max_receive_count=policy.max_receive_count if policy is not None and dead_letters else 0,
                    retention_ms=record.retention_ms,
                    move_ms=MOVE_MS,
                ),
            )
        except BaseException:
            line.due[partition] = 0.0  # nothing was learnt: others may have lent, and then nobody hears of this
            raise
        self._core.touched(queue, partition)
        self._core.nudge(queue, partition, received)
        if received.wait_ms is not None:
            line.due[partition] = min(line.due[partition], asyncio.get_running_loop().time() + received.wait_ms / 1000)
        if received.dying:
            self._move(queue, tag, partition, received.dying)
        if received.leased:
            lent.append((partition, received))
        return len(received.leased)
