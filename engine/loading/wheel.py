"""The wheel: pointers to deferred messages, in a Kafka topic, by the hour in which they are due.

An hour is a slot; it has its records in the partition of its number, modulo SLOTS. A pointer says
where a message is and when it is due, and nothing else: whether the message is still deferred only
Redis says (include/far.lua). So a pointer may be there twice, or too often, and harms nobody; only
one that is missing would. Slots that are read stay in memory for as long as somebody asks for them,
some 100 bytes a pointer. The topic is made when something is deferred for the first time.
Neighbours: `deferrals.py` asks. Must not know what a unit has deferred.
"""

from __future__ import annotations

import asyncio
import bisect
import logging
from collections.abc import Iterable, Sequence

from engine.errors import LogUnavailable
from engine.log import Log, TopicSpec
from engine.rules.limits import DAY_MS, MAX_DELAY_MS, MAX_RETENTION_MS
from engine.runtime.counters import Counters
from engine.settings import EngineSettings
from schemas.records import DelayRecord
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

# (due ms, offset)
Pointer = tuple[int, int]


class Slot:
    """A slot as far as it was read: the pointers of each unit, sorted, each once."""

    def __init__(self) -> None:
        self.next_offset = -1
        self.asked_at = 0.0
        self.reading = asyncio.Lock()
        self._sorted: dict[Unit, list[Pointer]] = {}
        self._fresh: dict[Unit, list[Pointer]] = {}

    def add(self, record: DelayRecord) -> None:
        unit = Unit(record.incarnation, record.partition)
        self._fresh.setdefault(unit, []).extend(zip(record.due_ms, record.offsets, strict=True))

    def _rows(self, unit: Unit) -> list[Pointer]:
        rows, fresh = self._sorted.setdefault(unit, []), self._fresh.pop(unit, None)
        if fresh:
            rows += sorted(pointer for pointer in set(fresh) if not _has(rows, pointer))
            rows.sort()  # two sorted parts: little more than one look at each
        return rows

    def of(self, unit: Unit, after: Pointer, until: Pointer) -> Sequence[Pointer]:
        """What is due after one place and up to another."""
        rows = self._rows(unit)
        return rows[bisect.bisect_right(rows, after) : bisect.bisect_right(rows, until)]

    def count(self, unit: Unit, after: Pointer, until: Pointer, others: Iterable[Pointer]) -> int:
        """How many are due after one place and up to another, with those of `others` that are not
        here. It copies nothing, for it is asked every second.
        """
        rows = self._rows(unit)
        here = bisect.bisect_right(rows, until) - bisect.bisect_right(rows, after)
        return here + sum(after < pointer <= until and not _has(rows, pointer) for pointer in others)


def _has(rows: Sequence[Pointer], pointer: Pointer) -> bool:
    at = bisect.bisect_left(rows, pointer)
    return at < len(rows) and rows[at] == pointer


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
                record = DelayRecord(unit.incarnation, unit.partition, slot, [offset for _, offset in some], [due for due, _ in some])
                appends.append(self._log.append(self._topic, slot % SLOTS, encode(record)))
        try:
            await asyncio.gather(*appends)
        except LogUnavailable:
            self._is_made = False  # somebody may have deleted it
            raise
        self._counters.count("delay_pointers_total", len(pointers))

    async def read(self, slot: int) -> Slot:
        """A slot, with all that Kafka had when this was called. Raises LogUnavailable."""
        now = asyncio.get_running_loop().time()
        found = self._slots.setdefault(slot, Slot())
        found.asked_at = now
        for other in [number for number, one in self._slots.items() if now - one.asked_at > IDLE_S]:
            del self._slots[other]
        async with found.reading:
            try:
                await self._read(slot, found)
            except LogUnavailable:
                self._is_made = False  # somebody may have deleted it
                raise
        return found

    async def _read(self, slot: int, found: Slot) -> None:
        await self._make()
        part = (self._topic, slot % SLOTS)
        end = (await self._log.end_offsets([part])).get(part)
        if end is None:
            raise LogUnavailable(f"the end of {self._topic} can't be read")
        if found.next_offset > end:  # another topic of that name
            found.next_offset = -1
        if found.next_offset < 0:
            since_ms = slot * SLOT_MS - MAX_DELAY_MS - DAY_MS
            found.next_offset = (await self._log.offsets_at([part], since_ms)).get(part, 0)
        while found.next_offset < end:
            chunk = await self._log.fetch(*part, found.next_offset, _FETCH_RECORDS, _FETCH_BYTES)
            for record in chunk.records:
                try:
                    value = decode(record.value) if record.value else None
                except UndecodableRecord as error:
                    self._counters.count("undecodable_records_total")
                    logger.error("action=skip topic=%s partition=%d offset=%d error=%s", *part, record.offset, error)
                    continue
                if isinstance(value, DelayRecord) and value.slot == slot:
                    found.add(value)
                # A record may have 5,000 pointers, which takes milliseconds, and a chunk hundreds
                # of records: others have their turn in between.
                await asyncio.sleep(0)
            if chunk.next_offset <= found.next_offset:
                raise LogUnavailable(f"{self._topic} can't be read beyond offset {found.next_offset}")
            found.next_offset = chunk.next_offset
