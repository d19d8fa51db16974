"""The topic of a queue: made with the settings that the queue needs, or taken over as it is."""

from __future__ import annotations

import asyncio

import msgspec

from engine.catalog.catalog import Change
from engine.errors import LogUnavailable, QueueExists
from engine.log import Log, TopicSpec
from engine.settings import EngineSettings
from engine.window.topic_retention import FOR_EVER, TopicRetention, kept_for_ms
from schemas.records import QueueRecord
from schemas.topics import queue_topic


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
                    f"topic {spec.name} exists with {count} partitions and records; create the queue with partitions {count}",
                    field="partitions",
                    limit=count,
                    given=spec.partitions,
                )
            change.check()
            await log.set_topic_config(spec.name, await self._adopted(spec.name, record))
            starts = await log.start_offsets([(spec.name, p) for p in range(spec.partitions)])
            first = [starts.get((spec.name, p), 0) for p in range(spec.partitions)]
            return msgspec.structs.replace(record, tags=[msgspec.structs.replace(tag, start_offsets=first) for tag in record.tags])
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
