"""Snapshots of the journal, so that a rebuild reads its last seconds and not its days.

Partition p of the snapshot topic belongs to partition p of the journal. One worker at a time (a
lock in Redis) folds a journal partition in memory and writes a snapshot of each unit that changed,
then the position up to which all snapshots hold. A crash in between repeats work: entries that a
snapshot has already are known by their seq.

A worker that takes the lock begins an **epoch**: it appends a mark, whose offset is the number of
the epoch, and writes under keys of that epoch, each unit once before its first position. Readers
take the highest epoch that has a position, whole, and nothing else. So a holder that was stopped
and goes on after its successor replaces nothing, also not by Kafka's compaction.
"""

from __future__ import annotations

import asyncio
import logging

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, MessageTooLarge
from engine.journal.fold import UnitState
from engine.journal.reader import EPOCH, FoldedJournal, JournalReader, position_key, snapshot_key
from engine.log import Log
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import now_ms
from runtime.counters import Counters
from runtime.failpoints import reached
from runtime.service import Periodic
from schemas.records import PositionRecord
from schemas.wire import encode
from state.errors import StateError
from state.keys import Unit
from state.redis.lock import Hold, Locks

logger = logging.getLogger(__name__)

ROUND_S = 10.0
HOLD_MS = 20_000
# Appends on their way at a time: a snapshot may have 16 MiB.
SIDE_BY_SIDE = 16


class _Held:
    """A journal partition that this worker writes the snapshots of: the lock, who renews it, and
    what is folded.
    """

    def __init__(self, hold: Hold, keeper: asyncio.Task[None]) -> None:
        self.hold = hold
        self.keeper = keeper
        self.folded = FoldedJournal()

    async def stop(self) -> None:
        await cancel_all(self.keeper)
        await self.hold.give_up()


class Snapshots:
    """Folds journal partitions. `run_once` may be called by tests; the loop calls it every 10 s."""

    def __init__(self, locks: Locks, log: Log, catalog: Catalog, counters: Counters, reader: JournalReader) -> None:
        self._locks = locks
        self._log = log
        self._catalog = catalog
        self._counters = counters
        self._reader = reader
        self._held: dict[int, _Held] = {}
        self._background = Background()
        self._service = Periodic("snapshot", self.run_once, ROUND_S, quiet=(EngineError, StateError))

    async def start(self) -> None:
        await self._service.start()

    async def stop(self) -> None:
        """Ends the loop, and lets another worker go on at once."""
        await self._service.stop()
        held, self._held = self._held, {}
        await asyncio.gather(*(each.stop() for each in held.values()))

    async def run_once(self) -> None:
        """One round over the partitions that this worker holds. Raises LogUnavailable,
        StateUnavailable.
        """
        for partition in range(self._catalog.journal_partitions):
            held = self._held.get(partition)
            if held is not None and not held.hold.is_valid:
                await self._held.pop(partition).stop()
                held = None
            if held is None:
                held = await self._take(partition)
            else:
                await self._reader.fold(partition, held.folded)
            if held is not None and held.folded.is_due():
                await self._write(partition, held)

    async def _take(self, partition: int) -> _Held | None:
        """The partition, if nobody else has it: folded, and an epoch of its own begun. Another
        worker's later one ends ours.
        """
        hold = self._locks.hold(f"snapshot:{partition}", HOLD_MS)
        if not await hold.take():
            return None
        held = self._held[partition] = _Held(hold, self._background.start(hold.keep(), "keep snapshot"))
        try:
            mark = await self._log.append(self._catalog.snapshot_topic, partition, None, key=EPOCH)
            held.folded = await self._reader.read(partition)
        except BaseException:
            await self._held.pop(partition).stop()
            raise
        held.folded.begin(mark.offset)
        return held

    async def _write(self, partition: int, held: _Held) -> None:
        """Snapshots of what changed, then the position. Stops where the lock is lost: what is
        written then, nobody reads.
        """
        topic, folded = self._catalog.snapshot_topic, held.folded
        if not folded.changed:
            return
        await self._catalog.sync()
        gone = [unit for unit in folded.units if unit.incarnation not in self._catalog.by_incarnation]
        for unit in gone:
            folded.changed.discard(unit)
            del folded.units[unit]
            folded.replaced.add(snapshot_key(unit, folded.epoch))
        changed = list(folded.changed)
        for at in range(0, len(changed), SIDE_BY_SIDE):
            if not held.hold.is_valid:
                return
            await asyncio.gather(
                *(self._write_unit(partition, folded, unit) for unit in changed[at : at + SIDE_BY_SIDE])
            )
        folded.note_written()
        if not folded.changed and held.hold.is_valid:
            reached("snapshot.before_position")
            await self._log.append(
                topic, partition, encode(PositionRecord(folded.offset, folded.at_ms)), key=position_key(folded.epoch)
            )
            await self._drop_replaced(partition, folded)

    async def _write_unit(self, partition: int, folded: FoldedJournal, unit: Unit) -> None:
        # In a thread: a quarter of a million open deliveries take half a second.
        value = await asyncio.to_thread(_encoded, folded.units[unit], unit)
        key = snapshot_key(unit, folded.epoch)
        reached("snapshot.before_append")
        try:
            await self._log.append(self._catalog.snapshot_topic, partition, value, key=key)
        except MessageTooLarge:
            # The one before it stays good, and the position stays with it.
            logger.warning("action=snapshot unit=%s bytes=%d outcome=too large", key.decode(), len(value))
        else:
            self._counters.count("snapshots_total")
            folded.changed.discard(unit)

    async def _drop_replaced(self, partition: int, folded: FoldedJournal) -> None:
        """Deletes what earlier epochs wrote, and snapshots of queues that are gone: a later epoch's
        keys are none of ours.
        """
        keys = list(folded.replaced)
        for at in range(0, len(keys), SIDE_BY_SIDE):
            some = keys[at : at + SIDE_BY_SIDE]
            await asyncio.gather(
                *(self._log.append(self._catalog.snapshot_topic, partition, None, key=key) for key in some)
            )
            folded.replaced.difference_update(some)


def _encoded(history: UnitState, unit: Unit) -> bytes:
    return encode(history.snapshot(unit.incarnation, unit.partition, now_ms()))
