"""Writes each minute of this worker's meters to Kafka, a record for each queue that had requests.

A minute that Kafka does not take is kept in memory and written later: KEPT_MINUTES of them, and the
oldest is dropped then. A worker that is killed loses the minute that runs, and what Kafka had not
taken. An append whose answer was lost is made again, so a record may be there twice: readers drop
repeats (`history.py`).
"""

from __future__ import annotations

import asyncio
import collections
import logging
import zlib

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, Overloaded
from engine.log import Log
from engine.meters.meters import Cell, Key, Meters
from engine.rules.queue import Queue
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import now_ms
from runtime.counters import Counters
from schemas.records.watching import MeterRecord, StaleRow
from schemas.topics import METER_PARTITIONS, meter_topic
from schemas.vocabulary import KEPT_MINUTES
from schemas.wire import encode

logger = logging.getLogger(__name__)

# How soon what Kafka did not take is tried again; and how long a clock that was set goes unnoticed.
AGAIN_S = 0.25
LOOK_S = 5.0
AT_A_TIME = 200


def partition_of(incarnation: str) -> int:
    """The partition of the meter topic that has a queue."""
    return zlib.crc32(incarnation.encode()) % METER_PARTITIONS


class Reporter:
    """The service that reports. `worker` is our name among all workers, `minute_ms` the length of a
    minute.
    """

    def __init__(self, worker: str, prefix: str, minute_ms: int, log: Log, catalog: Catalog, meters: Meters, counters: Counters) -> None:
        self._worker = worker
        self._topic = meter_topic(prefix)
        self._minute_ms = minute_ms
        self._log = log
        self._catalog = catalog
        self._meters = meters
        self._counters = counters
        self._minute = now_ms() // minute_ms
        # Queues whose life is over, and since which minute: their last requests are still written.
        self._gone: dict[str, tuple[Queue, int]] = {}
        # The minutes that are not written, oldest first; what of them Kafka has is taken away.
        self._left: collections.deque[list[MeterRecord]] = collections.deque()
        self._background = Background()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._minute = now_ms() // self._minute_ms
        if self._task is None:
            self._task = self._background.keep(self._serve, "report_meters")

    async def stop(self) -> None:
        """Writes what was counted since the last minute, if Kafka takes it."""
        task, self._task = self._task, None
        await cancel_all(task)
        self._take(self._minute)
        await self._write()
        if lost := sum(map(len, self._left)):
            logger.warning("action=report_meters lost=%d", lost)

    def forget_queue(self, queue: Queue) -> None:
        """Keeps a queue that is gone until its last requests have been written."""
        self._gone[queue.incarnation] = (queue, self._minute)

    async def _serve(self) -> None:
        """Takes each minute away as it ends: no request of the next one is counted in it."""
        while True:
            minute = now_ms() // self._minute_ms
            if minute != self._minute:
                self._take(self._minute)
                self._minute = minute
            await self._write()
            left_ms = self._minute_ms - now_ms() % self._minute_ms
            await asyncio.sleep(min(AGAIN_S if self._left else LOOK_S, left_ms / 1000))

    def _take(self, minute: int) -> None:
        self._meters.keep(self._catalog.by_incarnation)
        cells: dict[str, list[tuple[Key, Cell]]] = {}
        stale: dict[str, list[StaleRow]] = {}
        for key, cell in self._meters.take().items():
            cells.setdefault(key[0], []).append((key, cell))
        for (incarnation, reason), handles in self._meters.take_stale().items():
            stale.setdefault(incarnation, []).append(StaleRow(reason, handles))
        made = (self._record(minute, life, cells.get(life, []), stale.get(life, [])) for life in {**cells, **stale})
        records = [record for record in made if record is not None]
        # A request that was under way when its queue went is counted a moment later.
        self._gone = {key: one for key, one in self._gone.items() if one[1] >= minute}
        if not records:
            return
        self._left.append(records)
        if len(self._left) > KEPT_MINUTES:
            dropped = self._left.popleft()
            self._counters.count("meter_records_dropped_total", len(dropped))
            logger.error("action=report_meters dropped=%d reason=Kafka took nothing for %d minutes", len(dropped), KEPT_MINUTES)

    def _record(self, minute: int, incarnation: str, cells: list[tuple[Key, Cell]], stale: list[StaleRow]) -> MeterRecord | None:
        """Returns what is written of a queue; None for one that went more than a minute ago."""
        gone = self._gone.get(incarnation)
        queue = self._catalog.by_incarnation.get(incarnation) or (gone and gone[0])
        if queue is None:
            return None
        names = {tag.id: tag.name for tag in queue.tags}
        rows = [cell.row("" if tag < 0 else names.get(tag, f"#{tag}"), operation) for (_, tag, operation), cell in cells]
        return MeterRecord(minute * self._minute_ms, self._worker, queue.name, incarnation, rows, stale)

    async def _write(self) -> None:
        """Writes what is left, oldest first; what Kafka does not take stays."""
        while self._left:
            records = self._left[0]
            for at in range(0, len(records), AT_A_TIME):
                if not await self._append(records[at : at + AT_A_TIME]):
                    # Those that Kafka has are written again, and dropped by readers.
                    del records[:at]
                    return
            if self._left and self._left[0] is records:
                self._left.popleft()

    async def _append(self, records: list[MeterRecord]) -> bool:
        """Whether Kafka has them all."""
        try:
            waiting = [
                self._log.append(self._topic, partition_of(record.incarnation), encode(record), record.incarnation.encode())
                for record in records
            ]
        except Overloaded:
            return False
        taken = True
        for future in waiting:
            try:
                await future
            except EngineError as error:
                taken = False
                logger.warning("action=report_meters error=%s", error)
        return taken
