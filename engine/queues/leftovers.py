"""Ends what was cut off: units that nobody owns though their outbox has entries, tags and queues
that are deleted in part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from engine.catalog.catalog import Catalog
from engine.rules.queue import Queue
from engine.window.window import Window
from state.errors import StateError
from state.upkeep import UpkeepScripts

AT_A_TIME = 100


class Leftovers:
    """`finish_deletions` finishes deletions of queues."""

    def __init__(self, upkeep: UpkeepScripts, catalog: Catalog, window: Window, finish_deletions: Callable[[], Awaitable[None]]) -> None:
        self.finish_deletions = finish_deletions
        self._upkeep = upkeep
        self._catalog = catalog
        self._window = window

    async def drain_left(self) -> None:
        """Sees to it that somebody owns the units whose owner died with entries that the journal
        does not have: 20,000 units take half a second.
        """
        units = [(queue, partition) for queue in self._catalog.queues.values() for partition in range(len(queue.units))]
        for at in range(0, len(units), AT_A_TIME):
            some = units[at : at + AT_A_TIME]
            try:
                left = await asyncio.gather(*(self._upkeep.undrained(queue.units[partition]) for queue, partition in some))
            except StateError:
                return  # without Redis nobody can drain anything
            for (queue, partition), entries in zip(some, left, strict=True):
                if entries:
                    self._window.used(queue, partition)

    async def close_left(self, queues: Sequence[Queue]) -> None:
        """Drops what deleted tags still have in Redis: it was away, or the worker died, when they
        were deleted.
        """
        upkeep = self._upkeep
        for queue in queues:
            if queue.record.next_tag_id == len(queue.tags):
                continue  # none was ever deleted
            try:
                for unit in queue.units:
                    # A tag that is being made has the next number.
                    for tag in sorted(await upkeep.known_tags(unit)):
                        if tag < queue.record.next_tag_id and tag not in queue.tag_ids:
                            await upkeep.close(unit, tag)
            except StateError:
                return
