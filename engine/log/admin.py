"""Topics and groups: the requests that make, change and end something.

Each has a client of its own (6 ms): one whose broker was fenced while it stood still gets metadata
without brokers, and may never find its broker again (issue 5301 of librdkafka; seen with 2.16).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names are not marked as exported
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from engine.errors import LogUnavailable
from engine.log.kafka_errors import MOVING, TIMED_OUT, UNKNOWN, client_logger, engine_error, error_of, note
from engine.log.offsets import LATEST, Offsets
from engine.log.shapes import TopicPartition, TopicSpec

K = TypeVar("K")
T = TypeVar("T")
_Ask: TypeAlias = Callable[[AdminClient], Mapping[K, "Future[Any]"]]

# How long an answer is waited for; a controller under load needs seconds for hundreds of topics.
_REQUEST_S = 10.0
# We wait, not the client: when its own time-out and the answer meet, as in a process that was
# stopped for a while, an assertion of librdkafka ends the process (seen with 2.16, delete_groups;
# its issue 4605).
_UNBOUNDED_S = 3600.0


class Admin:
    """Administrative requests, each bounded in time; LogUnavailable when the bound is passed. Safe
    for concurrent tasks.
    """

    def __init__(self, config: dict[str, Any], threads: ThreadPoolExecutor, offsets: Offsets) -> None:
        self._config = {**config, "error_cb": note}
        self._threads = threads
        self._offsets = offsets
        self._started = False
        self._committer: AdminClient | None = None

    def start(self) -> None:
        """Kafka need not be there. Idempotent."""
        self._started = True

    def stop(self) -> None:
        """Drops the client. Idempotent."""
        self._started, self._committer = False, None

    def _client(self) -> AdminClient:
        return AdminClient(self._config, logger=client_logger)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """Raises LogUnavailable before `start` and after `stop`."""
        if not self._started:
            raise LogUnavailable("the log is stopped")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except KafkaException as fault:
            raise engine_error(error_of(fault)) from fault

    async def _settled(
        self, ask: _Ask[K], client: AdminClient | None = None
    ) -> tuple[dict[K, Any], dict[K, KafkaError]]:
        """The results and the errors by key of one batched request. One thread hop for all, not one
        per key.
        """
        return await self._in_thread(partial(self._collect, ask, client))

    def _collect(self, ask: _Ask[K], client: AdminClient | None) -> tuple[dict[K, Any], dict[K, KafkaError]]:
        """Blocks; for threads: a client is made and ended here, and either may take a moment."""
        client = client or self._client()
        futures = ask(client)
        concurrent.futures.wait(futures.values(), timeout=_REQUEST_S)
        results: dict[K, Any] = {}
        errors: dict[K, KafkaError] = {}
        for key, future in futures.items():
            try:
                results[key] = future.result(timeout=0)
            except KafkaException as fault:
                errors[key] = error_of(fault)
            except TimeoutError:
                errors[key] = KafkaError(TIMED_OUT)
        return results, errors

    async def _metadata(self, *topic: str) -> ClusterMetadata:
        return await self._in_thread(lambda: self._client().list_topics(*topic, timeout=_REQUEST_S))

    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        """See `Log.create_topics`."""
        if not specs:
            return {}
        topics = [NewTopic(s.name, s.partitions, s.replication_factor, config=s.config) for s in specs]
        results, errors = await self._settled(
            lambda client: client.create_topics(topics, request_timeout=_UNBOUNDED_S, operation_timeout=_REQUEST_S)
        )
        for error in errors.values():
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise engine_error(error)
        # Only when the leaders answer for their partitions do appends, fetches and offsets work at
        # once. One that is there may have been made this moment, by another worker that starts too.
        parts = [(s.name, p) for s in specs for p in range(s.partitions if s.name in results else 1)]
        await self._offsets.at(parts, LATEST, wait_for_unknown=True)
        return {s.name: "created" if s.name in results else "exists" for s in specs}

    async def delete_topics(self, names: Sequence[str]) -> None:
        """See `Log.delete_topics`."""
        if names:
            bounds = {"request_timeout": _UNBOUNDED_S, "operation_timeout": _REQUEST_S}
            await self._all_but(lambda client: client.delete_topics(list(names), **bounds), UNKNOWN)

    async def delete_records(self, offsets: Mapping[TopicPartition, int]) -> None:
        """See `Log.delete_records`."""
        if offsets:
            parts = [ClientPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
            await self._all_but(lambda client: client.delete_records(parts, request_timeout=_UNBOUNDED_S), UNKNOWN)

    async def set_topic_config(self, topic: str, config: Mapping[str, str]) -> None:
        """See `Log.set_topic_config`."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        await self._all_but(
            lambda client: client.incremental_alter_configs([resource], request_timeout=_UNBOUNDED_S), frozenset()
        )

    async def topic_config(self, topic: str) -> dict[str, str]:
        """See `Log.topic_config`."""
        asked = [ConfigResource(ResourceType.TOPIC, topic)]
        found, errors = await self._settled(lambda client: client.describe_configs(asked, request_timeout=_UNBOUNDED_S))
        for error in errors.values():
            raise engine_error(error)
        return {name: entry.value for entries in found.values() for name, entry in entries.items()}

    async def commit_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """See `Log.commit_group_offsets`."""
        if not offsets:
            return
        parts = [ClientPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, parts)]
        # Asked for every few seconds, and harmless if it is done late: one client for all.
        if self._committer is None:
            self._committer = await self._in_thread(self._client)
        results, errors = await self._settled(
            lambda client: client.alter_consumer_group_offsets(request, request_timeout=_UNBOUNDED_S), self._committer
        )
        if any(error.code() == TIMED_OUT for error in errors.values()):
            old, self._committer = [self._committer], None
            await self._in_thread(old.clear)  # its end may take a moment: not on the loop
        faults = [
            *errors.values(),
            *(p.error for r in results.values() for p in r.topic_partitions if p.error is not None),
        ]
        for error in faults:
            if error.code() not in UNKNOWN:
                raise engine_error(error)

    async def delete_groups(self, groups: Sequence[str]) -> None:
        """See `Log.delete_groups`."""
        if groups:
            harmless = frozenset({KafkaError.GROUP_ID_NOT_FOUND})
            await self._all_but(
                lambda client: client.delete_consumer_groups(list(groups), request_timeout=_UNBOUNDED_S), harmless
            )

    async def topic_names(self, prefix: str) -> list[str]:
        """See `Log.topic_names`."""
        metadata = await self._metadata()
        return sorted(name for name in metadata.topics if name.startswith(prefix))

    async def partition_count(self, topic: str) -> int | None:
        """See `Log.partition_count`."""
        metadata = await self._metadata(topic)
        found = metadata.topics.get(topic)
        if found is None or (found.error is not None and found.error.code() in UNKNOWN):
            return None
        if found.error is not None and found.error.code() not in MOVING:
            raise engine_error(found.error)
        return len(found.partitions)

    async def topic_id(self, topic: str) -> str | None:
        """See `Log.topic_id`."""
        asked = TopicCollection([topic])
        found, errors = await self._settled(lambda client: client.describe_topics(asked, request_timeout=_UNBOUNDED_S))
        for error in errors.values():
            if error.code() not in UNKNOWN:
                raise engine_error(error)
        return str(found[topic].topic_id) if found else None

    async def _all_but(self, ask: _Ask[Any], harmless: frozenset[int]) -> None:
        _, errors = await self._settled(ask)
        for error in errors.values():
            if error.code() not in harmless:
                raise engine_error(error)
