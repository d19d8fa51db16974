"""One round of a rebuild: some units, from the lease to service. Each is written into Redis as the
journal has it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from engine.catalog.catalog import Catalog
from engine.journal.deferred import DeferredState
from engine.journal.outbox import Journal, Outbox
from engine.log import Log, Record
from engine.recovery.lives import Holding, Life, Lives
from engine.rules.fifo import group_digest
from engine.rules.queue import Queue
from runtime.counters import Counters
from runtime.failpoints import reached
from runtime.signals import Signal
from schemas.wire import UndecodableRecord, decode_message
from state.deferred import Mark
from state.errors import Fenced
from state.keys import Unit
from state.store import Store
from state.upkeep import UpkeepScripts

SLICE = 500
# Slices of a unit on their way to Redis at a time: it works on one while the next is packed here.
SIDE_BY_SIDE = 8


class UnitWriter:
    """Lets units serve. Its calls raise Fenced when another worker has taken the unit."""

    def __init__(self, log: Log, store: Store, catalog: Catalog, counters: Counters) -> None:
        self._log = log
        self._store = store
        self._catalog = catalog
        self._counters = counters

    async def write(self, queue: Queue, unit: Unit, epoch: int, life: Life) -> None:
        """Lets a unit serve: with the state that it has, or with that of the journal. Raises
        Fenced, StateUnavailable, LogUnavailable.
        """
        if life.adopted:
            await self._open(
                queue, unit, epoch, life.seq, [(tag.id, tag.start_offsets[unit.partition]) for tag in queue.tags]
            )
        else:
            self._counters.count("rebuilds_total")
            await self._restore(queue, unit, epoch, life)

    async def _open(self, queue: Queue, unit: Unit, epoch: int, seq: int, starts: list[tuple[int, int]]) -> None:
        """Cursors that the unit has stay as they are."""
        await self._store.upkeep.open(
            unit, self._catalog.generation, starts, fifo=queue.record.fifo, epoch=epoch, seq=seq
        )

    async def _restore(self, queue: Queue, unit: Unit, epoch: int, life: Life) -> None:
        store, history = self._store, life.history
        await store.upkeep.clear(unit, epoch, queue.tag_ids)
        moves = history.newest_moves()
        for at in range(0, len(moves), SLICE):
            await store.upkeep.recall(unit, epoch, moves[at : at + SLICE])
        starts = []
        for tag in queue.tags:
            known = history.tag(tag.id)
            floor = known.raise_floor(tag.start_offsets[unit.partition])
            settled = sorted(known.settled)
            self._counters.count("rebuilt_settled_total", len(settled))
            self._counters.count("rebuilt_deliveries_total", len(known.deliveries))
            deliveries = list(known.deliveries.values())
            groups = await self._groups(queue, unit.partition, list(known.deliveries)) if queue.record.fifo else {}
            for at in range(0, max(len(settled), len(deliveries), 1), SLICE * SIDE_BY_SIDE):
                slices = [slice(n, n + SLICE) for n in range(at, at + SLICE * SIDE_BY_SIDE, SLICE)]
                await asyncio.gather(
                    *(
                        store.upkeep.restore(
                            unit,
                            epoch,
                            tag.id,
                            cursor=floor,
                            settled=settled[part],
                            deliveries=deliveries[part],
                            groups=groups,
                            totals=known.totals(),
                        )
                        for part in slices
                        if part.start == 0 or settled[part] or deliveries[part]
                    )
                )
                reached("rebuild.restored")
            await self._redefer(unit, epoch, tag.id, known.deferred, tag.start_offsets[unit.partition])
            starts.append((tag.id, floor))
        reached("rebuild.before_open")
        await self._open(queue, unit, epoch, life.seq, starts)

    async def _redefer(self, unit: Unit, epoch: int, tag: int, known: DeferredState, start: int) -> None:
        """What is deferred below the floor; the loader defers again what is above it."""
        mark, bound = Mark(*known.mark), max(start, known.bound)
        excepted = sorted(known.excepted)
        for at in range(0, max(len(excepted), 1), SLICE):
            await self._store.deferred.redefer(
                unit,
                epoch,
                tag,
                mark=mark,
                bound=bound,
                slots={} if at else known.slots,
                excepted=excepted[at : at + SLICE],
            )

    async def _groups(self, queue: Queue, partition: int, offsets: list[int]) -> dict[int, bytes]:
        """The groups of open messages: the journal does not have them, so their records are
        read, some MB at a time.
        """
        groups = dict.fromkeys(offsets, group_digest(None))

        def note(record: Record) -> None:
            with contextlib.suppress(UndecodableRecord):
                groups[record.offset] = group_digest(decode_message(record.value, record.headers).group)

        await self._log.read_each(queue.topic, partition, offsets, note)
        return groups


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
            logger.warning(
                "action=rebuild failed=%d queue=%s partition=%d error=%s", len(self.failed), name, unit.partition, error
            )

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
