"""Purges queues: what was sent before is settled, and its records are deleted from Kafka."""

from __future__ import annotations

import asyncio

import msgspec

from engine.catalog.catalog import Catalog
from engine.log import Log
from engine.queues.records import QueueRecords
from engine.rules.queue import Queue
from engine.window.window import AHEAD_S, Window
from runtime.clock import now_ms
from runtime.failpoints import reached
from state.deferred import DeferredScripts


class Purges:
    """Any number of tasks may ask."""

    def __init__(self, log: Log, deferred: DeferredScripts, catalog: Catalog, window: Window, records: QueueRecords) -> None:
        self._log = log
        self._deferred = deferred
        self._catalog = catalog
        self._window = window
        self._records = records

    async def purge(self, name: str) -> None:
        """Settles every message sent before the call under all tags, and deletes their records from
        Kafka.
        """
        queue = await self._catalog.queue(name)
        parts = [(queue.topic, p) for p in range(len(queue.units))]
        ends = await self._log.end_offsets(parts)
        for partition, part in enumerate(parts):
            if part in ends:
                self._window.used(queue, partition)
                await self._purge_unit(queue, partition, ends[part])
        async with self._catalog.change(name) as change:
            now = self._catalog.by_incarnation.get(queue.incarnation)
            if now is None:  # its topic may be that of a queue of the same name by now
                raise self._catalog.ended(queue)
            reached("purge.before_delete")
            change.check()
            await self._log.delete_records({part: end for part, end in ends.items() if end > 0})
            await self._records.write(msgspec.structs.replace(now.record, purged_at_ms=now_ms()), change)
        # What another worker had leased ahead, who has not heard of this, it hands out no later.
        await asyncio.sleep(AHEAD_S)

    async def _purge_unit(self, queue: Queue, partition: int, below: int) -> None:
        unit = queue.units[partition]
        await self._window.call(queue, lambda g: self._deferred.purge(unit, g, queue.tag_ids, below))
