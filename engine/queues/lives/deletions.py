"""Deletes queues: control record (deleting), topic, keys, tombstone. What ends in between is
finished later.
"""

from __future__ import annotations

import logging

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.errors import EngineError
from engine.log import Log
from engine.queues.lives.making import BEGUN
from engine.queues.lives.topics import QueueTopics
from engine.queues.records import QueueRecords
from engine.rules.queue import Queue
from runtime.failpoints import reached
from schemas.records import QueueRecord
from schemas.topics import QUEUE_KEY, group_name
from state.upkeep import UpkeepScripts

logger = logging.getLogger(__name__)


class Deletions:
    """Deletions of queues, one after the other for each, whoever makes them."""

    def __init__(self, prefix: str, log: Log, upkeep: UpkeepScripts, catalog: Catalog, topics: QueueTopics, records: QueueRecords) -> None:
        self._prefix = prefix
        self._log = log
        self._upkeep = upkeep
        self._catalog = catalog
        self._topics = topics
        self._records = records

    async def delete(self, name: str) -> None:
        """Deletes queue, topic and state; nothing can be got back. Sources of a dead-letter queue
        lose their policy's effect.
        """
        async with self._catalog.change(name) as change:
            record = msgspec.structs.replace(self._records.known(name).record, deleting=True)
            await change.write(f"{QUEUE_KEY}{name}", record)
            reached("delete.record_written")
            await self.finish(record, change)

    async def finish(self, record: QueueRecord, change: Change) -> None:
        """Deletes what a queue that is being deleted still has."""
        queue = Queue(record, self._prefix)
        # After a creation that ended early the topic may be a native producer's own by now.
        if record.topic_id != BEGUN or await self._topics.is_empty(record):
            change.check()
            await self._log.delete_topics([queue.topic])
        reached("delete.topic_deleted")
        await self._upkeep.forget(queue.units, queue.tag_ids)
        await self._log.delete_groups([group_name(self._prefix, record.name, tag.name) for tag in record.tags])
        await change.write(f"{QUEUE_KEY}{record.name}", None)

    async def finish_deletions(self) -> None:
        """Deletions that a crash, or a part that was away, has cut off. What can't be finished now
        is left for the next time.
        """
        for name in list(self._catalog.unfinished):
            try:
                async with self._catalog.change(name) as change:
                    record = self._catalog.unfinished.get(name)
                    if record is not None:
                        await self.finish(record, change)
            except EngineError as error:
                logger.debug("action=finish_deletion queue=%s error=%s", name, error)
