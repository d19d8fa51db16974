"""Topics, offsets and groups: the requests that are neither an append nor a fetch.

Neighbours: `log` passes requests on, `faults` maps errors. This module must not know what a topic is for.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names are not marked as exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from engine.errors import LogUnavailable
from engine.log.faults import (
    MOVING,
    NO_LEADER,
    TIMED_OUT,
    UNKNOWN,
    UNKNOWN_PARTITION,
    client_logger,
    engine_error,
    error_of,
    note,
)
from engine.log.shapes import TopicSpec, Unit

LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]

K = TypeVar("K")
T = TypeVar("T")

_REQUEST_S = 10.0  # Bound of one request; a controller under load needs seconds for hundreds of topics.
_SETTLE_S = 15.0  # Bound for a partition to find its leader: 400 new partitions on one small broker took 1 s.
_RETRY_S = 0.01
_ALIVE_S = 2.0
_ASK_ALL = 20  # From so many topics on, one question about all is cheaper than one for each.
FAILURES = 5
_OLD_S = 5.0
_NO_OFFSET = -1  # Kafka's answer when no record is late enough.
# No leader found: what the client says of a missing partition and of a cluster that is away alike.
_PASSING = MOVING | UNKNOWN | {NO_LEADER}


class Admin:
    """Administrative requests, each bounded in time; LogUnavailable when the bound is passed. Safe for concurrent tasks."""

    def __init__(self, config: dict[str, Any], threads: ThreadPoolExecutor) -> None:
        self._config = {**config, "error_cb": note}
        self._threads = threads
        self._client: AdminClient | None = None
        self._made_at = 0.0
        self._failures = 0

    def start(self) -> None:
        """Makes the client; Kafka need not be there. Idempotent."""
        if self._client is None:
            self._client = AdminClient(self._config, logger=client_logger)
            self._made_at = time.monotonic()

    def stop(self) -> None:
        """Drops the client. Idempotent."""
        self._client = None

    @property
    def client(self) -> AdminClient:
        """The client. Raises LogUnavailable before `start` and after `stop`."""
        if self._client is None:
            raise LogUnavailable("the log is stopped")
        return self._client

    async def _in_thread(self, call: Callable[[], T]) -> T:
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except KafkaException as fault:
            self._failed()
            raise engine_error(error_of(fault)) from fault
        self._failures = 0
        return found

    def _failed(self) -> None:
        """As `read.FAILURES`: a client that does not find its broker again is replaced."""
        self._failures += 1
        if self._failures >= FAILURES and self._client is not None and time.monotonic() - self._made_at > _OLD_S:
            old, self._client, self._failures = self._client, None, 0
            self.start()
            self._threads.submit(lambda: old)  # its end may take a moment: not on the loop

    async def _settled(self, ask: Callable[[], Mapping[K, Future[Any]]]) -> tuple[dict[K, Any], dict[K, KafkaError]]:
        """The results and the errors by key of one batched request. One thread hop for all, not one per key."""
        return await self._in_thread(partial(_collect, ask))

    async def offsets(self, parts: Sequence[Unit], spec: OffsetSpec, *, wait_for_unknown: bool = False) -> dict[Unit, int]:
        """The offset that `spec` names, of each of `parts` that exists (or, waiting, comes to exist). -1 = none."""
        found: dict[Unit, int] = {}
        missing: Sequence[Unit] = list(parts)
        deadline = time.monotonic() + _SETTLE_S
        while missing:
            asked = {TopicPartition(topic, partition): spec for topic, partition in missing}
            results, errors = await self._settled(partial(self.client.list_offsets, asked, request_timeout=_REQUEST_S))
            faults = {(tp.topic, tp.partition): error for tp, error in errors.items()}
            for tp, info in results.items():
                if info.offset >= _NO_OFFSET:
                    found[tp.topic, tp.partition] = info.offset
                else:
                    # A broker that goes away in mid-request: the client reports success, and an offset that is none.
                    faults[tp.topic, tp.partition] = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
            missing = await self._in_thread(partial(self._to_repeat, faults, wait_for_unknown))
            if missing:
                if time.monotonic() > deadline:
                    raise engine_error(faults[missing[0]])
                await asyncio.sleep(_RETRY_S)
        return found

    def _to_repeat(self, faults: Mapping[Unit, KafkaError], wait_for_unknown: bool) -> list[Unit]:
        """The units worth another try; the others don't exist. Refreshes the client's memory, which it does not do itself.

        Blocks; for threads. Raises KafkaException for faults that a repeat does not heal.
        """
        for fault in faults.values():
            if fault.code() not in _PASSING:
                raise KafkaException(fault)
        known = self._known({topic for topic, _ in faults})
        return [unit for unit in faults if wait_for_unknown or unit in known]

    def _known(self, topics: Set[str]) -> set[Unit]:
        """The existing partitions of `topics`, asked anew. Blocks; for threads."""
        if len(topics) > _ASK_ALL:
            answers = [self.client.list_topics(timeout=_REQUEST_S)]
        else:
            answers = [self.client.list_topics(topic, _ALIVE_S) for topic in topics]
        found = {name: topic for answer in answers for name, topic in answer.topics.items() if name in topics}
        return {(name, partition) for name, topic in found.items() for partition in topic.partitions}

    async def offsets_at(self, parts: Sequence[Unit], at_ms: int) -> dict[Unit, int]:
        """See `Log.offsets_at`."""
        found = await self.offsets(parts, OffsetSpec.for_timestamp(at_ms))
        later = [unit for unit, offset in found.items() if offset < 0]
        return {**found, **await self.offsets(later, LATEST)} if later else found

    def end_of(self, unit: Unit) -> int | None:
        """The end offset of one partition, None while it has no leader. Blocks; for threads.

        Raises KafkaException if there is no such partition or no broker answers.
        """
        for _ in range(3):
            results, errors = _collect(partial(self.client.list_offsets, {TopicPartition(*unit): LATEST}, request_timeout=_REQUEST_S))
            for info in results.values():
                if info.offset > _NO_OFFSET:
                    return int(info.offset)
            for error in errors.values():
                if not self._to_repeat({unit: error}, wait_for_unknown=False):
                    raise KafkaException(KafkaError(UNKNOWN_PARTITION, f"no partition {unit[1]} of topic {unit[0]}"))
        return None

    async def create_topics(self, specs: Sequence[TopicSpec]) -> dict[str, str]:
        """See `Log.create_topics`."""
        if not specs:
            return {}
        topics = [NewTopic(s.name, s.partitions, s.replication_factor, config=s.config) for s in specs]
        ask = partial(self.client.create_topics, topics, request_timeout=_REQUEST_S, operation_timeout=_REQUEST_S)
        results, errors = await self._settled(ask)
        for error in errors.values():
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise engine_error(error)
        # Only when the leaders answer for their partitions do appends, fetches and offsets work at once.
        made = [(s.name, p) for s in specs if s.name in results for p in range(s.partitions)]
        await self.offsets(made, LATEST, wait_for_unknown=True)
        return {s.name: "created" if s.name in results else "exists" for s in specs}

    async def delete_topics(self, names: Sequence[str]) -> None:
        """See `Log.delete_topics`."""
        if names:
            ask = partial(self.client.delete_topics, list(names), request_timeout=_REQUEST_S, operation_timeout=_REQUEST_S)
            await self._all_but(ask, UNKNOWN)

    async def delete_records(self, offsets: Mapping[Unit, int]) -> None:
        """See `Log.delete_records`."""
        if offsets:
            parts = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
            await self._all_but(partial(self.client.delete_records, parts, request_timeout=_REQUEST_S), UNKNOWN)

    async def set_topic_config(self, topic: str, config: Mapping[str, str]) -> None:
        """See `Log.set_topic_config`."""
        entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        await self._all_but(partial(self.client.incremental_alter_configs, [resource], request_timeout=_REQUEST_S), frozenset())

    async def commit_group_offsets(self, group: str, offsets: Mapping[Unit, int]) -> None:
        """See `Log.commit_group_offsets`."""
        if not offsets:
            return
        parts = [TopicPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group, parts)]
        ask = partial(self.client.alter_consumer_group_offsets, request, request_timeout=_REQUEST_S)
        results, errors = await self._settled(ask)
        faults = [*errors.values(), *(p.error for r in results.values() for p in r.topic_partitions if p.error is not None)]
        for error in faults:
            if error.code() not in UNKNOWN:
                raise engine_error(error)

    async def delete_groups(self, groups: Sequence[str]) -> None:
        """See `Log.delete_groups`."""
        if groups:
            ask = partial(self.client.delete_consumer_groups, list(groups), request_timeout=_REQUEST_S)
            await self._all_but(ask, frozenset({KafkaError.GROUP_ID_NOT_FOUND}))

    async def topic_names(self, prefix: str) -> list[str]:
        """See `Log.topic_names`."""
        metadata = await self._in_thread(partial(self.client.list_topics, timeout=_REQUEST_S))
        return sorted(name for name in metadata.topics if name.startswith(prefix))

    async def partition_count(self, topic: str) -> int | None:
        """See `Log.partition_count`."""
        metadata = await self._in_thread(partial(self.client.list_topics, topic, _REQUEST_S))
        found = metadata.topics.get(topic)
        if found is None or (found.error is not None and found.error.code() in UNKNOWN):
            return None
        if found.error is not None and found.error.code() not in MOVING:
            raise engine_error(found.error)
        return len(found.partitions)

    async def alive(self) -> bool:
        """See `Log.alive`."""
        if self._client is None:
            return False
        client = self._client
        _, errors = await self._settled(lambda: {"": client.describe_cluster(request_timeout=_ALIVE_S)})
        return not errors

    async def _all_but(self, ask: Callable[[], Mapping[Any, Future[Any]]], harmless: frozenset[int]) -> None:
        _, errors = await self._settled(ask)
        for error in errors.values():
            if error.code() not in harmless:
                raise engine_error(error)


def _collect(ask: Callable[[], Mapping[K, Future[Any]]]) -> tuple[dict[K, Any], dict[K, KafkaError]]:
    futures = ask()
    concurrent.futures.wait(futures.values(), timeout=_REQUEST_S + 2 * _ALIVE_S)
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
