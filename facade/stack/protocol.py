"""uvicorn's HTTP protocol, writing once where it writes twice.

uvicorn writes the head and the body of a reply apart, and uvloop makes a system call of each: the second wakes the client once more.
Neighbours: `worker` hands it to uvicorn. It must not know HTTP.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Together:
    """A transport that sends what one tick of the loop writes in one write, before anything else is done with it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Sends `data` at the end of this tick."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, []
            self._transport.writelines(held)

    def is_closing(self) -> bool:
        """As the transport's. uvicorn asks after every reply: no reason to send sooner."""
        return self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        # Closing, asking for the size of the buffer, and so on: what was written before counts.
        self._flush()
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """As uvicorn's."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Together(transport, self.loop))  # type: ignore[arg-type]
