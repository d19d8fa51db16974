"""Looks at each minute, once it is written, and decides which alert policies fire or clear: one
worker does so, and another takes over within HOLD_MS when it dies.

Decisions are control records, written under the lock of their queue by who has seen the last one,
so a judge that was stopped and wakes decides nothing twice. Who takes over looks at the last
LAST_MINUTES once more; what was decided of them stays. While nothing is watched, no lock is held
and nothing is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from engine.alerts.messenger import Messenger
from engine.alerts.watches import Watches
from engine.catalog.catalog import Catalog
from engine.errors import EngineError, LogUnavailable
from engine.log import Log
from engine.meters.history import CHUNK_BYTES, CHUNK_RECORDS, Seen, meter_of
from engine.meters.meters import Cell, merged
from engine.meters.statistics import DAY_MS, day_of
from engine.rules.alerts import Calm, look
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from engine.shapes import TagInfo
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import now_ms
from schemas.records import TagRecord
from schemas.records.watching import AlertEvent, AlertPolicy, WatchRecord
from schemas.topics import METER_PARTITIONS, meter_topic
from schemas.vocabulary import OPERATIONS, AlertChange, Subject, Telling
from state.errors import StateError
from state.redis.lock import Hold, LockBusy, Locks

logger = logging.getLogger(__name__)

HOLD_MS = 10_000
ROUND_S = 0.5
BUSY_S = 2.0
# After a minute's end, so that every worker has written it; at most half a minute.
GRACE_MS = 5_000
LAST_MINUTES = 5
# A day's statistics are mailed so long after its end.
MAIL_AFTER_MS = 600_000

Place = tuple[str, str, str]  # incarnation, tag, operation


class Judge:
    """The service that judges. `tag_infos` has the numbers of messages of tags."""

    def __init__(
        self,
        settings: EngineSettings,
        locks: Locks,
        log: Log,
        catalog: Catalog,
        watches: Watches,
        messenger: Messenger,
        tag_infos: Callable[[Queue, Sequence[TagRecord]], Awaitable[list[TagInfo]]],
    ) -> None:
        self._topic = meter_topic(settings.topic_prefix)
        self._minute_ms = settings.meter_minute_s * 1000
        self._grace_ms = min(GRACE_MS, self._minute_ms // 2)
        self._locks = locks
        self._log = log
        self._catalog = catalog
        self._watches = watches
        self._messenger = messenger
        self._tag_infos = tag_infos
        self._background = Background()
        self._task: asyncio.Task[None] | None = None
        self._begin()

    def _begin(self) -> None:
        """Knows nothing: what was judged before, here or elsewhere, is in the control records."""
        self._offsets: dict[int, int] = {}
        self._seen = Seen()
        self._minutes: dict[int, dict[Place, Cell]] = {}
        self._judged: dict[str, int] = {}  # incarnation -> end of the last minute
        self._calm: dict[str, Calm] = {}

    async def start(self) -> None:
        if self._task is None:
            self._task = self._background.keep(self._serve, "judge_alerts")

    async def stop(self) -> None:
        """Gives the lock up, so that another worker goes on at once."""
        task, self._task = self._task, None
        await cancel_all(task)
        await self._messenger.stop()

    async def _serve(self) -> None:
        while True:
            if not self._catalog.watches:
                await asyncio.sleep(BUSY_S)
                continue
            try:
                async with self._locks.held("judge", hold_ms=HOLD_MS, wait_s=0) as hold:
                    logger.info("action=judge_alerts state=begins")
                    self._begin()
                    await self._hold(hold)
            except LockBusy:
                await asyncio.sleep(BUSY_S)
            except StateError as error:
                logger.debug("action=judge_alerts error=%s", error)
                await asyncio.sleep(BUSY_S)

    async def _hold(self, hold: Hold) -> None:
        """Works until nothing is watched any more, or the lock is lost."""
        while hold.is_valid and self._catalog.watches:
            try:
                await self._round(hold)
            except EngineError as error:
                logger.warning("action=judge_alerts error=%s", error)
            await asyncio.sleep(ROUND_S)

    async def _round(self, hold: Hold) -> None:
        """Judges the minutes that are over, and tells what is pending. Raises LogUnavailable."""
        newest = (now_ms() - self._grace_ms) // self._minute_ms * self._minute_ms
        ends = range(newest - (LAST_MINUTES - 1) * self._minute_ms, newest + 1, self._minute_ms)
        watches = list(self._catalog.watches.values())
        if any(self._judged.get(watch.incarnation, 0) < newest for watch in watches):
            await self._read(ends[0] - self._minute_ms)
        for watch in watches:
            queue = self._catalog.by_incarnation.get(watch.incarnation)
            try:
                if queue is None:
                    await self._watches.drop(watch.queue)
                    continue
                for end in ends:
                    if self._judged.get(watch.incarnation, 0) < end and hold.is_valid:
                        await self._judge(queue, end, is_newest=end == newest)
                        self._judged[watch.incarnation] = end
                await self._note_day(queue)
            except (EngineError, StateError) as error:
                logger.warning("action=judge_alerts queue=%s error=%s", watch.queue, error)
                continue
            if hold.is_valid:
                self._messenger.tell_pending(queue, self._watches.of(queue), lambda: hold.is_valid)

    async def _read(self, from_ms: int) -> None:
        """Reads on to the end of the meter topic; keeps minutes from `from_ms` on, of what is
        watched.
        """
        parts = [(self._topic, partition) for partition in range(METER_PARTITIONS)]
        if not self._offsets:
            starts = await self._log.offsets_at(parts, from_ms)
            if len(starts) < len(parts):
                raise LogUnavailable(f"the offsets of {self._topic} can't be read")
            self._offsets = {partition: starts[topic, partition] for topic, partition in parts}
        for topic, partition in parts:
            at_end = False
            while not at_end:
                chunk = await self._log.fetch(topic, partition, self._offsets[partition], CHUNK_RECORDS, CHUNK_BYTES)
                for record in chunk.records:
                    incarnation = (record.key or b"").decode("ascii", "replace")
                    queue = self._catalog.by_incarnation.get(incarnation)
                    if queue is None or queue.name not in self._catalog.watches:
                        continue
                    meter = meter_of(record)
                    if meter is None or meter.minute_ms < from_ms or not self._seen.is_new(meter):
                        continue
                    cells = self._minutes.setdefault(meter.minute_ms, {})
                    for row in meter.rows:
                        cells.setdefault((incarnation, row.tag, row.operation), Cell()).add_row(row)
                    if meter.minute_ms < self._judged.get(incarnation, 0):
                        # A worker was late: the minute, and those after it, are looked at again.
                        self._judged[incarnation] = meter.minute_ms
                        self._calm.pop(incarnation, None)
                self._offsets[partition], at_end = chunk.next_offset, chunk.at_end
        for minute in [minute for minute in self._minutes if minute < from_ms]:
            del self._minutes[minute]
        self._seen.forget_before(from_ms)

    async def _judge(self, queue: Queue, end: int, *, is_newest: bool) -> None:
        """Raises EngineError, StateError: the minute is judged again later."""
        watch = self._watches.of(queue)
        values: dict[str, float | None] = {}
        for policy in watch.policies:
            if policy.subject != Subject.QUEUE_MESSAGE_NUMBER:
                values[policy.id] = self._value(queue, policy, end)
            elif is_newest:
                tag = queue.tag(policy.tag or None)
                values[policy.id] = float((await self._tag_infos(queue, [tag]))[0].backlog)
        calm = self._calm.get(queue.incarnation, {})
        after, left = look(watch, values, end, calm)
        if after != watch:
            # Once more under the lock, over what the record is then.
            after = await self._watches.edit(queue, lambda record: look(record, values, end, calm)[0])
            self._log_changes(queue, after, end)
        self._calm[queue.incarnation] = left

    def _value(self, queue: Queue, policy: AlertPolicy, end: int) -> float | None:
        cells = self._minutes.get(end - self._minute_ms, {})
        tags = (policy.tag,) if policy.tag else ("", *(tag.name for tag in queue.tags))
        wanted = [
            cell
            for tag in tags
            for operation in OPERATIONS[Subject(policy.subject)]
            if (cell := cells.get((queue.incarnation, tag, operation)))
        ]
        return merged(wanted).measured(policy.measurement)

    def _log_changes(self, queue: Queue, record: WatchRecord, end: int) -> None:
        for event in record.events:
            if event.at_ms == end and not event.day:
                tell = logger.warning if event.change != AlertChange.CLEARED else logger.info
                tell(
                    "action=alert change=%s queue=%s tag=%s subject=%s measurement=%s threshold=%g value=%g told=%s",
                    event.change, queue.name, event.tag, event.subject, event.measurement, event.threshold,
                    event.value, event.told,
                )  # fmt: skip

    async def _note_day(self, queue: Queue) -> None:
        """Has the statistics of yesterday mailed, once. Raises EngineError."""
        now = now_ms()
        yesterday = day_of(now - DAY_MS)
        if (
            not (watch := self._watches.of(queue)).daily_statistics
            or watch.mailed_day >= yesterday
            or now % DAY_MS < MAIL_AFTER_MS
        ):
            return

        def noted(record: WatchRecord) -> WatchRecord:
            if not record.daily_statistics or record.mailed_day >= yesterday:
                return record
            event = AlertEvent(f"{queue.incarnation}-day-{yesterday}", now, "", Telling.PENDING.value, day=yesterday)
            return replace(record, events=[*record.events, event], mailed_day=yesterday)

        await self._watches.edit(queue, noted)
