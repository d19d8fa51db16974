"""Writes the state of one unit, as the journal has it, into Redis."""

from __future__ import annotations

import asyncio
import contextlib

from engine.catalog.catalog import Catalog
from engine.journal.deferred import DeferredState
from engine.log import Log, Record
from engine.recovery.lives import Life
from engine.rules.fifo import group_digest
from engine.rules.queue import Queue
from runtime.counters import Counters
from runtime.failpoints import reached
from schemas.wire import UndecodableRecord, decode_message
from state.deferred import Mark
from state.keys import Unit
from state.store import Store

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
            await self._open(queue, unit, epoch, life.seq, [(tag.id, tag.start_offsets[unit.partition]) for tag in queue.tags])
        else:
            self._counters.count("rebuilds_total")
            await self._restore(queue, unit, epoch, life)

    async def _open(self, queue: Queue, unit: Unit, epoch: int, seq: int, starts: list[tuple[int, int]]) -> None:
        """Cursors that the unit has stay as they are."""
        await self._store.upkeep.open(unit, self._catalog.generation, starts, fifo=queue.record.fifo, epoch=epoch, seq=seq)

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
                unit, epoch, tag, mark=mark, bound=bound, slots={} if at else known.slots, excepted=excepted[at : at + SLICE]
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
