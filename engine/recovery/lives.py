"""The units that a rebuild owns: taken in groups, and renewed from the first one on. Each begins a
new life by an entry in the journal, which says what was of those before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from types import TracebackType

from engine.errors import Rebuilding
from engine.journal.fold import UnitState
from engine.journal.outbox import LEASE_MS, REBUILD_LEASE_MS, Journal
from engine.journal.reader import FoldedJournal, JournalReader
from engine.rules.queue import Queue
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import now_ms
from runtime.failpoints import reached
from schemas.records import JournalEntry, JournalRecord
from schemas.vocabulary import EventKind, Reason
from state.errors import StateError
from state.keys import Unit
from state.replies import Owned
from state.upkeep import UpkeepScripts


class Holding:
    """Owns units for as long as its block lasts; then their leases are those of any owner again, so
    that nobody waits for long when this worker dies.

    `held` is told which they are. Whoever takes one meanwhile fences it by its epoch.
    """

    def __init__(
        self, upkeep: UpkeepScripts, worker: str, background: Background, held: set[Unit], lease_ms: int = 0
    ) -> None:
        self._upkeep = upkeep
        self._worker = worker
        self._background = background
        self._held = held
        self._lease_ms = lease_ms or REBUILD_LEASE_MS
        self._units: dict[Unit, None] = {}
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Holding:
        self._keeper = self._background.keep(self._keep, "keep_units")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.difference_update(self._units)
        await cancel_all(self._keeper)
        await self._renew(LEASE_MS)

    async def take(self, units: Sequence[Unit]) -> AsyncIterator[tuple[Unit, Owned]]:
        """Takes the leases of units that nobody has, and gives what it learned of each. Raises
        StateError.
        """
        async for unit, owned in self._upkeep.own_each(units, self._worker, lease_ms=self._lease_ms):
            if owned.ours:
                self.add(unit)
            reached("rebuild.taken")
            yield unit, owned

    def add(self, unit: Unit) -> None:
        """Keeps a unit that this worker owns already."""
        self._units[unit] = None
        self._held.add(unit)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 3000)
            await self._renew(self._lease_ms)

    async def _renew(self, lease_ms: int) -> None:
        with contextlib.suppress(StateError):
            async for unit, owned in self._upkeep.own_each(list(self._units), self._worker, lease_ms=lease_ms):
                if not owned.ours:
                    self._units.pop(unit, None)


# Seqs (= nonces) given out after the last drained entry are unknown: those of the next life begin
# far above them.
SEQ_GAP = 1_000_000


class Life:
    """A new life of a unit: entries have higher numbers than `seq`. `adopted`: its state in Redis
    is kept as it is.
    """

    __slots__ = ("adopted", "history", "seq")

    def __init__(self, seq: int, history: UnitState, adopted: bool) -> None:
        self.seq = seq
        self.history = history
        self.adopted = adopted

    def note(self, record: JournalRecord) -> None:
        """Sees what came after the journal was read, up to the entry that begins this life: Redis
        does not have it.
        """
        if any(self.history.last_seq < entry.seq < self.seq for entry in record.entries):
            self.adopted = False


class Lives:
    """Begins lives, for rounds that follow each other: each partition of the journal is read once,
    and from then on only what has come since.
    """

    def __init__(self, journal: Journal, reader: JournalReader, upkeep: UpkeepScripts) -> None:
        self._journal = journal
        self._reader = reader
        self._upkeep = upkeep
        self._folded: dict[int, FoldedJournal] = {}
        self._begun: dict[Unit, Life] = {}

    async def begin(
        self, queues: Mapping[Unit, Queue], older: Iterable[Unit], check: Callable[[Unit], Awaitable[None]]
    ) -> tuple[dict[Unit, Life], dict[Unit, Exception]]:
        """The lives of units, after an entry in the journal that begins each; and why one has none.
        `older`: those of which Redis has a state of an earlier generation. `check` raises Fenced
        when another worker has taken a unit. Raises LogUnavailable.

        The time of a life is from before its check, and the check from after the journal was read:
        who takes a unit later begins a later life, and who took it meanwhile has begun the one that
        counts.

        An owner of before that was stopped may append what it had drained at any time: what comes
        before our entry counts for every reader, what comes after it has a lower seq than that and
        counts for none.
        """
        partitions = sorted({self._journal.partition_of(unit) for unit in queues})
        await self._read(partitions)
        older = list(older)
        held = dict(zip(older, await asyncio.gather(*(self._upkeep.last_seq(unit) for unit in older)), strict=True))
        time_ms = self._upkeep.units.now_ms()
        failed = await _failed(queues, check)
        lives: dict[Unit, Life] = {}
        for unit in queues.keys() - failed.keys():
            history = self._folded[self._journal.partition_of(unit)].units.setdefault(unit, UnitState())
            known = held.get(unit, -1)
            # Redis was started again and had lost nothing: its state has every entry of the
            # journal, so it is the true one.
            lives[unit] = Life(next_life(max(known, history.last_seq), time_ms), history, known >= history.last_seq)
        reached("rebuild.before_append")
        failed |= await _failed(lives, lambda unit: self._append(queues[unit], unit, lives[unit].seq))
        self._begun = lives
        await self._read(partitions)
        for unit, life in lives.items():
            if life.history.last_seq != life.seq:
                failed.setdefault(unit, Rebuilding("the journal went on while it was read"))
        return {unit: life for unit, life in lives.items() if unit not in failed}, failed

    async def _read(self, partitions: Iterable[int]) -> None:
        await asyncio.gather(*(self._read_one(partition) for partition in partitions))

    async def _read_one(self, partition: int) -> None:
        folded = self._folded.get(partition)
        if folded is None:
            self._folded[partition] = await self._reader.read(partition)
        else:
            await self._reader.follow(partition, folded, self._note)

    def _note(self, unit: Unit, record: JournalRecord) -> None:
        if (life := self._begun.get(unit)) is not None:
            life.note(record)

    async def _append(self, queue: Queue, unit: Unit, seq: int) -> None:
        """An entry that says only which seq is used up (of nothing below offset 0 anything is
        open).
        """
        entry = JournalEntry(seq, now_ms(), EventKind.FLOOR.value, 0, [0], [], Reason.REBUILT.value)
        await self._journal.append(queue.name, unit, [entry])


async def _failed(units: Iterable[Unit], work: Callable[[Unit], Awaitable[None]]) -> dict[Unit, Exception]:
    """Does `work` for all, and returns why it failed for some."""
    units = list(units)
    ends = await asyncio.gather(*map(work, units), return_exceptions=True)
    return {unit: error for unit, error in zip(units, ends, strict=True) if isinstance(error, Exception)}


def next_life(last_seq: int, time_ms: int) -> int:
    """The seq that a unit goes on from: above all of its lives before, also of one of which nothing
    was drained, and below those of whoever begins one later: so by the time of the service, which
    all workers share.
    """
    return max(last_seq + SEQ_GAP, time_ms << 10)
