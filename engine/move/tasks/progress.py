"""What a redrive task has moved beyond what its record says: the journal knows, whoever was killed
before it could write that down.

A task's record counts what was moved before its positions. A runner that begins, or has failed,
reads here which dead letters from there on are the task's own work already: they are counted when
it passes them, others that are settled are not. And a position is written only when the journal has
what lies before it: else a loss of Redis would leave dead letters behind that position which were
moved, and open again.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.journal.outbox import Journal, journal_key
from engine.log import Log
from engine.rules.queue import Queue
from engine.window.window import Journaled, Window, reach_journal
from runtime.deadline import journal_until
from schemas.records import JournalRecord, TaskRecord
from schemas.records.moves import read_move
from schemas.vocabulary import LOG_TIME_MARGIN_MS, EventKind
from schemas.wire import UndecodableRecord, decode
from state.store import Store

# By partition, the offsets at or after a task's positions that it has moved, each with the address
# of the copy.
Moved = list[dict[int, str]]
Place = tuple[list[int], int]

CHUNK_RECORDS = 1_000
CHUNK_BYTES = 4_000_000


class Known(Struct, frozen=True):
    """What a runner knows to be moved beyond a place that it has written."""

    place: Place
    moved: Moved


def place_of(task: TaskRecord) -> Place:
    """What a runner changes by writing a record: with another one, somebody else has worked on the
    task.
    """
    return task.next_offsets, task.total


class Progress:
    """Reads the journal for what tasks have done. `wait_journaled(queue, partition, seq,
    until)` returns when the journal has an entry.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        catalog: Catalog,
        window: Window,
        journal: Journal,
        wait_journaled: Journaled,
    ) -> None:
        self._log = log
        self._store = store
        self._catalog = catalog
        self._window = window
        self._journal = journal
        self._wait_journaled = wait_journaled

    async def moved_beyond(self, queue: Queue, task: TaskRecord) -> Moved:
        """See above. Raises Unavailable: then nothing is known."""
        moved: Moved = [{} for _ in task.next_offsets]
        open_units = [p for p, end in enumerate(task.end_offsets) if task.next_offsets[p] < end]
        keys: dict[int, dict[bytes, int]] = {}
        until = journal_until()
        for partition in open_units:
            await reach_journal(self._window, self._store.upkeep, self._wait_journaled, (queue, partition), until)
            unit = queue.units[partition]
            keys.setdefault(self._journal.partition_of(unit), {})[journal_key(unit)] = partition
        for at, wanted in keys.items():
            await self._read(task, at, wanted, moved)
        return moved

    async def life(self, queue: Queue, partition: int) -> int:
        """Which life of its state a unit is in: a loss of Redis begins another. Raises
        Unavailable.
        """
        unit, tag = queue.units[partition], queue.tag(None).id

        async def ask(generation: int) -> int:
            # An empty Redis says 0, as the first life does: this finds that it is lost. First, for
            # another worker may rebuild it between the two.
            await self._store.leases.states(unit, generation, tag, ())
            base, _ = await self._store.upkeep.drained_seq(unit)
            return base

        return await self._window.call(queue, ask)

    async def journaled(self, queue: Queue, lives: Mapping[int, int]) -> None:
        """Returns when the journal has all that was done to units (by partition) since they were
        in these lives. Raises LogUnavailable when it never will, for Redis was lost meanwhile.
        """
        until = journal_until()
        for partition, life in lives.items():
            await reach_journal(self._window, self._store.upkeep, self._wait_journaled, (queue, partition), until)
            if await self.life(queue, partition) != life:
                raise LogUnavailable(
                    f"the state of queue {queue.name!r} was lost before the journal had what was moved"
                )

    async def _read(self, task: TaskRecord, at: int, wanted: dict[bytes, int], moved: Moved) -> None:
        topic, log = self._catalog.journal_topic, self._log
        part = (topic, at)
        offset = (await log.offsets_at([part], task.modified_at_ms - LOG_TIME_MARGIN_MS)).get(part)
        end = (await log.end_offsets([part])).get(part)
        if offset is None or end is None:
            raise LogUnavailable(f"{topic} can't be read")
        while offset < end:
            chunk = await log.fetch(topic, at, offset, CHUNK_RECORDS, CHUNK_BYTES)
            for record in chunk.records:
                partition = wanted.get(record.key or b"")
                if partition is not None and record.value:
                    found = _moved_by(task.id, record.value)
                    moved[partition] |= {
                        offset: copy for offset, copy in found if offset >= task.next_offsets[partition]
                    }
            offset = chunk.next_offset


def _moved_by(task: str, value: bytes) -> list[tuple[int, str]]:
    try:
        record = decode(value)
    except UndecodableRecord:
        return []
    if not isinstance(record, JournalRecord):
        return []
    moves = [(read_move(entry.reason), entry.offsets) for entry in record.entries if entry.kind == EventKind.MOVED]
    return [(offset, move.copy) for move, offsets in moves if move.task == task for offset in offsets]
