"""The wheel: pointers to deferred messages, in a Kafka topic, by the hour in which they are due.

An hour is a slot; it has its records in the partition of its number, modulo SLOTS. A pointer says
where a message is and when it is due, and nothing else: whether the message is still deferred only
Redis says (include/far.lua). So a pointer may be there twice, or too often, and harms nobody; only
one that is missing would. Slots that are read stay in memory (`slot.py`) for as long as somebody
asks for them. The topic is made when something is deferred for the first time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from engine.errors import LogUnavailable
from engine.loading.slot import Pointer, Slot
from engine.log import Log, Record, TopicPartition, TopicSpec
from engine.settings import EngineSettings
from runtime.counters import Counters
from schemas.records import DelayRecord
from schemas.records.settings import DAY_MS, MAX_DELAY_MS, MAX_RETENTION_MS
from schemas.topics import delay_topic
from schemas.vocabulary import SLOT_MS
from schemas.wire import UndecodableRecord, decode, encode
from state.keys import Unit

logger = logging.getLogger(__name__)

SLOTS = 24
# A pointer is needed until its message is due, and for as long afterwards as nobody uses the queue.
KEEP_MS = MAX_DELAY_MS + MAX_RETENTION_MS + DAY_MS
# Slots that nobody has asked for since are forgotten.
IDLE_S = 120.0
PIECE = 5_000
_FETCH_RECORDS, _FETCH_BYTES = 2_000, 8_000_000


class Wheel:
    """The wheel of all queues. Any number of tasks and workers may append and read."""

    def __init__(self, settings: EngineSettings, log: Log, counters: Counters) -> None:
        self._settings = settings
        self._log = log
        self._counters = counters
        self._topic = delay_topic(settings.topic_prefix)
        self._making = asyncio.Lock()
        self._is_made = False
        self._slots: dict[int, Slot] = {}
        self._reading = [asyncio.Lock() for _ in range(SLOTS)]

    async def _make(self) -> None:
        async with self._making:
            if self._is_made:
                return
            s = self._settings
            config = {"message.timestamp.type": "LogAppendTime", "retention.bytes": "-1", "retention.ms": str(KEEP_MS)}
            if s.replication_factor >= 3:
                config["min.insync.replicas"] = "2"
            if s.flush_messages:
                config["flush.messages"] = str(s.flush_messages)
            await self._log.create_topics([TopicSpec(self._topic, SLOTS, s.replication_factor, config)])
            self._is_made = True

    async def append(self, unit: Unit, pointers: Sequence[Pointer]) -> None:
        """Returns when Kafka has these. Raises LogUnavailable: some may be there, which is no
        harm.
        """
        await self._make()
        slots: dict[int, list[Pointer]] = {}
        for pointer in pointers:
            slots.setdefault(pointer[0] // SLOT_MS, []).append(pointer)
        appends = []
        for slot, rows in slots.items():
            for at in range(0, len(rows), PIECE):
                some = rows[at : at + PIECE]
                record = DelayRecord(
                    unit.incarnation, unit.partition, slot, [offset for _, offset in some], [due for due, _ in some]
                )
                appends.append(self._log.append(self._topic, slot % SLOTS, encode(record)))
        try:
            await asyncio.gather(*appends)
        except LogUnavailable:
            self._is_made = False  # somebody may have deleted it
            raise
        self._counters.count("delay_pointers_total", len(pointers))

    async def read(self, numbers: Iterable[int]) -> list[Slot]:
        """These slots, with all that Kafka had when this was called. Raises LogUnavailable.

        Each partition is read once for all slots in it that are new.
        """
        slots = {number: self._slots.setdefault(number, Slot()) for number in numbers}
        self._forget_idle(slots)
        places: dict[int, dict[int, Slot]] = {}
        for number, slot in slots.items():
            places.setdefault(number % SLOTS, {})[number] = slot
        try:
            await self._make()
            for place, some in places.items():
                async with self._reading[place]:
                    await self._read((self._topic, place), some)
        except LogUnavailable:
            self._is_made = False  # somebody may have deleted it
            raise
        return list(slots.values())

    def _forget_idle(self, asked: Mapping[int, Slot]) -> None:
        now = asyncio.get_running_loop().time()
        for slot in asked.values():
            slot.note_asked(now)
        self._slots = {number: slot for number, slot in self._slots.items() if now - slot.asked_at <= IDLE_S}

    async def _read(self, part: TopicPartition, slots: Mapping[int, Slot]) -> None:
        end = (await self._log.end_offsets([part])).get(part)
        if end is None:
            raise LogUnavailable(f"the end of {self._topic} can't be read")
        fresh = [number for number, slot in slots.items() if not 0 <= slot.next_offset <= end]
        if fresh:  # or of another topic of that name
            since_ms = min(fresh) * SLOT_MS - MAX_DELAY_MS - DAY_MS
            since = (await self._log.offsets_at([part], since_ms)).get(part, 0)
            for number in fresh:
                slots[number].begin_at(since)
        at = min(slot.next_offset for slot in slots.values())
        while at < end:
            chunk = await self._log.fetch(*part, at, _FETCH_RECORDS, _FETCH_BYTES)
            for record in chunk.records:
                self._take(record, slots)
                # A record may have 5,000 pointers, which takes milliseconds, and a chunk hundreds
                # of records: others have their turn in between.
                await asyncio.sleep(0)
            if chunk.next_offset <= at:
                raise LogUnavailable(f"{self._topic} can't be read beyond offset {at}")
            at = chunk.next_offset
            for slot in slots.values():
                slot.note_read(at)

    def _take(self, record: Record, slots: Mapping[int, Slot]) -> None:
        try:
            value = decode(record.value) if record.value else None
        except UndecodableRecord as error:
            self._counters.count("undecodable_records_total")
            logger.error(
                "action=skip topic=%s partition=%d offset=%d error=%s",
                record.topic,
                record.partition,
                record.offset,
                error,
            )
            return
        if (
            isinstance(value, DelayRecord)
            and (slot := slots.get(value.slot)) is not None
            and record.offset >= slot.next_offset
        ):
            slot.add(value)
