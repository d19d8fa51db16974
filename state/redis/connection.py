"""One RESP connection to Redis for a worker: all commands of a loop tick leave in one write.

Neighbours: `script_caller.py` calls scripts through it; redis-py reads the URL (`address.py`) and
is for the rare (`wake.py`). Must not know scripts or keys.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import re
from typing import Any, cast

import hiredis

from state.background import Background
from state.cancel import cancel_all
from state.errors import StateUnavailable
from state.redis.address import redis_address

logger = logging.getLogger(__name__)

CONNECT_S = 2.0
# A reply that takes longer means that Redis is stopped or unreachable: the connection is cut so
# that callers get an answer.
REPLY_S = 4.0
LOOK_AGAIN_S = 0.3
RECONNECT_S = (0.05, 0.1, 0.2, 0.5)

Argument = str | bytes | int


class _Wire(asyncio.Protocol):
    """Bytes in and out of one TCP connection; replies resolve futures in the order of the
    commands.
    """

    def __init__(self) -> None:
        self.reader = hiredis.Reader(notEnoughData=_NOTHING)
        self.waiting: collections.deque[asyncio.Future[Any]] = collections.deque()
        self.buffer: list[bytes] = []
        self.transport: asyncio.Transport | None = None
        self.closed = asyncio.get_running_loop().create_future()
        self.loop = asyncio.get_running_loop()
        self.heard = self.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's, they only behave so.
        self.transport = cast(asyncio.Transport, transport)

    def call(self, arguments: tuple[Argument, ...]) -> asyncio.Future[Any]:
        if self.closed.done():
            # The keeper has not noticed yet; a reply would never come.
            raise StateUnavailable("the connection to Redis is lost")
        future: asyncio.Future[Any] = self.loop.create_future()
        if not self.waiting:
            self.heard = self.loop.time()
        self.waiting.append(future)
        if not self.buffer:
            self.loop.call_soon(self._flush)
        self.buffer.append(hiredis.pack_command(arguments))  # type: ignore[arg-type]
        return future

    def _flush(self) -> None:
        # One that was cut a moment ago: who waits hears of it by `connection_lost`.
        if self.buffer and self.transport is not None and not self.transport.is_closing():
            self.transport.write(b"".join(self.buffer) if len(self.buffer) > 1 else self.buffer[0])
        self.buffer.clear()

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        self.heard = self.loop.time()
        while (reply := self.reader.gets()) is not _NOTHING:
            future = self.waiting.popleft()
            if not future.done():
                future.set_result(_unwrap_error(reply) if type(reply) is hiredis.ReplyError else reply)

    def connection_lost(self, error: Exception | None) -> None:
        while self.waiting:
            future = self.waiting.popleft()
            if not future.done():
                future.set_exception(StateUnavailable("the connection to Redis was lost before the reply"))
        if not self.closed.done():
            self.closed.set_result(None)

    def stuck(self) -> bool:
        return bool(self.waiting) and self.loop.time() - self.heard > REPLY_S

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()


_NOTHING = object()
# Redis 6.2 wraps what a command within a script was refused with: "ERR Error running script (...):
# ... -OOM command not allowed".
_WRAPPED = re.compile(r"-((?:OOM|READONLY|MISCONF|MASTERDOWN|CLUSTERDOWN) .*)", re.DOTALL)


def _unwrap_error(error: hiredis.ReplyError) -> hiredis.ReplyError:
    """An error reply that begins with its own word, whether or not a script was in between."""
    text = str(error)
    found = _WRAPPED.search(text) if text.startswith("ERR ") else None
    return error if found is None else hiredis.ReplyError(found[1])


class Connection:
    """A connection that comes back by itself. Safe for any number of tasks of one loop. Raises
    BadAddress for a URL that is none of Redis'.
    """

    def __init__(self, url: str) -> None:
        self._address = redis_address(url)
        self.run_id = ""
        self._wire: _Wire | None = None
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

    @property
    def place(self) -> str:
        """Where Redis is, for people."""
        return self._address.place

    @property
    def connected(self) -> bool:
        return self._wire is not None

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

    async def _watch(self, wire: _Wire) -> None:
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

    async def _connect(self) -> _Wire:
        loop, address = asyncio.get_running_loop(), self._address
        async with asyncio.timeout(CONNECT_S):
            if address.socket:
                _, wire = await loop.create_unix_connection(_Wire, address.socket)
            else:
                _, wire = await loop.create_connection(_Wire, address.host, address.port, ssl=address.tls)
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._greet(wire)
        except BaseException:
            wire.close()
            raise
        return wire

    async def _greet(self, wire: _Wire) -> None:
        if self._address.login:
            await self._expect(wire, "AUTH", *self._address.login)
        if self._address.database:
            await self._expect(wire, "SELECT", self._address.database)
        info: bytes = await self._expect(wire, "INFO")
        facts = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
        policy = facts.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            # An evicted key would be a lost lease that nobody notices.
            raise StateUnavailable(f"Redis must run with maxmemory-policy noeviction, it has {policy}")
        self.run_id = facts["run_id"]

    @staticmethod
    async def _expect(wire: _Wire, *arguments: Argument) -> Any:
        reply = await wire.call(arguments)
        if isinstance(reply, hiredis.ReplyError):
            raise StateUnavailable(f"Redis refused {arguments[0]!r}: {reply}")
        return reply
