"""Locks among workers: at most one holder while Redis keeps the key, and a holder that knows when
it may no longer act.

A holder renews its lock until it gives it up. One that was stopped (SIGSTOP, a machine asleep)
finds by its own clock that the time is over, before it has asked anybody. Others find a dead one by
renewals that do not come (`state/clock/sightings.py`), or when its time is over by the clock of the
service. A lock makes work orderly; what a late holder writes is refused by the readers of what it
writes to (docs/decisions/0009).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from runtime.background import Background
from runtime.cancel import cancel_all
from state.errors import StateError, StateLost
from state.keys import lock_key
from state.redis.connection import Connection
from state.redis.script_caller import ScriptCaller


class LockBusy(StateError):
    """Somebody else holds the lock."""


class Hold:
    """A lock as its holder knows it. `take` and `renew` are for one task at a time; `is_valid` asks
    nobody and may be called always.
    """

    def __init__(self, connection: Connection, prefix: str, name: str, hold_ms: int) -> None:
        self._connection = connection
        self._scripts = ScriptCaller(connection)
        self._keys = (lock_key(prefix, name),)
        self._sightings = connection.sightings
        self._token = secrets.token_hex(8)
        self._hold_ms = hold_ms
        self._until = 0.0
        self._turn = -1

    @property
    def is_valid(self) -> bool:
        """Whether the lock is surely held still, by this process' clock; a tenth of the time is
        left for clocks that differ. One in a Redis that is not in use any more is not.
        """
        return asyncio.get_running_loop().time() < self._until and self._turn == self._connection.fence.turn

    async def take(self) -> bool:
        """Takes the lock unless somebody has it who renews it. Raises StateUnavailable."""
        (key,) = self._keys
        asked_at, seen = asyncio.get_running_loop().time(), self._sightings.over(key)
        reply = await self._scripts.run("lock", self._keys, (0, self._token, self._hold_ms, seen))
        if reply[0] == b"OK":
            self._sightings.forget(key)
        else:
            self._sightings.note(key, reply[1].decode(), _hold_ms(reply[1], self._hold_ms))
        return self._note(asked_at, reply)

    async def renew(self) -> bool:
        """Holds it for `hold_ms` from now; False = it is lost for good. Raises StateUnavailable (it
        may be held still).
        """
        asked_at = asyncio.get_running_loop().time()
        return self._note(asked_at, await self._scripts.run("keep", self._keys, (0, self._token, self._hold_ms)))

    def _note(self, asked_at: float, reply: list[bytes]) -> bool:
        held = reply[0] == b"OK"
        self._turn = self._connection.fence.turn
        self._until = asked_at + self._hold_ms * 0.9 / 1000 if held else 0.0
        return held

    async def keep(self) -> None:
        """Renews it three times in its time until it is lost; cancelled by who gives it up."""
        while self.is_valid:
            await asyncio.sleep(self._hold_ms / 3000)
            with suppress(StateError):
                await self.renew()

    async def give_up(self) -> None:
        """Lets others take it at once, when Redis can be reached; else it ends by itself."""
        self._until = 0.0
        with suppress(StateError):
            await self._scripts.run("unlock", self._keys, (self._token,))


def _hold_ms(value: bytes, ours: int) -> int:
    """How long the holder of a lock may go without a renewal, by what stands in the key."""
    parts = value.split()
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else ours


@asynccontextmanager
async def lock(
    connection: Connection, prefix: str, name: str, *, hold_ms: int, wait_s: float, lost_s: float | None = None
) -> AsyncIterator[Hold]:
    """Holds lock `name` to the end of the block: renewed meanwhile, lost after `hold_ms` without a
    renewal.

    Raises LockBusy after `wait_s`, StateLost after `lost_s` (None = `wait_s`) when no Redis came
    into use meanwhile, StateUnavailable without Redis.
    """
    hold = Hold(connection, prefix, name, hold_ms)
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        waited_s = loop.time() - began
        try:
            if await hold.take():
                break
            if waited_s > wait_s:
                raise LockBusy(name)
        except StateLost:  # until it is settled which Redis is in use
            if waited_s > (wait_s if lost_s is None else lost_s):
                raise
        await asyncio.sleep(0.02)
    keeper = Background().start(hold.keep(), f"keep {name}")
    try:
        yield hold
    finally:
        await cancel_all(keeper)
        await hold.give_up()


class Locks:
    """The locks of a service."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._connection = connection
        self._prefix = prefix

    def hold(self, name: str, hold_ms: int) -> Hold:
        """Returns a lock that is to be taken."""
        return Hold(self._connection, self._prefix, name, hold_ms)

    def held(
        self, name: str, *, hold_ms: int, wait_s: float, lost_s: float | None = None
    ) -> AbstractAsyncContextManager[Hold]:
        """Returns a context as `lock` does."""
        return lock(self._connection, self._prefix, name, hold_ms=hold_ms, wait_s=wait_s, lost_s=lost_s)
