"""The units that a rebuild owns: taken in groups, and renewed from the first one on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from types import TracebackType

from engine.journal.outbox import LEASE_MS, REBUILD_LEASE_MS
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.failpoints import reached
from state.errors import StateError
from state.keys import Unit
from state.replies import Owned
from state.upkeep import UpkeepScripts


class Holding:
    """Owns units for as long as its block lasts; then their leases are those of any owner again, so
    that nobody waits for long when this worker dies.

    `held` is told which they are. Whoever takes one meanwhile fences it by its epoch.
    """

    def __init__(self, upkeep: UpkeepScripts, worker: str, background: Background, held: set[Unit], lease_ms: int = 0) -> None:
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

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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
