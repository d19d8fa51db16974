"""Looks after the transactions of shards: checks when they are due, ends what nobody decides,
finishes what a dead worker began, forgets what is over.

Each shard has one keeper, by a lock in Redis. A keeper that was stopped and goes on after its
successor does no harm: a check has a number that counts once, a decision counts only if it is the
first in the log, what follows from one is idempotent (`finisher.py`), and nothing is forgotten that
is not done.
"""

from __future__ import annotations

import asyncio

from engine.errors import EngineError
from engine.transactions.checks import Checks
from engine.transactions.half_log import HalfLog
from engine.transactions.rounds import DueChecks, Endings, Leftovers
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.service import Periodic
from state.errors import StateError
from state.redis.lock import Hold, Locks

ROUND_S = 1.0
HOLD_MS = 6_000


class _Shard:
    def __init__(self, hold: Hold, renewal: asyncio.Task[None]) -> None:
        self.hold = hold
        self.renewal = renewal

    async def stop(self) -> None:
        await cancel_all(self.renewal)
        await self.hold.give_up()


class Keeper:
    """Keeps the shards that no other worker keeps."""

    def __init__(
        self, locks: Locks, half_log: HalfLog, checks: Checks, endings: Endings, due_checks: DueChecks, leftovers: Leftovers
    ) -> None:
        self._locks = locks
        self._half_log = half_log
        self._checks = checks
        self._works = (endings.end_gone, due_checks.check_due, leftovers.take_up, leftovers.forget)
        self._held: dict[int, _Shard] = {}
        self._background = Background()
        self._service = Periodic("keep_transactions", self.run_once, ROUND_S, quiet=(EngineError, StateError))

    async def start(self) -> None:
        await self._service.start()

    async def stop(self) -> None:
        """Ends the rounds, and lets other workers go on at once."""
        await self._service.stop()
        held, self._held = self._held, {}
        await asyncio.gather(*(each.stop() for each in held.values()))

    async def run_once(self) -> None:
        """One round over the shards that this worker keeps. Raises LogUnavailable,
        StateUnavailable.
        """
        self._checks.forget_decided()
        await self._half_log.sync_all()
        await asyncio.gather(*[self._keep(shard) for shard in range(self._half_log.shards)])

    async def _keep(self, shard: int) -> None:
        held = self._held.get(shard)
        if held is not None and not held.hold.is_valid:
            await self._held.pop(shard).stop()
            held = None
        if held is None:
            hold = self._locks.hold(f"half:{shard}", HOLD_MS)
            if not await hold.take():
                return
            held = self._held[shard] = _Shard(hold, self._background.start(hold.keep(), "keep half"))
        for work in self._works:
            if not held.hold.is_valid:
                return
            await work(shard)
