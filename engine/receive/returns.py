"""Deliveries that no answer carried are given back: uncounted, and each message is again where it
was.

Neighbours: `deliveries.py` and `receiver.py` find them. Must not know why nobody got them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from engine.errors import EngineError, Unavailable
from engine.rules.ids import Ids
from engine.rules.queue import Queue
from engine.runtime.counters import Counters
from engine.runtime.signals import Signal
from engine.shapes import Delivery
from engine.window.entry import delay_of
from engine.window.window import Window
from schemas.identity import Handle
from state.store import Store

logger = logging.getLogger(__name__)

# A message whose body could not be read is not looked at again for so long.
REST_MS = 1_000
# Redis may be away when something is to be given back: it is told later, within this time.
GIVE_BACK_S = 60.0


class Returns:
    """Gives leases back, until it is stopped."""

    def __init__(self, store: Store, window: Window, ids: Ids, receivable: Signal[[str, int, int]], counters: Counters) -> None:
        self._store = store
        self._window = window
        self._ids = ids
        self._receivable = receivable
        self._counters = counters
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

    async def rows(self, queue: Queue, tag: int, partition: int, rows: Sequence[tuple[int, int, int]]) -> None:
        """Uncounts (offset, nonce, due ms or 0 = the body could not be read). Returns when Redis
        has done it; a repeat changes nothing.

        What it is not told in time comes again when its lease ends, and counts.
        """
        loop = asyncio.get_running_loop()
        unit, store, end, pause_s = queue.units[partition], self._store, loop.time() + GIVE_BACK_S, 0.05
        while True:
            try:
                words = await self._window.call(queue, lambda g: store.give_back(unit, g, tag, rows, rest_ms=REST_MS))
                break
            except Unavailable as error:
                if self.stopping or loop.time() > end:
                    logger.warning("action=give_back queue=%s partition=%d messages=%d error=%s", queue.name, partition, len(rows), error)
                    return
            except EngineError:
                return  # the queue is gone
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 1.0)
        self._counters.count("deliveries_returned_total", words.count("ok"))
        self._counters.count("deliveries_too_late_to_return_total", words.count("stale"))
        self._receivable(queue.incarnation, partition, 0)
