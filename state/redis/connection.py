"""One RESP connection to Redis for a worker: all commands of a loop tick leave in one write."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from runtime.background import Background
from runtime.cancel import cancel_all
from state.clock.service_clock import ServiceClock
from state.clock.sightings import Sightings
from state.errors import StateUnavailable
from state.redis.address import redis_address
from state.redis.fence import Fence
from state.redis.server import Server, read_server
from state.redis.wire import CONNECT_S, REPLY_S, Argument, Wire, expect, opened

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 0.3
MUTE_S = 0.5
RECONNECT_S = (0.05, 0.1, 0.2, 0.5)


class Connection:
    """A connection that comes back by itself. Safe for any number of tasks of one loop. Raises
    BadAddress for a URL that is none of Redis'.
    """

    def __init__(self, url: str) -> None:
        self._address = redis_address(url)
        self.run_id = self.life = ""
        self.server = Server("")
        self.fence = Fence()
        self.sightings = Sightings()
        self.clock = ServiceClock()
        self._wire: Wire | None = None
        self._background = Background()
        self._keeper: asyncio.Task[None] | None = None
        self._first: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Returns when Redis has answered, or after CONNECT_S; the connection is tried for ever
        after.
        """
        if self._keeper is None:
            self._first = asyncio.get_running_loop().create_future()
            self._keeper = self._background.keep(self._keep, "connect")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._first), CONNECT_S)

    async def stop(self) -> None:
        if self._keeper is not None:
            await cancel_all(self._keeper)
            self._keeper = None
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def call(self, *arguments: Argument) -> asyncio.Future[Any]:
        """Sends a command; the future is its reply: bytes, int, list, None or a hiredis.ReplyError
        (as a value).

        Raises StateUnavailable (from here or from the future) when there is no connection; then the
        outcome is unknown.
        """
        if self._wire is None:
            raise StateUnavailable(f"no connection to Redis at {self.place}")
        return self._wire.call(arguments)

    def options(self) -> list[tuple[bytes, bytes]]:
        """What the URL says, by redis-py's names, for who connects by itself."""
        return self._address.options

    @property
    def place(self) -> str:
        """Where Redis is, for people."""
        return self._address.place

    @property
    def connected(self) -> bool:
        return self._wire is not None

    @property
    def is_mute(self) -> bool:
        """Whether a reply is due for longer than who can do without it should wait."""
        wire = self._wire
        return wire is not None and bool(wire.waiting) and wire.loop.time() - wire.heard > MUTE_S

    async def _keep(self) -> None:
        failures = 0
        while True:
            try:
                wire = await self._connect()
            except (OSError, TimeoutError, StateUnavailable) as error:
                if failures == 0:
                    logger.warning("action=connect part=redis at=%s error=%s", self.place, error)
                await asyncio.sleep(RECONNECT_S[min(failures, len(RECONNECT_S) - 1)])
                failures += 1
                continue
            failures = 0
            self._wire = wire
            if self._first is not None and not self._first.done():
                self._first.set_result(None)
            await self._watch(wire)
            self._wire = None

    async def _watch(self, wire: Wire) -> None:
        try:
            while not wire.closed.done():
                await asyncio.wait([wire.closed], timeout=1.0)
                if wire.stuck():
                    # A process that stood still itself has not read yet what came meanwhile.
                    await asyncio.wait([wire.closed], timeout=LOOK_AGAIN_S)
                if wire.stuck():
                    logger.warning("action=cut part=redis reason=no reply for %.0f s", REPLY_S)
                    wire.close()
                    await wire.closed
        finally:
            wire.close()

    async def _connect(self) -> Wire:
        wire = await opened(self._address, Wire)
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._greet(wire)
        except BaseException:
            wire.close()
            raise
        return wire

    async def _greet(self, wire: Wire) -> None:
        if self._address.database:
            await expect(wire, "SELECT", self._address.database)
        self.server = server = read_server(await expect(wire, "INFO"))
        if server.evicts:
            # An evicted key would be a lost lease that nobody notices.
            raise StateUnavailable(f"Redis must run with maxmemory-policy noeviction, it has {server.policy}")
        if server.is_replica:
            raise StateUnavailable(f"Redis at {self.place} is a replica")
        self.run_id = server.run_id
        self._note_life(server.life)

    async def look(self) -> None:
        """Asks the server again what it is. Raises StateUnavailable."""
        wire, reply = self._wire, await self.call("INFO")
        if isinstance(reply, bytes) and wire is self._wire:
            self.server = read_server(reply)
            self._note_life(self.server.life)

    def _note_life(self, life: str) -> None:
        """Takes in what the server has; of another life the fence knows nothing yet."""
        before, self.life = self.life, life
        if life != before:
            self.fence.changed()

    def leave(self, reason: str) -> None:
        """Cuts the connection; the next one looks the address up again."""
        if self._wire is not None:
            logger.warning("action=leave part=redis at=%s run_id=%s reason=%s", self.place, self.run_id, reason)
            self._wire.close()
