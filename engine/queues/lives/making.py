"""Makes what a queue consists of: topic, control record, window.

Order of a creation: control record (deleting), topic, control record, window. Whatever ends in
between leaves a deletion that `alarms.py` has finished, so a creation that failed leaves no topic.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.queues.lives.topics import QueueTopics
from engine.queues.records import QueueRecords
from engine.rules.queue import Queue
from runtime.failpoints import reached
from schemas.records import QueueRecord
from schemas.topics import QUEUE_KEY
from state.errors import StateError
from state.upkeep import UpkeepScripts

logger = logging.getLogger(__name__)

# In place of the id of its topic: of a queue that is being made, and is deleted if that ends early.
BEGUN: Final = "begun"


class Making:
    """For whoever has the right to change a queue."""

    def __init__(self, upkeep: UpkeepScripts, catalog: Catalog, topics: QueueTopics, records: QueueRecords) -> None:
        self._upkeep = upkeep
        self._catalog = catalog
        self._topics = topics
        self._records = records

    async def make(self, record: QueueRecord, change: Change) -> Queue:
        """What deletes the topic if this ends early; topic, control record, window."""
        if await self._topics.is_missing(record):
            change.check()
            await change.write(f"{QUEUE_KEY}{record.name}", msgspec.structs.replace(record, deleting=True, topic_id=BEGUN))
            reached("create.begun")
        return await self._make(record, change)

    async def _make(self, record: QueueRecord, change: Change) -> Queue:
        """Topic, control record, window."""
        record = await self._topics.make(record, change)
        reached("create.topic_made")
        await change.write(f"{QUEUE_KEY}{record.name}", record)
        reached("create.record_written")
        queue = self._catalog.queues[record.name]
        await asyncio.gather(*(self._open(queue, p) for p in range(record.partitions)), return_exceptions=True)
        return queue

    async def renew(self, record: QueueRecord, change: Change, *, made: bool) -> Queue:
        """A new life of a queue, over the topic as it is (`made`) or a new one."""
        if made:
            await self._topics.keep(record, change)
            queue = await self._records.write(record, change)
            await asyncio.gather(*(self._open(queue, p) for p in range(record.partitions)))
            return queue
        return await self._make(record, change)

    async def _open(self, queue: Queue, partition: int) -> None:
        starts = [(tag.id, tag.start_offsets[partition]) for tag in queue.tags]
        try:
            await self._upkeep.open(queue.units[partition], self._catalog.generation, starts, fifo=queue.record.fifo)
        except StateError as error:
            # A unit that does not serve is rebuilt (from nothing) by its first use.
            logger.info("action=open queue=%s partition=%d error=%s", queue.name, partition, error)
