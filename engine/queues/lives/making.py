"""Makes and deletes what a queue consists of: topic, control record, window.

Order of a creation: control record (deleting), topic, control record, window. Whatever ends in
between leaves a deletion that `alarms.py` has finished, so a creation that failed leaves no topic.
Order of a deletion: control record (deleting), topic, keys, tombstone.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec

from engine.catalog.catalog import Catalog, Change
from engine.errors import EngineError, LogUnavailable, QueueExists
from engine.log import Log, TopicSpec
from engine.queues.records import QueueRecords
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from engine.window.topic_retention import FOR_EVER, TopicRetention, kept_for_ms
from runtime.failpoints import reached
from schemas.records import QueueRecord
from schemas.topics import QUEUE_KEY, group_name, queue_topic
from state.errors import StateError
from state.upkeep import UpkeepScripts


class QueueTopics:
    """Makes topics of queues. Each step that can't be refused later checks the right to change the
    queue first.
    """

    def __init__(self, settings: EngineSettings, log: Log, topic_retention: TopicRetention) -> None:
        self._settings = settings
        self._log = log
        self._topic_retention = topic_retention

    async def is_missing(self, record: QueueRecord) -> bool:
        """Whether Kafka has no topic for the queue."""
        return await self._log.partition_count(queue_topic(self._settings.topic_prefix, record.name)) is None

    async def is_empty(self, record: QueueRecord) -> bool:
        """Whether the topic of the queue never had a record, or is missing. Raises LogUnavailable
        when Kafka does not tell.
        """
        topic = queue_topic(self._settings.topic_prefix, record.name)
        parts = [(topic, p) for p in range(await self._log.partition_count(topic) or 0)]
        ends = await self._log.end_offsets(parts)
        if any(part not in ends for part in parts):
            raise LogUnavailable(f"the ends of {topic} can't be read")
        return not any(ends.values())

    async def make(self, record: QueueRecord, change: Change) -> QueueRecord:
        """Makes the topic; the record with its id and, of a topic that was there, its first
        offsets. Raises QueueExists, LogUnavailable.
        """
        topic = queue_topic(self._settings.topic_prefix, record.name)
        spec = TopicSpec(topic, record.partitions, self._settings.replication_factor, self._config(record))
        change.check()
        made = await self._log.create_topics([spec])
        if made.get(topic) == "exists":
            record = await self._adopt(spec, record, change)
        return msgspec.structs.replace(record, topic_id=await self._topic_id(topic))

    async def keep(self, record: QueueRecord, change: Change) -> None:
        """Gives a topic that has records the settings of the queue."""
        topic = queue_topic(self._settings.topic_prefix, record.name)
        change.check()
        await self._log.set_topic_config(topic, await self._adopted(topic, record))

    async def _topic_id(self, topic: str) -> str:
        """Of a topic that was just made: brokers hear of it a moment later. "" = not known."""
        for _ in range(20):
            if (found := await self._log.topic_id(topic)) is not None:
                return found
            await asyncio.sleep(0.05)
        return ""

    async def _adopt(self, spec: TopicSpec, record: QueueRecord, change: Change) -> QueueRecord:
        """A topic without a queue: left by a creation that died (empty: made anew), or a native
        producer's own (kept).

        Returns the record with the first offsets that the topic still has: what was deleted before
        is nobody's loss.
        """
        log = self._log
        count = await log.partition_count(spec.name)
        ends = await log.end_offsets([(spec.name, p) for p in range(count or 0)])
        if any(ends.values()):
            if count != spec.partitions:
                raise QueueExists(
                    f"topic {spec.name} exists with {count} partitions and records; create the queue with partitions "
                    f"{count}",
                    field="partitions",
                    limit=count,
                    given=spec.partitions,
                )
            change.check()
            await log.set_topic_config(spec.name, await self._adopted(spec.name, record))
            starts = await log.start_offsets([(spec.name, p) for p in range(spec.partitions)])
            first = [starts.get((spec.name, p), 0) for p in range(spec.partitions)]
            return msgspec.structs.replace(
                record, tags=[msgspec.structs.replace(tag, start_offsets=first) for tag in record.tags]
            )
        change.check()
        await log.delete_topics([spec.name])
        for _ in range(50):
            if (await log.create_topics([spec])).get(spec.name) == "created":
                break
            await asyncio.sleep(0.1)
        return record

    async def _adopted(self, topic: str, record: QueueRecord) -> dict[str, str]:
        """The settings of a topic that has records: it keeps them for no shorter time than it
        did.
        """
        config, kept = self._config(record), await self._topic_retention.kept_ms(topic)
        shorter = kept != FOR_EVER and kept < int(config["retention.ms"])
        return config if shorter or record.keep_unacked else {**config, "retention.ms": str(kept)}

    def _config(self, record: QueueRecord) -> dict[str, str]:
        s = self._settings
        config = {
            "cleanup.policy": "delete",
            "retention.ms": str(kept_for_ms(record)),
            "retention.bytes": "-1",
            "message.timestamp.type": "LogAppendTime",
        }
        if s.flush_messages:
            config["flush.messages"] = str(s.flush_messages)
        if s.replication_factor >= 3:
            config["min.insync.replicas"] = "2"
        return config


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
            await change.write(
                f"{QUEUE_KEY}{record.name}", msgspec.structs.replace(record, deleting=True, topic_id=BEGUN)
            )
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


class Deletions:
    """Deletions of queues, one after the other for each, whoever makes them."""

    def __init__(
        self, prefix: str, log: Log, upkeep: UpkeepScripts, catalog: Catalog, topics: QueueTopics, records: QueueRecords
    ) -> None:
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
