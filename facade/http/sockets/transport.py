"""A connection of the native front as asyncio's transports are, and `facade.http.connection` on it.

Neighbours: `listener` makes both for each connection that asks what is not plain. This module must
not know how bytes become requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Iterable
from typing import Any

from facade.http import connection
from facade.http.cycle import Cycle
from facade.http.sockets.answers import ABORT, CLOSE, END_OUTPUT, PAUSE, REST, RESUME, WRITE, Answers

# What may wait for the client to read before its protocol has to wait;
# native/src/net/connection.rs has the same.
OUTPUT_BYTES = 64 * 1024


class Socket:
    """What is asked of a connection's socket; its descriptor is the front's."""

    def __init__(self, descriptor: Callable[[], int]) -> None:
        self.fileno = descriptor
        self._here: Any = None
        self._there: Any = None
        number = descriptor()
        if number >= 0:
            # A socket of Python's own closes its descriptor, so it gets one of its own.
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as own:
                self._here = own.getsockname()
                self._there = own.getpeername()  # of a client that has not left

    def getsockname(self) -> Any:
        return self._here

    def getpeername(self) -> Any:
        return self._there


class Transport(asyncio.Transport):
    """What is written, or asked for, is done when `answers` are taken. `flush(connection)` takes
    them now, and returns the bytes that its client has not read.
    """

    def __init__(
        self,
        connection: int,
        protocol: asyncio.Protocol,
        answers: Answers,
        descriptor: Callable[[int], int],
        flush: Callable[[int], int],
    ) -> None:
        super().__init__({"socket": Socket(lambda: descriptor(connection))})
        self._connection = connection
        self._protocol = protocol
        self._answers = answers
        self._flush = flush
        self._written = 0  # since a flush by us
        self._closes = False
        self._passes = 0

    def came(self) -> None:
        """Bytes have come for its protocol."""
        self._passes = (self._passes + 1) & 0xFFFF_FFFF

    def _do(self, deed: int, data: bytes = b"") -> None:
        self._answers.done.append((deed, self._connection, data))
        self._answers.soon()

    def rest(self) -> None:
        """The protocol has nothing under way: the front may read what comes next."""
        self._do(REST, self._passes.to_bytes(4))

    def write(self, data: Any) -> None:
        if self._closes:
            return
        self._do(WRITE, bytes(data))
        self._written += len(data)
        if self._written > OUTPUT_BYTES:
            self._written = 0
            # Who writes without a pause has to be stopped before the loop's next turn.
            if self._flush(self._connection) > OUTPUT_BYTES:
                self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self._flush(self._connection)

    def flush(self) -> None:
        """What waits for the front, of all connections, is given to it now."""
        self._written = 0
        self._flush(self._connection)

    def write_eof(self) -> None:
        self._do(END_OUTPUT)

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        if not self._closes:
            self._closes = True
            self._do(CLOSE)

    def abort(self) -> None:
        self._closes = True
        self._do(ABORT)

    def is_closing(self) -> bool:
        return self._closes

    def lost(self) -> None:
        """The connection is no more."""
        self._closes = True

    def pause_reading(self) -> None:
        self._do(PAUSE)

    def resume_reading(self) -> None:
        self._do(RESUME)


class Protocol(connection.Protocol):
    """Tells its transport when nothing is under way, so that the front may read what comes next.
    The front closes who asks nothing.
    """

    _transport: Transport

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._tell_rest()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._tell_rest()

    def reply(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, *, look: bool = False) -> bool:
        """As its base's. Who has to know whether the client gets it can't wait for the others of
        the turn: the front may find meanwhile that the client has left, and drop the reply.
        """
        if look:
            self._transport.flush()
        written = super().reply(status, headers, body, look=look)
        if look and written:
            self._transport.flush()
        return written

    def end(self, cycle: Cycle) -> None:
        super().end(cycle)
        self._tell_rest()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_over = True
        super().connection_lost(error)

    def _tell_rest(self) -> None:
        asked = self._running is not None or bool(self._behind) or self._headers is not None
        coming = self._reading is not None and self._reading.more_body
        ends = self._refusal is not None or self._is_over or self._transport.is_closing()
        if not (asked or coming or ends or self.paused or self._drain is not None):
            self._transport.rest()

    def _idle_left_s(self, now: float) -> float:
        return self._patience_s
