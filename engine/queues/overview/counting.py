"""Counts what is in queues, at Kafka and Redis, and how old it is, mostly without a read of
Kafka.

Whoever looks at the end of a partition every second or two knows between which two looks a record
came. Only what was there before the looks that are remembered is read.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import astuple

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, LogUnavailable
from engine.log import Log, Record, TopicPartition
from engine.queues.overview.done import Shown
from engine.rules.queue import Queue
from engine.window.window import Recovery
from schemas.records import Totals
from state.clock.service_clock import ServiceClock
from state.errors import StateError, StateLost
from state.keys import Unit
from state.replies import TagCounts
from state.shared.overview import Counted
from state.upkeep import UpkeepScripts

# A time between two looks that are no further apart is not looked up.
EXACT_MS = 2_000
# As long looks at the end of a partition are remembered.
REMEMBERED_MS = 60_000
# Records that are read in a round, so that many queues with old messages cost Kafka little.
READS = 64


class _Looks:
    """Ends of one partition, ascending, and when each was seen first and last; and the last record
    that was read, with its time.
    """

    __slots__ = ("ends", "first_ms", "last_ms", "read")

    def __init__(self) -> None:
        self.ends: list[int] = []
        self.first_ms: list[int] = []
        self.last_ms: list[int] = []
        self.read = (-1, 0)

    def note(self, end: int, now_ms: int) -> None:
        """The partition ended there at that time."""
        if self.ends and self.ends[-1] >= end:
            self.last_ms[-1] = now_ms
            return
        self.ends.append(end)
        self.first_ms.append(now_ms)
        self.last_ms.append(now_ms)
        old = bisect_right(self.last_ms, now_ms - REMEMBERED_MS) - 1
        if old > 0:
            del self.ends[:old], self.first_ms[:old], self.last_ms[:old]

    def at(self, offset: int) -> int | None:
        """Returns when the record at an offset came, at the earliest, right to EXACT_MS; None = it
        must be read.
        """
        if self.read[0] == offset:
            return self.read[1]
        place = bisect_right(self.ends, offset)  # at the look before, the end was not above the offset
        if not 0 < place < len(self.ends):
            return None
        earlier = self.last_ms[place - 1]
        return earlier if self.first_ms[place] - earlier <= EXACT_MS else None


class Ages:
    """Belongs to who counts. Times are Kafka's, epoch ms."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._looks: dict[str, dict[int, _Looks]] = {}
        self._reads_left = READS

    def begin_round(self) -> None:
        """READS records may be read again."""
        self._reads_left = READS

    def note_end(self, unit: Unit, end: int, now_ms: int) -> None:
        """A partition ended there at that time."""
        self._of(unit).note(end, now_ms)

    def forget(self, incarnations: Iterable[str]) -> None:
        """These lives of queues are over."""
        for incarnation in incarnations:
            self._looks.pop(incarnation, None)

    async def sent_at_ms(self, topic: str, unit: Unit, offset: int) -> int:
        """Returns when the record at an offset was sent. When it can't be read now, that is the
        time of one before it; 0 = there is none that was read.
        """
        looks = self._of(unit)
        known = looks.at(offset)
        if known is not None:
            return known
        if self._reads_left:
            self._reads_left -= 1
            await self._read(topic, unit, offset, looks)
        return looks.read[1] if 0 <= looks.read[0] <= offset else 0

    async def _read(self, topic: str, unit: Unit, offset: int, looks: _Looks) -> None:
        def note(record: Record) -> None:
            looks.read = (record.offset, record.timestamp_ms)

        try:
            await self._log.read_each(topic, unit.partition, [offset], note)
        except EngineError:
            return  # the next round reads it

    def _of(self, unit: Unit) -> _Looks:
        partitions = self._looks.setdefault(unit.incarnation, {})
        looks = partitions.get(unit.partition)
        if looks is None:
            looks = partitions[unit.partition] = _Looks()
        return looks


logger = logging.getLogger(__name__)


