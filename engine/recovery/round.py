"""One round of a rebuild: some units, from the lease to service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from engine.catalog.catalog import Catalog
from engine.journal.outbox import Journal, Outbox
from engine.recovery.holding import Holding
from engine.recovery.lives import Lives
from engine.recovery.unit_writer import UnitWriter
from engine.rules.queue import Queue
from runtime.failpoints import reached
from runtime.signals import Signal
from state.errors import Fenced
from state.keys import Unit
from state.upkeep import UpkeepScripts

logger = logging.getLogger(__name__)

# Units on their way to Redis at a time: each needs five round trips, one after the other.
AT_ONCE = 64


class Round:
    """Rebuilds what is lost of some queues. `others` are the units that another worker rebuilds,
    `failed` those that are not done, and why: each fails alone.
    """

    def __init__(
        self,
        upkeep: UpkeepScripts,
        catalog: Catalog,
        journal: Journal,
        writer: UnitWriter,
        rebuilt: Signal[[Unit]],
        queues: Sequence[Queue],
    ) -> None:
        self._upkeep = upkeep
        self._catalog = catalog
        self._journal = journal
        self._writer = writer
        self._rebuilt = rebuilt
        self._queues = {unit: queue for queue in queues for unit in queue.units}
        self._epochs: dict[Unit, int] = {}
        self._older: set[Unit] = set()
        self._serving: list[Unit] = []
        self.others: list[Unit] = []
        self.failed: dict[Unit, Exception] = {}

    async def run(self, holding: Holding, lives: Lives) -> None:
        """Owns the units that lost their state, reads their journal, writes their state, lets them
        serve. Raises StateError, LogUnavailable: then none is done.
        """
        await self._take(holding)
        await self._each(self._serving, self._add_tags)
        if self._epochs:
            await self._restore(lives)
        if self.failed:
            unit, error = next(iter(self.failed.items()))
            name = self._queues[unit].name
            logger.warning("action=rebuild failed=%d queue=%s partition=%d error=%s", len(self.failed), name, unit.partition, error)

    async def _take(self, holding: Holding) -> None:
        async for unit, owned in holding.take(list(self._queues)):
            if owned.generation is not None and owned.generation >= self._catalog.generation:
                self._serving.append(unit)
            elif not owned.ours:
                self.others.append(unit)
            else:
                self._epochs[unit] = owned.number
                if owned.generation is not None and owned.generation >= self._catalog.life.adopt_from:
                    self._older.add(unit)

    async def _add_tags(self, unit: Unit) -> None:
        """Of a unit that serves a tag may be missing: its creator died between the control record
        and `open`.
        """
        queue = self._queues[unit]
        starts = [(tag.id, tag.start_offsets[unit.partition]) for tag in queue.tags]
        await self._upkeep.open(unit, self._catalog.generation, starts, fifo=queue.record.fifo, serving=True)

    async def _restore(self, lives: Lives) -> None:
        """Makes owned units serve: what has every entry as it is, the rest from the journal."""
        queues = {self._queues[unit].incarnation for unit in self._epochs}
        logger.warning("action=rebuild units=%d queues=%d", len(self._epochs), len(queues))
        reached("rebuild.owned")
        await self._each(self._epochs, self._drain)
        drained = {unit: self._queues[unit] for unit in self._epochs if self._is_ours(unit)}
        reached("rebuild.drained")
        begun, failed = await lives.begin(drained, self._older & drained.keys(), self._drain)
        for unit, error in failed.items():
            if isinstance(error, Fenced):
                self.others.append(unit)
            else:
                self.failed[unit] = error
        reached("rebuild.read")

        async def write(unit: Unit) -> None:
            await self._writer.write(self._queues[unit], unit, self._epochs[unit], begun[unit])
            self._rebuilt(unit)

        await self._each(begun, write)

    async def _drain(self, unit: Unit) -> None:
        await Outbox(self._journal, self._queues[unit].name, unit, self._epochs[unit]).drain()

    def _is_ours(self, unit: Unit) -> bool:
        return unit not in self.failed and unit not in self.others

    async def _each(self, units: Iterable[Unit], work: Callable[[Unit], Awaitable[None]]) -> None:
        """Does `work` for units, some at a time. One that another worker has taken is that
        worker's, and one that fails holds up no other.
        """
        left = iter(units)

        async def run() -> None:
            for unit in left:
                try:
                    await work(unit)
                except Fenced:
                    self.others.append(unit)
                except Exception as error:  # who waits for its queue hears of it, and asks again
                    self.failed[unit] = error

        await asyncio.gather(*(run() for _ in range(AT_ONCE)))
