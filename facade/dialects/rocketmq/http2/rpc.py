"""One call of a client: its metadata, the messages that come, the answers that go.

A handler learns who calls from the metadata, says so by `identify`, and then asks for a message:
only then does a large body get room to come, and a body without room is refused. What strangers
send is thus no more than the first window of a stream, and is dropped with the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from engine.errors import EngineError, Overloaded
from facade.dialects.rocketmq.http2.framing import PREFIX, CallEnded, GrpcStatus, end, message_of, size_of
from facade.http.bounds.pace import Pace
from facade.http.bounds.shares import GAVE_WAY, Share, Shares

WINDOW_BYTES: Final = 65_535  # of a stream, before its handler asks for a message


class Carrier(Protocol):
    """The connection, as a call sees it."""

    def identified(self) -> None:
        """Somebody known has called."""

    def open_window(self, number: int, size: int) -> None:
        """Lets the client send so much more on a stream."""

    async def send(self, rpc: Rpc, data: bytes) -> None:
        """Returns when the client has room for the last of it. Raises Gone."""


class Gone(Exception):
    """The client of a call is gone, or reads nothing."""


class Rpc:
    """Belongs to one event loop. `deadline` is a time of it, None = the client sets none."""

    def __init__(
        self,
        carrier: Carrier,
        number: int,
        path: str,
        metadata: Mapping[str, str],
        peer: str,
        deadline: float | None,
        shares: Shares,
    ) -> None:
        self.path = path
        self.metadata = metadata
        self.peer = peer
        self.number = number
        self.deadline = deadline
        self.is_over = False  # by the client: nothing can be answered
        self.is_begun = False  # an answer has begun
        self.is_whole = False  # the client sends no more
        self._carrier = carrier
        self._shares = shares
        self._holder = peer
        self._came = bytearray()
        self._taken = 0  # bytes of messages that were taken
        self._granted = WINDOW_BYTES  # bytes that the client may have sent so far
        self._size: int | None = None  # of the message that comes
        self._share: Share | None = None
        self._held: list[int] = []  # sizes of whole messages
        self._pace = Pace()
        self._refusal: EngineError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def left_s(self) -> float | None:
        """Until the client's deadline; None = it has none."""
        return None if self.deadline is None else self.deadline - asyncio.get_running_loop().time()

    def identify(self, holder: str) -> None:
        """Says who calls: what comes is counted for them."""
        self._holder = holder
        self._carrier.identified()

    async def message(self, *, first: bool = True) -> bytes | None:
        """The next message; None = the client sends no more. One that is not the `first` may begin
        to come at any time. Raises CallEnded, Overloaded.
        """
        loop = asyncio.get_running_loop()
        self._pace.note(0, loop.time(), in_body=True, first=True)
        if not first:
            self._grant(WINDOW_BYTES)
        while True:
            if self._refusal is not None:
                raise self._refusal
            if (found := self._whole()) is not None:
                return found
            if self.is_whole:
                if self._came:
                    end(GrpcStatus.INTERNAL, "the request ends within a message")
                return None
            self._waiter = loop.create_future()
            try:
                async with asyncio.timeout(self._pace.left_s(loop.time()) if first or self._came else None):
                    await self._waiter
            except TimeoutError:
                if self._pace.left_s(loop.time()) <= 0:
                    raise CallEnded(GrpcStatus.RESOURCE_EXHAUSTED, "the request comes too slowly") from None
            finally:
                self._waiter = None

    async def write(self, body: bytes) -> None:
        """Answers with a message. Raises Gone."""
        await self._carrier.send(self, message_of(body))

    def came(self, data: bytes, now: float) -> None:
        """Some of a message has come."""
        self._pace.note(len(data), now, in_body=True, first=not self._came)
        self._came += data
        self._wake()

    def begin(self) -> bool:
        """Notes that the answer begins, and returns whether it had not yet."""
        is_first, self.is_begun = not self.is_begun, True
        return is_first

    def leave(self) -> None:
        """Notes that the client hears no answer any more."""
        self.is_over = True

    def ended(self) -> None:
        """The client sends no more."""
        self.is_whole = True
        self._wake()

    def close(self) -> None:
        """The call is done with: what it has held is free."""
        if self._share is not None:
            self._shares.end(self._share)
            self._share = None
        for size in self._held:
            self._shares.release(size)
        self._held.clear()
        self._came.clear()

    def _whole(self) -> bytes | None:
        """The message if it is whole; else there is room for it to come. Raises CallEnded,
        Overloaded.
        """
        if self._size is None and len(self._came) >= PREFIX:
            self._size = PREFIX + size_of(self._came)
        size = self._size
        if size is None or len(self._came) < size:
            self._reserve(size)
            return None
        if self._share is not None:
            share, self._share = self._share, None
            self._shares.whole(share)
            self._held.append(share.bytes)
        else:
            self._shares.take(size)
            self._held.append(size)
        found = bytes(memoryview(self._came)[PREFIX:size])
        del self._came[:size]
        self._size = None
        self._taken += size
        return found

    def _reserve(self, size: int | None) -> None:
        if self._share is None:
            if not self._came:
                return
            self._share = self._shares.begin(self._holder, self._give_way)
        wanted = size if size is not None else PREFIX
        if wanted > self._share.bytes:
            share = self._share
            try:
                self._shares.grow(share, wanted - share.bytes)
            except Overloaded:
                self._share = None
                raise
            self._grant(wanted)

    def _grant(self, size: int) -> None:
        """Lets so much come behind what was taken."""
        more = self._taken + size - self._granted
        if more > 0 and not self.is_whole:
            self._granted += more
            self._carrier.open_window(self.number, more)

    def _give_way(self) -> None:
        self._share = None
        self._refusal = Overloaded(GAVE_WAY.detail)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
