"""Deliveries that no answer carried are given back: uncounted, and each message is again where it
was.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from engine.errors import EngineError, QueueRenewed, Unavailable
from engine.rules.queue import Ids, Queue
from engine.shapes import Delivery
from engine.window.entry import delay_of
from engine.window.window import Window
from runtime.counters import Counters
from runtime.signals import Signal
from schemas.identity import Handle
from state.keys import Unit
from state.leases import LeaseScripts

logger = logging.getLogger(__name__)

# A message whose body could not be read is not looked at again for so long.
REST_MS = 1_000
# Redis may be away when something is to be given back: it is told later, within this time.
GIVE_BACK_S = 60.0
# Redis may be lost before the journal has what was given back, but has the lease: so it is told
# again after a rebuild, what it was told in this time, and no more calls than so many. The journal
# is behind by less (docs/explanation/promises.md).
REMEMBERED_S, REMEMBERED = 10.0, 10_000

# Offset, nonce, due ms or 0 = the body could not be read.
Rows: TypeAlias = Sequence[tuple[int, int, int]]


class Returns:
    """Gives leases back, until it is stopped. `start` runs what nobody waits for."""

    def __init__(
        self,
        scripts: LeaseScripts,
        window: Window,
        ids: Ids,
        receivable: Signal[[str, int, int]],
        counters: Counters,
        start: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._scripts = scripts
        self._window = window
        self._ids = ids
        self._receivable = receivable
        self._counters = counters
        self._start = start
        self._tries: dict[tuple[str, int], set[asyncio.Future[Unavailable | None]]] = {}
        self._given: deque[tuple[float, Queue, int, int, Rows]] = deque(maxlen=REMEMBERED)
        self.stopping = False

    def stop(self) -> None:
        """What Redis can't be told now is not tried again."""
        self.stopping = True

    async def give_back(self, queue: Queue, tag: int, deliveries: Sequence[Delivery]) -> None:
        """Uncounts what was leased to a receiver that has gone. What an answer before carried stays
        as it is.
        """
        parts: dict[int, list[tuple[int, int, int]]] = {}
        for d in deliveries:
            if not d.repeated:
                nonce = Handle.parse(d.handle, self._ids.secret).nonce
                parts.setdefault(d.partition, []).append((d.offset, nonce, d.sent_at_ms + delay_of(queue, d.message)))
        await asyncio.gather(*(self.rows(queue, tag, partition, rows) for partition, rows in parts.items()))

    async def rows(self, queue: Queue, tag: int, partition: int, rows: Rows) -> None:
        """Uncounts deliveries. Returns when Redis has done it; a repeat changes nothing.

        What it is not told in time comes again when its lease ends, and counts.
        """
        key = queue.incarnation, tag
        tried: asyncio.Future[Unavailable | None] = asyncio.get_running_loop().create_future()
        self._tries.setdefault(key, set()).add(tried)
        try:
            words = await self._tell(queue, tag, partition, rows, tried)
        finally:
            if not tried.done():
                tried.set_result(None)
            self._tries[key].discard(tried)
            if not self._tries[key]:
                del self._tries[key]
        if words is None:
            return
        self.returned(
            queue,
            tag,
            partition,
            [row for row, word in zip(rows, words, strict=True) if word == "ok"],
            words.count("stale"),
        )

    async def tried(self, queue: Queue, tag: int) -> bool:
        """Waits until Redis has been told once of what is on its way back to a tag; whether there
        was something. Raises Unavailable when it has refused some: that is neither receivable nor
        with anybody.
        """
        tries = tuple(self._tries.get((queue.incarnation, tag), ()))
        for tried in tries:
            if (error := await asyncio.shield(tried)) is not None:
                raise error
        return bool(tries)

    def returned(self, queue: Queue, tag: int, partition: int, rows: Rows, late: int) -> None:
        """Takes note of deliveries that were given back, and of how many others it was too late
        for.
        """
        self._counters.count("deliveries_too_late_to_return_total", late)
        if not rows:
            return
        now = asyncio.get_running_loop().time()
        while self._given and self._given[0][0] < now - REMEMBERED_S:
            self._given.popleft()
        self._given.append((now, queue, tag, partition, rows))
        self._counters.count("deliveries_returned_total", len(rows))
        self._receivable(queue.incarnation, partition, _head(rows))

    def tell_again(self, unit: Unit) -> None:
        """The state of a unit was rebuilt from the journal: it may have deliveries again that were
        given back.
        """
        since = asyncio.get_running_loop().time() - REMEMBERED_S
        for at, queue, tag, partition, rows in self._given:
            if at >= since and queue.units[partition] == unit:
                self._start(self._repeat(queue, tag, partition, rows))

    async def _repeat(self, queue: Queue, tag: int, partition: int, rows: Rows) -> None:
        words = await self._tell(queue, tag, partition, rows)
        if words is not None and "ok" in words:
            self._receivable(queue.incarnation, partition, _head(rows))

    async def _tell(
        self,
        queue: Queue,
        tag: int,
        partition: int,
        rows: Rows,
        tried: asyncio.Future[Unavailable | None] | None = None,
    ) -> list[str] | None:
        """The word of each row; None = the queue is gone, or Redis was away for too long. `tried`
        gets the first failure.
        """
        loop = asyncio.get_running_loop()
        unit, scripts, end, pause_s = queue.units[partition], self._scripts, loop.time() + GIVE_BACK_S, 0.05
        while True:
            try:
                return await self._window.call(queue, lambda g: scripts.give_back(unit, g, tag, rows, rest_ms=REST_MS))
            except QueueRenewed:
                return None  # what was held in the life before is held no more
            except Unavailable as error:
                if tried is not None and not tried.done():
                    tried.set_result(error)
                if self.stopping or loop.time() > end:
                    logger.warning(
                        "action=give_back queue=%s partition=%d messages=%d error=%s",
                        queue.name,
                        partition,
                        len(rows),
                        error,
                    )
                    return None
            except EngineError:
                return None
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 1.0)


def _head(rows: Rows) -> int:
    """Since when the first of them is visible, that its partition is asked in its turn; 0 = none is
    at once.
    """
    return min((due for _, _, due in rows if due), default=0)
