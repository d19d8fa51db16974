"""Offsets of partitions: their ends, their starts, and the first after a time; and whether Kafka
answers at all.

They are asked for as a consumer: an admin request that times out while the broker comes back ends
the process (assertion of librdkafka 2.16 in rd_kafka_enq_once_del_source_return), and these are
asked for all the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from engine.errors import LogUnavailable
from engine.log.kafka_errors import (
    BROKER_GONE,
    MOVING,
    NO_LEADER,
    UNKNOWN,
    UNKNOWN_PARTITION,
    client_logger,
    engine_error,
    error_of,
    note,
)
from engine.log.reader import COMMITTED, READ_CONFIG
from engine.log.shapes import TopicPartition
from runtime.background import Background

# Times that the protocol's ListOffsets takes for the ends of a partition.
LATEST = -1
EARLIEST = -2

T = TypeVar("T")

_REQUEST_S = 10.0
_SETTLE_S = 15.0  # Bound for a partition to find its leader: 400 new partitions on one small broker took 1 s.
_RETRY_S = 0.01
_ALIVE_S = 2.0
_ASK_ALL = 20  # From so many topics on, one question about all is cheaper than one for each.
# A client that fails may not find its broker again (see `read`): one that is not new makes room for
# another.
_OLD_S = 5.0
_NO_OFFSET = -1  # Kafka's answer when no record is late enough.
# No leader found: what the client says of a missing partition and of a cluster that is away alike.
# A broker gone: the client let go of one while it asked, and asks another the next time.
_PASSING = MOVING | UNKNOWN | {NO_LEADER, BROKER_GONE}


class Offsets:
    """Questions about offsets, each bounded in time; LogUnavailable when the bound is passed. Safe
    for concurrent tasks.
    """

    def __init__(self, config: dict[str, Any], threads: ThreadPoolExecutor, *, committed: bool = False) -> None:
        """`committed`: the end is the first record of a transaction of Kafka that has not ended."""
        self._config = {
            **config,
            "error_cb": note,
            "group.id": "leaseway-offsets",
            "enable.auto.commit": False,
            # The end is what readers read up to.
            "isolation.level": COMMITTED if committed else READ_CONFIG["isolation.level"],
        }
        self._threads = threads
        self._asker: Consumer | None = None
        self._made_at = 0.0
        self._background = Background()

    def start(self) -> None:
        """Makes the client; Kafka need not be there. Idempotent."""
        if self._asker is None:
            self._asker = Consumer(self._config, logger=client_logger)
            self._made_at = time.monotonic()

    def stop(self) -> None:
        """Drops the client. Idempotent."""
        self._asker = None

    @property
    def asker(self) -> Consumer:
        """The client. Raises LogUnavailable before `start` and after `stop`."""
        if self._asker is None:
            raise LogUnavailable("the log is stopped")
        return self._asker

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """Raises LogUnavailable before `start` and after `stop`."""
        if self._asker is None:
            raise LogUnavailable("the log is stopped")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except KafkaException as fault:
            self._failed()
            raise engine_error(error_of(fault)) from fault

    def _failed(self) -> None:
        if self._asker is not None and time.monotonic() - self._made_at > _OLD_S:
            old = [self._asker]
            self._asker = None
            self.start()
            self._background.start(self._drop(old), "drop_client")

    async def _drop(self, old: list[Consumer]) -> None:
        """The end of a client may take a moment: not on the loop."""
        await asyncio.get_running_loop().run_in_executor(self._threads, old.clear)

    async def at(
        self, parts: Sequence[TopicPartition], at_ms: int, *, wait_for_unknown: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset at a time (epoch ms, LATEST, EARLIEST), of each of `parts` that exists (or,
        waiting, comes to exist). -1 = none.
        """
        found: dict[TopicPartition, int] = {}
        missing: Sequence[TopicPartition] = list(parts)
        deadline = time.monotonic() + _SETTLE_S
        ask = partial(self._patiently, deadline) if wait_for_unknown else self._in_thread
        if wait_for_unknown and parts:
            await ask(partial(self._known, {topic for topic, _ in parts}))
        while missing:
            some, faults = await ask(partial(self._ask, missing, at_ms))
            found.update(some)
            missing = await ask(partial(self._to_repeat, faults, wait_for_unknown))
            if missing:
                if time.monotonic() > deadline:
                    raise engine_error(faults[missing[0]])
                await asyncio.sleep(_RETRY_S)
        return found

    async def _patiently(self, deadline: float, call: Callable[[], T]) -> T:
        """As `_in_thread`, for what was made a moment ago: its broker is busy, and may answer no
        question of two seconds. Raises LogUnavailable after `deadline`.
        """
        while True:
            try:
                return await self._in_thread(call)
            except LogUnavailable as error:
                if not error.away or self._asker is None or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_RETRY_S)

    def _ask(
        self, parts: Sequence[TopicPartition], at_ms: int
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, KafkaError]]:
        """One request for all: offsets and faults by unit. Blocks; for threads. Raises
        KafkaException when no broker answers.
        """
        found: dict[TopicPartition, int] = {}
        faults: dict[TopicPartition, KafkaError] = {}
        asked = [ClientPartition(topic, partition, at_ms) for topic, partition in parts]
        try:
            rows = self.asker.offsets_for_times(asked, timeout=_REQUEST_S) if asked else []
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

    def _to_repeat(self, faults: Mapping[TopicPartition, KafkaError], wait_for_unknown: bool) -> list[TopicPartition]:
        """The units worth another try; the others don't exist. Refreshes the client's memory, which
        it does not do itself.

        Blocks; for threads. Raises KafkaException for faults that a repeat does not heal.
        """
        for fault in faults.values():
            if fault.code() not in _PASSING:
                raise KafkaException(fault)
        known = self._known({topic for topic, _ in faults})
        return [unit for unit in faults if wait_for_unknown or unit in known]

    def _known(self, topics: Set[str]) -> set[TopicPartition]:
        """The existing partitions of `topics`, asked anew. Blocks; for threads."""
        if len(topics) > _ASK_ALL:
            answers = [self.asker.list_topics(timeout=_REQUEST_S)]
        else:
            answers = [self.asker.list_topics(topic, _ALIVE_S) for topic in topics]
        found = {name: topic for answer in answers for name, topic in answer.topics.items() if name in topics}
        return {(name, partition) for name, topic in found.items() for partition in topic.partitions}

    async def at_time(self, parts: Sequence[TopicPartition], at_ms: int) -> dict[TopicPartition, int]:
        """See `Log.offsets_at`."""
        found = await self.at(parts, max(0, at_ms))
        later = [unit for unit, offset in found.items() if offset < 0]
        return {**found, **await self.at(later, LATEST)} if later else found

    def end_of(self, unit: TopicPartition) -> int | None:
        """The end offset of one partition, None while it has no leader. Blocks; for threads.

        Raises KafkaException if there is no such partition or no broker answers.
        """
        for _ in range(3):
            found, faults = self._ask([unit], LATEST)
            if unit in found:
                return found[unit]
            if faults and not self._to_repeat(faults, wait_for_unknown=False):
                raise KafkaException(KafkaError(UNKNOWN_PARTITION, f"no partition {unit[1]} of topic {unit[0]}"))
        return None

    async def answered(self, within_s: float = _REQUEST_S) -> None:
        """Returns when a broker answers. Raises LogUnavailable."""
        # Nobody has this topic, and a consumer's question makes none.
        await self._in_thread(partial(self.asker.list_topics, "leaseway-alive", within_s))

    async def alive(self) -> bool:
        """See `Log.alive`."""
        try:
            await self.answered(_ALIVE_S)
        except LogUnavailable:
            return False
        return True
