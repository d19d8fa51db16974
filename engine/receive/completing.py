"""Makes deliveries of what was leased: its bodies are read, and its queue is looked at again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeAlias

from engine.catalog.catalog import Catalog
from engine.receive.deliveries import Deliveries
from engine.receive.poll import Leases
from engine.receive.returns import REST_MS, Returns
from engine.receive.waits.wait_list import WaitList
from engine.rules.queue import Queue
from engine.shapes import Delivery
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
