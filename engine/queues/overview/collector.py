"""Counts what is in every queue: one worker does, for all of them.

Workers say each second which queues they use. Those are counted first; then those in which time
alone changes something, for they have leases or delays; then the one that was counted longest ago.
So a queue in use is at most some two seconds old in the overview, and one that nobody touches, or
that only a producer of Kafka writes to, 30 s where there are up to STILL queues a second, else
longer. A round costs about 150 us for each partition that it looks at.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Sequence

from engine.catalog.catalog import Catalog
from engine.errors import EngineError
from engine.log import Log, TopicPartition
from engine.queues.overview.ages import Ages
from engine.rules.queue import Queue
from engine.window.window import Recovery
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.service import Periodic
from state.clock.service_clock import ServiceClock
from state.errors import StateError, StateLost
from state.keys import Unit
from state.redis.lock import LockBusy, Locks
from state.replies import TagCounts
from state.shared.overview import Counted, OverviewStore
from state.upkeep import UpkeepScripts

logger = logging.getLogger(__name__)

HOLD_MS = 10_000
# How often another worker asks whether somebody counts.
BUSY_S = 2.0
ROUND_S = 1.0
# Queues that are counted in a round at most, and in one go; of those that nothing was said of.
MOST = 256
AT_A_TIME = 32
STILL = 16
MOVING_S = 2.0
STILL_S = 30.0


class Collector:
    """Counts while it holds the lock, and says in any case which queues this worker uses: those of
    the units that `owned` gives.
    """

    def __init__(
        self,
        store: OverviewStore,
        locks: Locks,
        catalog: Catalog,
        owned: Callable[[], Iterable[Unit]],
        counting: Counting,
    ) -> None:
        self.store = store
        self._locks = locks
        self._catalog = catalog
        self._owned = owned
        self._counting = counting
        self._notes = Periodic("note_changed", self._note_changed, ROUND_S, first_s=0.0, quiet=(StateError,))
        self._background = Background()
        self._task: asyncio.Task[None] | None = None
        self._begin()

    def _begin(self) -> None:
        # When a queue was counted last, by incarnation, the longest ago first: where time alone
        # changes something, and elsewhere.
        self._moving: dict[str, float] = {}
        self._still: dict[str, float] = {}

    async def start(self) -> None:
        """Returns when the service runs."""
        await self._notes.start()
        if self._task is None:
            self._task = self._background.keep(self._serve, "count_queues")

    async def stop(self) -> None:
        """Gives the lock up, so that another worker goes on at once."""
        await self._notes.stop()
        task, self._task = self._task, None
        await cancel_all(task)

    async def _note_changed(self) -> None:
        await self.store.note_changed({unit.incarnation for unit in self._owned()})

    async def _serve(self) -> None:
        while True:
            try:
                async with self._locks.held("overview", hold_ms=HOLD_MS, wait_s=0) as hold:
                    self._begin()
                    while hold.is_valid:
                        await self.run_once()
                        await asyncio.sleep(ROUND_S)
            except LockBusy:
                await asyncio.sleep(BUSY_S)
            except (StateError, EngineError) as error:
                logger.debug("action=count_queues error=%s", error)
                await asyncio.sleep(BUSY_S)

    async def run_once(self) -> None:
        """Counts the queues whose turn it is. Raises StateError, LogUnavailable."""
        if await self.store.size() < len(self._moving) + len(self._still):
            self._begin()  # Redis has lost rows
        if gone := [name for name in (*self._moving, *self._still) if name not in self._catalog.by_incarnation]:
            self._forget(gone)
            await self.store.drop(gone)
        due = self._due(await self.store.take_changed(MOST), asyncio.get_running_loop().time())
        self._counting.begin_round()
        for at in range(0, len(due), AT_A_TIME):
            some = due[at : at + AT_A_TIME]
            rows = await self._counting.count(some)
            self._note_counted(some, rows)
            await self.store.write(rows)

    def _forget(self, incarnations: Iterable[str]) -> None:
        for incarnation in incarnations:
            self._moving.pop(incarnation, None)
            self._still.pop(incarnation, None)

    def _due(self, changed: Sequence[str], now: float) -> list[Queue]:
        """The queues whose turn it is, MOST at most: what has changed, what is new, what moves, and
        a few others.
        """
        known = self._catalog.by_incarnation
        due = dict.fromkeys(name for name in changed if name in known)
        new = (name for name in known if name not in self._moving and name not in self._still)
        moving = itertools.takewhile(lambda name: now - self._moving[name] >= MOVING_S, self._moving)
        still = itertools.takewhile(lambda name: now - self._still[name] >= STILL_S, self._still)
        for name in itertools.chain(new, moving, itertools.islice(still, STILL)):
            if len(due) >= MOST:
                break
            due[name] = None
        return [known[name] for name in due if name in known]

    def _note_counted(self, queues: Sequence[Queue], rows: dict[str, Counted]) -> None:
        now = asyncio.get_running_loop().time()
        for queue in queues:
            row = rows.get(queue.incarnation)
            self._forget((queue.incarnation,))
            place = self._moving if row is None or row.leased or row.delayed else self._still
            place[queue.incarnation] = now


class Counting:
    """Counts queues. State that was lost is rebuilt beside the call, and its queue has no row until
    then.
    """

    def __init__(self, log: Log, upkeep: UpkeepScripts, catalog: Catalog, recovery: Recovery, clock: ServiceClock) -> None:
        self._log = log
        self._upkeep = upkeep
        self._catalog = catalog
        self._recovery = recovery
        self._clock = clock
        self._ages = Ages(log)

    def begin_round(self) -> None:
        """A new round begins: as much may be read from Kafka again."""
        self._ages.begin_round()

    async def count(self, queues: Sequence[Queue]) -> dict[str, Counted]:
        """Returns the rows of queues by incarnation, without those that can't be counted now.
        Raises LogUnavailable, StateUnavailable.
        """
        parts = [(queue.topic, partition) for queue in queues for partition in range(len(queue.units))]
        ends = await self._log.end_offsets(parts)
        log_ms = self._log.clock.earliest_ms()
        for part, end in ends.items():
            self._ages.note_end(part, end, log_ms)
        rows = await asyncio.gather(*(self._row(queue, ends) for queue in queues))
        return {queue.incarnation: row for queue, row in zip(queues, rows, strict=True) if row is not None}

    async def _row(self, queue: Queue, ends: dict[TopicPartition, int]) -> Counted | None:
        try:
            looks = (self._upkeep.info(unit, self._catalog.generation, queue.tag_ids) for unit in queue.units)
            units = await asyncio.gather(*looks)
        except StateLost:
            self._recovery.recover_soon(queue)
            return None
        ready = delayed = leased = parked = stored = oldest_ms = 0
        for partition, tags in enumerate(units):
            part = queue.topic, partition
            end = ends.get(part, 0)
            behind = [max(0, end - tag.cursor - tag.ahead) for tag in tags]
            ready += sum(tag.ready for tag in tags)
            delayed += sum(tag.delayed + tag.deferred for tag in tags)
            leased += sum(tag.leased for tag in tags)
            parked += sum(tag.parked for tag in tags)
            stored += sum(behind)
            floors = [tag.floor for tag, more in zip(tags, behind, strict=True) if more or _is_open(tag)]
            if floors:
                at_ms = await self._ages.sent_at_ms(part, min(floors))
                if at_ms is None:
                    return None
                oldest_ms = min(oldest_ms or at_ms, at_ms)
        return Counted(ready, delayed, leased, parked, stored, oldest_ms, self._clock.now_ms())


def _is_open(tag: TagCounts) -> bool:
    return tag.ready + tag.delayed + tag.leased + tag.parked > 0
