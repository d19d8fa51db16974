"""Connections whose TLS handshake is under way: as many as there is room for, each for a while.

A protocol hears of a connection when its handshake is over, so who opens connections and says
nothing would not be counted by `connections`. When there is no room, the handshake that has taken
the longest is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Sized

from facade.http.bounds.connections import Connections
from runtime.background import Background

log = logging.getLogger("leaseway.http")

# A client that opens a connection and does not finish TLS's handshake is cut off then.
HANDSHAKE_S = 10.0
# Out of descriptors, say: then it is tried again.
AGAIN_S = 0.1


class Handshakes:
    """Accepts on `bound`, which stays the caller's; `protocol` makes what serves a connection,
    `there` has those that are served.
    """

    def __init__(
        self,
        bound: socket.socket,
        context: ssl.SSLContext,
        protocol: Callable[[], asyncio.Protocol],
        connections: Connections,
        there: Sized,
    ) -> None:
        self._bound = bound
        self._context = context
        self._protocol = protocol
        self._connections = connections
        self._there = there
        self._under_way: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._background = Background()

    def open(self, backlog: int) -> None:
        """Accepts from now on."""
        self._bound.listen(backlog)
        self._bound.setblocking(False)
        self._background.keep(self._serve, "accept TLS")

    async def stop(self) -> None:
        """Accepts nothing more, and cuts off the handshakes under way."""
        await self._background.stop()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                stream, _ = await loop.sock_accept(self._bound)
            except OSError as error:
                log.warning("action=accept error=%s", error)
                await asyncio.sleep(AGAIN_S)
                continue
            if len(self._under_way) + len(self._there) >= self._connections.most and self._under_way:
                oldest = next(iter(self._under_way))
                del self._under_way[oldest]
                oldest.cancel()
                self._connections.note_refused()
            task = self._background.start(self._begin(stream), "TLS handshake", awaited=True)
            self._under_way[task] = None
            task.add_done_callback(lambda done: self._under_way.pop(done, None))

    async def _begin(self, stream: socket.socket) -> None:
        """Until the handshake is over; what is wrong with it is the client's business."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError, TimeoutError):
            await loop.connect_accepted_socket(
                self._protocol, stream, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_S
            )
