"""Writes each minute of this worker's meters to Kafka: to the meter topic a record for each queue
that had requests, to the requests topic who has asked.

A minute that Kafka does not take is kept in memory and written later: KEPT_MINUTES of them, and the
oldest is dropped then. A worker that is killed loses the minute that runs, and what Kafka had not
taken. An append whose answer was lost is made again, so a record may be there twice: readers drop
repeats.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import logging
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, Overloaded
from engine.log import Log
from engine.meters.meters import Cell, Key, Meters
from engine.rules.queue import Queue
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import now_ms
from schemas.records.watching import MeterRecord, RequestRow, RequestsRecord, StaleRow
from schemas.topics import meter_partition, meter_topic, requests_topic
from schemas.vocabulary import KEPT_MINUTES
from schemas.wire import AnyRecord, encode

logger = logging.getLogger(__name__)

# How soon what Kafka did not take is tried again; and how long a clock that was set goes unnoticed.
AGAIN_S = 0.25
LOOK_S = 5.0
# Of a record: it stays below the bytes that a record may have, with the longest names.
ROWS = 500
# Records of meters, which are encoded in one turn of the event loop.
AT_A_TIME: Final = 200

R = TypeVar("R", bound=AnyRecord)


class Unwritten(Generic[R]):
    """What Kafka has not taken of one topic, minute by minute. Belongs to one event loop. `dropped`
    is told how many records were dropped; `place` gives the partition and the key of a record.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        dropped: Callable[[int], None],
        place: Callable[[R], tuple[int, str]],
        at_a_time: int = AT_A_TIME,
    ) -> None:
        """`at_a_time`: how many records are encoded in one turn of the event loop."""
        self._log = log
        self._topic = topic
        self._dropped = dropped
        self._place: Callable[[R], tuple[int, str]] = place
        self._at_a_time = at_a_time
        # Oldest first; what of a minute Kafka has is taken away.
        self._minutes: collections.deque[list[R]] = collections.deque()

    def __len__(self) -> int:
        """Returns how many records are left."""
        return sum(map(len, self._minutes))

    def put(self, records: list[R]) -> None:
        """Adds the records of a minute."""
        if not records:
            return
        self._minutes.append(records)
        if len(self._minutes) > KEPT_MINUTES:
            dropped = self._minutes.popleft()
            self._dropped(len(dropped))
            logger.error(
                "action=report_meters topic=%s dropped=%d reason=Kafka took nothing for %d minutes",
                self._topic, len(dropped), KEPT_MINUTES,
            )  # fmt: skip

    async def write(self) -> None:
        """Writes what is left, oldest first; what Kafka does not take stays."""
        while self._minutes:
            records = self._minutes[0]
            for at in range(0, len(records), self._at_a_time):
                if not await self.append(records[at : at + self._at_a_time]):
                    # Those that Kafka has are written again, and dropped by readers.
                    del records[:at]
                    return
            if self._minutes and self._minutes[0] is records:
                self._minutes.popleft()

    async def append(self, records: list[R]) -> bool:
        """Appends some records. Returns whether Kafka has them all."""
        waiting = []
        try:
            for record in records:
                partition, key = self._place(record)
                waiting.append(self._log.append(self._topic, partition, encode(record), key.encode()))
        except Overloaded:
            return False
        taken = True
        for future in waiting:
            try:
                await future
            except EngineError as error:
                taken = False
                logger.warning("action=report_meters topic=%s error=%s", self._topic, error)
        return taken


class Reporter:
    """The service that reports. `worker` is our name among all workers, `minute_ms` the length of a
    minute; `dropped` is told how many records were.
    """

    def __init__(
        self,
        worker: str,
        prefix: str,
        minute_ms: int,
        log: Log,
        catalog: Catalog,
        meters: Meters,
        dropped: Callable[[int], None],
    ) -> None:
        self._worker = worker
        self._minute_ms = minute_ms
        self._catalog = catalog
        self._meters = meters
        self._minute = now_ms() // minute_ms
        # Queues whose life is over, and since which minute: their last requests are still written.
        self._gone: dict[str, tuple[Queue, int]] = {}
        self.meters = Unwritten[MeterRecord](
            log, meter_topic(prefix), dropped, lambda record: (meter_partition(record.incarnation), record.incarnation)
        )
        self.requests = Unwritten[RequestsRecord](
            log, requests_topic(prefix), dropped, lambda record: (0, worker), at_a_time=1
        )
        self._numbers = itertools.count(1)
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
        if lost := len(self.meters) + len(self.requests):
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
            await asyncio.sleep(min(AGAIN_S if self.meters or self.requests else LOOK_S, left_ms / 1000))

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
        self.meters.put(records)
        rows = self._meters.requests.take()
        self.requests.put([self._of_requests(minute, rows[at : at + ROWS]) for at in range(0, len(rows), ROWS)])

    def _record(
        self, minute: int, incarnation: str, cells: list[tuple[Key, Cell]], stale: list[StaleRow]
    ) -> MeterRecord | None:
        """Returns what is written of a queue; None for one that went more than a minute ago."""
        gone = self._gone.get(incarnation)
        queue = self._catalog.by_incarnation.get(incarnation) or (gone and gone[0])
        if queue is None:
            return None
        names = {tag.id: tag.name for tag in queue.tags}
        rows = [
            cell.row("" if tag < 0 else names.get(tag, f"#{tag}"), operation) for (_, tag, operation), cell in cells
        ]
        return MeterRecord(minute * self._minute_ms, self._worker, queue.name, incarnation, rows, stale)

    def _of_requests(self, minute: int, rows: list[RequestRow]) -> RequestsRecord:
        return RequestsRecord(minute * self._minute_ms, self._worker, next(self._numbers), rows)

    async def _write(self) -> None:
        await self.meters.write()
        await self.requests.write()
