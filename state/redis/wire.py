"""The bytes of one connection to Redis, and how it is opened."""

from __future__ import annotations

import asyncio
import collections
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

import hiredis

from state.errors import StateUnavailable
from state.redis.address import RedisAddress

CONNECT_S = 2.0
# A reply that takes longer means that Redis is stopped or unreachable: the connection is cut so
# that callers get an answer.
REPLY_S = 4.0

Argument = str | bytes | int


class Wire(asyncio.Protocol):
    """Bytes in and out of one connection; replies resolve futures in the order of the commands."""

    def __init__(self) -> None:
        self.reader = hiredis.Reader(notEnoughData=NOTHING)
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
        while (reply := self.reader.gets()) is not NOTHING:
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


NOTHING = object()
# Redis 6.2 wraps what a command within a script was refused with: "ERR Error running script (...):
# ... -OOM command not allowed".
_WRAPPED = re.compile(r"-((?:OOM|READONLY|MISCONF|MASTERDOWN|CLUSTERDOWN) .*)", re.DOTALL)


def _unwrap_error(error: hiredis.ReplyError) -> hiredis.ReplyError:
    """An error reply that begins with its own word, whether or not a script was in between."""
    text = str(error)
    found = _WRAPPED.search(text) if text.startswith("ERR ") else None
    return error if found is None else hiredis.ReplyError(found[1])


Opened = TypeVar("Opened", bound=Wire)


async def opened(address: RedisAddress, make: Callable[[], Opened]) -> Opened:
    """A connection that Redis has let in. Raises OSError, TimeoutError, StateUnavailable."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(CONNECT_S):
        if address.socket:
            _, wire = await loop.create_unix_connection(make, address.socket)
        else:
            _, wire = await loop.create_connection(make, address.host, address.port, ssl=address.tls)
    try:
        async with asyncio.timeout(CONNECT_S):
            if address.login:
                await expect(wire, "AUTH", *address.login)
    except BaseException:
        wire.close()
        raise
    return wire


async def expect(wire: Wire, *arguments: Argument) -> Any:
    """The reply to a command. Raises StateUnavailable when Redis refuses it."""
    reply = await wire.call(arguments)
    if isinstance(reply, hiredis.ReplyError):
        raise StateUnavailable(f"Redis refused {arguments[0]!r}: {reply}")
    return reply
