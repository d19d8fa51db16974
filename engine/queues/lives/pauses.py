"""Pauses queues and tags: nobody receives, until they are resumed. All else goes on."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from engine.catalog.catalog import Catalog
from engine.queues.records import QueueRecords
from engine.rules.limits import check_reason
from engine.window.window import AHEAD_S
from runtime.clock import now_ms
from schemas.records import Pause


class Pauses:
    """Any number of tasks may ask. `tag` None = the queue, with all its tags; a tag may be paused
    by itself beside that. Raises QueueNotFound, TagNotFound.
    """

    def __init__(self, catalog: Catalog, records: QueueRecords) -> None:
        self._catalog = catalog
        self._records = records

    async def pause(self, by: str, name: str, tag: str | None, reason: str) -> Pause:
        """Returns the pause that is in force: one that was there stays as it was. When this
        returns, workers that follow Kafka hand out nothing any more. Raises InvalidValue.
        """
        check_reason(reason)
        paused = await self._set(name, tag, Pause(by, now_ms(), reason))
        assert paused is not None
        # What another worker had leased, who has not heard of this, it hands out no later.
        await asyncio.sleep(AHEAD_S)
        return paused

    async def resume(self, name: str, tag: str | None) -> None:
        """Ends a pause; where there is none nothing is changed."""
        await self._set(name, tag, None)

    async def _set(self, name: str, tag: str | None, wanted: Pause | None) -> Pause | None:
        """Returns what is so now: a pause that is there is not replaced by another."""
        async with self._catalog.change(name) as change:
            queue = self._records.known(name)
            at = None if tag is None else queue.tag(tag)
            known = queue.record.paused if at is None else at.paused
            if (known is None) == (wanted is None):
                return known
            record = queue.record
            if at is None:
                record = replace(record, paused=wanted)
            else:
                record = replace(record, tags=[replace(one, paused=wanted) if one.id == at.id else one for one in record.tags])
            await self._records.write(record, change)
            return wanted
