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

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names are not marked as exported
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
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

# Times that the protocol's ListOffsets takes for the ends of a partition.
LATEST = -1
EARLIEST = -2

K = TypeVar("K")
T = TypeVar("T")

_REQUEST_S = 10.0  # Bound of one request; a controller under load needs seconds for hundreds of topics.
_UNBOUNDED_S = 3600.0
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
        self._asker: Consumer | None = None
        self._made_at = 0.0
        self._failures = 0

    def start(self) -> None:
        """Makes the client; Kafka need not be there. Idempotent."""
        if self._client is None:
            self._client = AdminClient(self._config, logger=client_logger)
            # Offsets are asked for as a consumer: an admin request that times out while the broker comes back ends the process
            # (assertion of librdkafka 2.16 in rd_kafka_enq_once_del_source_return), and these are asked for all the time.
            self._asker = Consumer({**self._config, "group.id": "leaseway-offsets", "enable.auto.commit": False}, logger=client_logger)
            self._made_at = time.monotonic()

    def stop(self) -> None:
        """Drops the clients. Idempotent."""
        self._client = self._asker = None

    @property
    def client(self) -> AdminClient:
        """The client. Raises LogUnavailable before `start` and after `stop`."""
        if self._client is None:
            raise LogUnavailable("the log is stopped")
        return self._client

    @property
    def asker(self) -> Consumer:
        """As `client`, for offsets."""
        if self._asker is None:
            raise LogUnavailable("the log is stopped")
        return self._asker

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
            old = [self._client, self._asker]
            self._client, self._asker, self._failures = None, None, 0
            self.start()
            self._threads.submit(old.clear)  # their end may take a moment: not on the loop

    async def _settled(self, ask: Callable[[], Mapping[K, Future[Any]]]) -> tuple[dict[K, Any], dict[K, KafkaError]]:
        """The results and the errors by key of one batched request. One thread hop for all, not one per key."""
        return await self._in_thread(partial(_collect, ask))

    async def offsets(self, parts: Sequence[Unit], at_ms: int, *, wait_for_unknown: bool = False) -> dict[Unit, int]:
        """The offset at a time (epoch ms, LATEST, EARLIEST), of each of `parts` that exists (or, waiting, comes to exist). -1 = none."""
        found: dict[Unit, int] = {}
        missing: Sequence[Unit] = list(parts)
        deadline = time.monotonic() + _SETTLE_S
        if wait_for_unknown and parts:
            await self._in_thread(partial(self._known, {topic for topic, _ in parts}))
        while missing:
            some, faults = await self._in_thread(partial(self._ask, self.asker, missing, at_ms, _REQUEST_S))
            found.update(some)
            missing = await self._in_thread(partial(self._to_repeat, faults, wait_for_unknown))
            if missing:
                if time.monotonic() > deadline:
                    raise engine_error(faults[missing[0]])
                await asyncio.sleep(_RETRY_S)
        return found

    def _ask(self, asker: Consumer, parts: Sequence[Unit], at_ms: int, timeout_s: float) -> tuple[dict[Unit, int], dict[Unit, KafkaError]]:
        """One request for all: offsets and faults by unit. Blocks; for threads. Raises KafkaException when no broker answers."""
        found: dict[Unit, int] = {}
        faults: dict[Unit, KafkaError] = {}
        asked = [TopicPartition(topic, partition, at_ms) for topic, partition in parts]
        try:
            rows = asker.offsets_for_times(asked, timeout=timeout_s) if asked else []
        except KafkaException as fault:
            if error_of(fault).code() not in _PASSING:
                raise
            return {}, dict.fromkeys(parts, error_of(fault))
        for row in rows:
            unit = (row.topic, row.partition)
            if row.error is not None:
                faults[unit] = row.error
            elif row.offset < 0 and at_ms < 0:
                faults[unit] = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
            else:
                found[unit] = max(row.offset, _NO_OFFSET)
        return found, faults

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
            answers = [self.asker.list_topics(timeout=_REQUEST_S)]
        else:
            answers = [self.asker.list_topics(topic, _ALIVE_S) for topic in topics]
        found = {name: topic for answer in answers for name, topic in answer.topics.items() if name in topics}
        return {(name, partition) for name, topic in found.items() for partition in topic.partitions}

    async def offsets_at(self, parts: Sequence[Unit], at_ms: int) -> dict[Unit, int]:
        """See `Log.offsets_at`."""
        found = await self.offsets(parts, max(0, at_ms))
        later = [unit for unit, offset in found.items() if offset < 0]
        return {**found, **await self.offsets(later, LATEST)} if later else found

    def end_of(self, unit: Unit) -> int | None:
        """The end offset of one partition, None while it has no leader. Blocks; for threads.

        Raises KafkaException if there is no such partition or no broker answers.
        """
        for _ in range(3):
            found, faults = self._ask(self.asker, [unit], LATEST, _REQUEST_S)
            if unit in found:
                return found[unit]
            if faults and not self._to_repeat(faults, wait_for_unknown=False):
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
        # Asked for every few seconds, and harmless if it is done late: never timed out by the client (see `start`), only by us.
        ask = partial(self.client.alter_consumer_group_offsets, request, request_timeout=_UNBOUNDED_S)
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

    async def topic_id(self, topic: str) -> str | None:
        """See `Log.topic_id`."""
        ask = partial(self.client.describe_topics, TopicCollection([topic]), request_timeout=_REQUEST_S)
        found, errors = await self._settled(ask)
        for error in errors.values():
            if error.code() not in UNKNOWN:
                raise engine_error(error)
        return str(found[topic].topic_id) if found else None

    async def alive(self) -> bool:
        """See `Log.alive`."""
        try:
            # As a consumer, as `_ask`: nobody has this topic, and nobody makes it.
            await self._in_thread(partial(self.asker.list_topics, "leaseway-alive", _ALIVE_S))
        except LogUnavailable:
            return False
        return True

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
