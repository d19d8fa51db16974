"""Whether Kafka has in its journal what scripts did to a unit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.loading.loader import Loader
from engine.rules.queue import Queue
from runtime.cancel import before
from state.errors import StateError
from state.keys import Unit
from state.upkeep import UpkeepScripts

LOOK_S = 0.02


class Journaled:
    """`owned`: the units of this worker. `note_use` has somebody own a unit."""

    def __init__(
        self, upkeep: UpkeepScripts, catalog: Catalog, owned: Mapping[Unit, Loader], note_use: Callable[[Queue, int], None]
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
        late = f"the journal of queue {queue.name!r} did not come to entry {seq} in time: what was done may be forgotten with Redis"
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
            raise LogUnavailable(f"the state of queue {queue.name!r} was lost before the journal had this: it may be forgotten")
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
            raise LogUnavailable(f"another Redis came into use for queue {queue.name!r} meanwhile: this may be forgotten")

    def lag_s(self) -> float:
        """How long the oldest entry of the units owned here has waited for the journal, in seconds;
        0 = none waits.
        """
        since = [loader.outbox.waiting_since_ms for loader in self._owned.values() if loader.outbox.waiting_since_ms]
        return max(0.0, (self._upkeep.units.now_ms() - min(since)) / 1000) if since else 0.0