class Counting:
    """Counts queues. State that was lost is rebuilt beside the call."""

    def __init__(
        self, log: Log, upkeep: UpkeepScripts, catalog: Catalog, recovery: Recovery, clock: ServiceClock
    ) -> None:
        self._log = log
        self._upkeep = upkeep
        self._catalog = catalog
        self._recovery = recovery
        self._clock = clock
        self._ages = Ages(log)
        self._shown = Shown()

    def begin(self, rows: Mapping[str, Counted]) -> None:
        """Begins to count, after another worker or none; `rows` are what is shown now."""
        self._shown.begin(rows)

    def now_ms(self) -> int:
        """Returns the time of the service, which rows have."""
        return self._clock.now_ms()

    def begin_round(self, gone: Iterable[str]) -> None:
        """A new round begins, without the lives of queues that are over: as much may be read from
        Kafka again.
        """
        self._ages.forget(gone)
        self._shown.forget(gone)
        self._ages.begin_round()

    async def count(self, queues: Sequence[Queue]) -> dict[str, Counted]:
        """Returns the rows of queues by incarnation, without those that can't be counted now.
        Raises StateUnavailable.
        """
        log_ms = self._log.clock.earliest_ms()
        try:
            ends = await self._log.end_offsets(
                [(queue.topic, unit.partition) for queue in queues for unit in queue.units]
            )
        except LogUnavailable as error:
            logger.debug("action=count_queues error=%s", error)
            return {}
        for queue in queues:
            for unit in queue.units:
                self._ages.note_end(unit, ends.get((queue.topic, unit.partition), 0), log_ms)
        self._shown.begin_look(self._catalog.generation)
        rows = await asyncio.gather(*(self._row(queue, ends) for queue in queues), return_exceptions=True)
        found = {}
        for queue, row in zip(queues, rows, strict=True):
            if isinstance(row, StateLost):
                self._recovery.recover_soon(queue)
            elif isinstance(row, StateError) or (isinstance(row, BaseException) and not isinstance(row, Exception)):
                raise row
            elif isinstance(row, Exception):
                logger.warning("action=count_queues queue=%s error=%r", queue.name, row)
            else:
                found[queue.incarnation] = row
        return found

    async def _row(self, queue: Queue, ends: Mapping[TopicPartition, int]) -> Counted:
        looks = (self._upkeep.info(unit, self._catalog.generation, queue.tag_ids) for unit in queue.units)
        units = await asyncio.gather(*looks)
        ready = delayed = leased = parked = stored = oldest_ms = 0
        for unit, tags in zip(queue.units, units, strict=True):
            end = ends.get((queue.topic, unit.partition), 0)
            behind = [tag.behind(end) for tag in tags]
            ready += sum(tag.ready for tag in tags)
            delayed += sum(tag.later for tag in tags)
            leased += sum(tag.leased for tag in tags)
            parked += sum(tag.parked for tag in tags)
            stored += sum(behind)
            lowest = [tag.lowest for tag, more in zip(tags, behind, strict=True) if more or _is_open(tag)]
            if lowest and (at_ms := await self._ages.sent_at_ms(queue.topic, unit, min(lowest))):
                oldest_ms = min(oldest_ms or at_ms, at_ms)
        sent = self._shown.sent(
            queue.incarnation, sum(ends.get((queue.topic, unit.partition), 0) for unit in queue.units)
        )
        done = self._shown.done(queue.incarnation, _totals(queue.tag_ids, units))
        # A group may be noisy in several partitions.
        noisy = {(place, group) for tags in units for place, tag in enumerate(tags) for group in tag.noisy}
        set_back = sum(tag.set_back for tags in units for tag in tags)
        in_flight = sum(tag.groups_in_flight for tags in units for tag in tags)
        now_ms = self._clock.now_ms()
        return Counted(
            ready, delayed, leased, parked, stored, oldest_ms, now_ms, sent, done, set_back, len(noisy), in_flight
        )


def _totals(tags: Sequence[int], units: Iterable[Sequence[TagCounts]]) -> dict[int, Totals]:
    """What was ever done in all units, by tag."""
    rows = zip(*([astuple(tag.totals) for tag in unit] for unit in units), strict=True)
    return {tag: Totals(*map(sum, zip(*of_tag, strict=True))) for tag, of_tag in zip(tags, rows, strict=True)}


def _is_open(tag: TagCounts) -> bool:
    return tag.ready + tag.delayed + tag.leased + tag.parked > 0
