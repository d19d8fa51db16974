"""When the message at an offset was sent, mostly without a read from Kafka.

Whoever looks at the end of a partition every second or two knows between which two looks a record
came. Only what was there before the looks that are remembered is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from engine.errors import EngineError
from engine.log import Log, Record
from state.keys import Unit

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
