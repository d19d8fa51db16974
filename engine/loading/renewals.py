"""When the leases of this worker's units are to be asked for, and asking: in groups, first those
that end first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from engine.journal.outbox import LEASE_MS, REBUILD_LEASE_MS
from engine.loading.loader import Rebuilding
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
