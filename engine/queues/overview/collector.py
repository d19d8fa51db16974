"""Counts what is in every queue: one worker does, for all of them.

Workers say each second which queues they use. `turns.py` says whose turn it is: a queue in use is
counted each second, where no more than CHANGED partitions are in use; where time alone changes
something, every 2 s; another one every 30 s, and more seldom where there are many. A round costs
about 150 us for each partition that it looks at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from engine.catalog.catalog import Catalog
from engine.queues.overview.counting import Counting
from engine.queues.overview.sampler import Sampler
from engine.queues.overview.turns import Turns, groups
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.service import Periodic
from state.errors import StateError
from state.keys import Unit
from state.redis.lock import Hold, LockBusy, Locks
from state.shared.overview import OverviewStore

logger = logging.getLogger(__name__)

HOLD_MS = 10_000
# How often another worker asks whether somebody counts.
BUSY_S = 2.0
ROUND_S = 1.0
# Names that are taken of those that workers have said.
MOST = 1_000


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
        sampler: Sampler,
    ) -> None:
        self.store = store
        self._sampler = sampler
        self._locks = locks
        self._catalog = catalog
        self._owned = owned
        self._counting = counting
        self._turns = Turns()
        self._notes = Periodic("note_changed", self._note_changed, ROUND_S, first_s=0.0, quiet=(StateError,))
        self._background = Background()
        self._task: asyncio.Task[None] | None = None

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
                    self._turns = Turns()
                    self._counting.begin(await self.store.all())
                    await self._sampler.begin(self._counting.now_ms())
                    while hold.is_valid:
                        await self._round(hold)
                        await asyncio.sleep(ROUND_S)
            except LockBusy:
                await asyncio.sleep(BUSY_S)
            except StateError as error:
                logger.debug("action=count_queues error=%s", error)
                await asyncio.sleep(BUSY_S)

    async def _round(self, hold: Hold) -> None:
        """As `run_once`; while Redis is away the next round goes on."""
        try:
            await self.run_once(hold)
        except StateError as error:
            logger.debug("action=count_queues error=%s", error)

    async def run_once(self, hold: Hold | None = None) -> None:
        """Counts the queues whose turn it is. Raises StateUnavailable, StateLost.

        A worker whose `hold` ends while it counts writes nothing: its numbers are older than those
        of who counts by then.
        """
        known, turns = self._catalog.by_incarnation, self._turns
        gone = turns.gone(known)
        turns.forget(gone)
        if await self.store.size() != len(turns.rows) or not turns.rows <= known.keys():
            await self._compare_rows()
        turns.note_changed(await self.store.take_changed(MOST))
        self._counting.begin_round(gone)
        for some in groups(turns.due(known, asyncio.get_running_loop().time())):
            rows = await self._counting.count(some)
            if hold is not None and not hold.is_valid:
                return
            await self.store.write(rows)
            self._sampler.note(rows)
            turns.rows.update(rows)
            now = asyncio.get_running_loop().time()
            for queue in some:
                row = rows.get(queue.incarnation)
                turns.note_counted(queue.incarnation, now, moves=row is None or row.leased > 0 or row.delayed > 0)

        if hold is None or hold.is_valid:
            await self._sampler.sample(self._counting.now_ms())

    async def _compare_rows(self) -> None:
        """Drops the rows of queues that are gone, and has those counted again that Redis lost."""
        rows = await self.store.names()
        gone = (rows | self._turns.rows) - self._catalog.by_incarnation.keys()
        await self._sampler.drop(gone)  # first: what has no row is not found again
        await self.store.drop(gone)
        self._turns.keep_rows(rows & self._catalog.by_incarnation.keys())
