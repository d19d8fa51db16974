"""What an owner sees to beside loading: it asks for the leases of its units anew, in groups, first
those that end first; learns whether Kafka has in its journal what scripts did to a unit; and
reports how far units are behind, as offsets of consumer groups, so that tools of Kafka show the lag
of each tag.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.journal.outbox import LEASE_MS, REBUILD_LEASE_MS
from engine.loading.loader import Loader, Rebuilding
from engine.log import Log
from engine.rules.queue import Queue
from engine.window.batches.skips import Skips
from runtime.cancel import before
from schemas.topics import group_name
from state.errors import StateError
from state.keys import Unit
from state.replies import Owned
from state.upkeep import UpkeepScripts

RENEW_S = LEASE_MS / 3000


class Renewals:
    """Leases of units that this worker owns or wants. `rebuilder` holds some for longer."""

    def __init__(self, upkeep: UpkeepScripts, worker: str, rebuilder: Rebuilding) -> None:
        self._upkeep = upkeep
        self._worker = worker
        self._rebuilder = rebuilder
        self._due_at: dict[Unit, float] = {}

    def is_due(self, unit: Unit, now: float) -> bool:
        """Whether its lease is to be asked for at that time of the loop."""
        return self._due_at.get(unit, 0) <= now

    def forget(self, unit: Unit) -> None:
        """Has the lease of a unit asked for at the next look, if it is still wanted."""
        self._due_at.pop(unit, None)

    async def ask(self, units: Sequence[Unit]) -> AsyncIterator[tuple[Unit, Owned]]:
        """Takes or renews leases, and gives what it learned of each. Raises StateUnavailable."""
        now = asyncio.get_running_loop().time()
        # New ones are asked for last.
        ordered = sorted(units, key=lambda unit: self._due_at.get(unit, now))
        held: list[Unit] = []
        others: list[Unit] = []
        for unit in ordered:
            (held if self._rebuilder.holds(unit) else others).append(unit)
        for some, lease_ms in ((others, LEASE_MS), (held, REBUILD_LEASE_MS)):
            async for unit, owned in self._upkeep.own_each(some, self._worker, lease_ms=lease_ms):
                wait_s = RENEW_S if owned.ours else min(owned.number, 1000) / 1000
                self._due_at[unit] = asyncio.get_running_loop().time() + wait_s
                yield unit, owned


LOOK_S = 0.02


class Journaled:
    """`owned`: the units of this worker. `note_use` has somebody own a unit."""

    def __init__(
        self,
        upkeep: UpkeepScripts,
        catalog: Catalog,
        owned: Mapping[Unit, Loader],
        note_use: Callable[[Queue, int], None],
    ) -> None:
        self._upkeep = upkeep
        self._catalog = catalog
        self._owned = owned
        self._note_use = note_use

    async def wait(self, queue: Queue, partition: int, seq: int, until: float) -> None:
        """Returns when the journal has entry `seq` of a unit.

        Raises LogUnavailable at `until` (loop time), or when Redis lost its state before the
        journal had it (the outcome is unknown).
        """
        await before(until, self._wait(queue, partition, seq), self._late(queue, seq))

    async def reach(self, queue: Queue, partition: int, seq: int, until: float) -> None:
        """As `wait`, for an entry that the journal may have had for long: that is looked at before
        anything is drained, so a drain that stands still keeps nobody who need not wait.
        """
        with contextlib.suppress(StateError):
            if await before(until, self._has(queue, queue.units[partition], seq), self._late(queue, seq)):
                return
        await self.wait(queue, partition, seq, until)

    @staticmethod
    def _late(queue: Queue, seq: int) -> Callable[[], LogUnavailable]:
        late = (
            f"the journal of queue {queue.name!r} did not come to entry {seq} in time: "
            "what was done may be forgotten with Redis"
        )
        return lambda: LogUnavailable(late)

    async def _wait(self, queue: Queue, partition: int, seq: int) -> None:
        unit = queue.units[partition]
        while True:
            loader = self._owned.get(unit)
            with contextlib.suppress(StateError):
                if loader is not None:
                    await loader.outbox.drained()
                if await self._has(queue, unit, seq):
                    return
            self._note_use(queue, partition)
            await asyncio.sleep(LOOK_S)

    async def _has(self, queue: Queue, unit: Unit, seq: int) -> bool:
        """Whether the journal has the entry. Raises LogUnavailable, StateError."""
        generation = self._catalog.generation
        base, drained = await self._upkeep.drained_seq(unit)
        if seq <= base:
            raise LogUnavailable(
                f"the state of queue {queue.name!r} was lost before the journal had this: it may be forgotten"
            )
        if drained >= seq:
            await self._still(queue, generation)
        return drained >= seq

    async def _still(self, queue: Queue, generation: int) -> None:
        """Returns when no other life of Redis was named before this call: then the journal had the
        entry before the entry that begins a later life, and every reader takes it. Concurrent
        callers share a look.
        """
        await self._catalog.sync()
        if self._catalog.generation != generation:
            raise LogUnavailable(
                f"another Redis came into use for queue {queue.name!r} meanwhile: this may be forgotten"
            )

    def lag_s(self) -> float:
        """How long the oldest entry of the units owned here has waited for the journal, in seconds;
        0 = none waits.
        """
        since = [loader.outbox.waiting_since_ms for loader in self._owned.values() if loader.outbox.waiting_since_ms]
        return max(0.0, (self._upkeep.units.now_ms() - min(since)) / 1000) if since else 0.0


# A batch holds a partition up for 40 s at most. What does so for longer needs somebody's attention.
STOPPED_S = 60.0


class LagReporter:
    """What was committed last, by incarnation, partition and tag. One task at a time may
    `commit`.
    """

    def __init__(self, prefix: str, log: Log, upkeep: UpkeepScripts, catalog: Catalog) -> None:
        self._prefix = prefix
        self._log = log
        self._upkeep = upkeep
        self._catalog = catalog
        self._committed: dict[tuple[str, int, int], int] = {}

    async def commit(self, loaders: Sequence[Loader]) -> None:
        """Commits the floors that have changed; a unit whose state is lost is left out. Raises
        LogUnavailable.
        """
        groups: dict[str, dict[tuple[str, int], int]] = {}
        floors: dict[str, dict[tuple[str, int, int], int]] = {}
        for loader in loaders:
            queue = loader.queue
            with contextlib.suppress(StateError):
                counts = await self._upkeep.info(loader.unit, self._catalog.generation, queue.tag_ids)
                for tag, count in zip(queue.tags, counts, strict=True):
                    key = (queue.incarnation, loader.partition, tag.id)
                    if self._committed.get(key) != count.floor:
                        group = group_name(self._prefix, queue.name, tag.name)
                        groups.setdefault(group, {})[(queue.topic, loader.partition)] = count.floor
                        floors.setdefault(group, {})[key] = count.floor
        for group, offsets in groups.items():
            await self._log.commit_group_offsets(group, offsets)
            self._committed.update(floors[group])

    def forget(self, incarnation: str) -> None:
        """A queue is gone."""
        self._committed = {key: floor for key, floor in self._committed.items() if key[0] != incarnation}


class Troubles:
    """Of the units that this worker owns."""

    def __init__(self, owned: Mapping[Unit, Loader], skips: Skips) -> None:
        self._owned = owned
        self._skips = skips

    def _loaders(self, queue: Queue) -> list[Loader]:
        return [loader for unit in queue.units if (loader := self._owned.get(unit))]

    def stalled_partitions(self, queue: Queue) -> int:
        """Returns in how many partitions nothing was loaded for STOPPED_S though Kafka has more and
        the window has room.
        """
        before = asyncio.get_running_loop().time() - STOPPED_S
        return sum(loader.stuck_at is not None and loader.stuck_at[1] < before for loader in self._loaders(queue))

    def behind_transactions(self, queue: Queue) -> int:
        """Returns how many records lie behind transactions of Kafka that are open for long."""
        return sum(loader.behind_transaction() for loader in self._loaders(queue))

    def skipped(self, queue: Queue) -> int:
        """Returns how many records of a queue were settled unseen here in the last hour."""
        return self._skips.recent(queue)
