"""The plane's connection to Redis: Python judges it by the fence of its own, and gives it the time
of the service.
"""

from __future__ import annotations

from engine.plane import library as lib
from engine.plane.library import Library
from state.redis.connection import Connection
from state.redis.server import Server


class Link:
    """Tells the plane when its connection may be used: the server is that of `connection`, and the
    fence admits it.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._library: Library | None = None
        self._link: tuple[int, str] = (0, "")

    @property
    def is_up(self) -> bool:
        """Whether the plane has a connection to a server that may be used."""
        return bool(self._link[1])

    def start(self, library: Library) -> None:
        """Tells a plane of the time and the fence from now on."""
        self._library = library
        self._connection.fence.tell(self._tell_fence)
        self._connection.clock.tell(self._tell_clock)
        self._tell_clock()

    def stop(self) -> None:
        """Tells nothing more."""
        self._library = None

    def greeted(self, link: int, server: Server) -> None:
        """Takes note that the plane has a connection to a server; 0 = it has none any more."""
        self._link = (link, "" if server.evicts or server.is_replica else server.run_id)
        self._tell_fence()

    def _tell_clock(self) -> None:
        clock = self._connection.clock
        if self._library is not None and clock.is_set:
            self._library.tell(
                lib.CLOCK, [*(repr(fact).encode() for fact in clock.facts), clock.keep_ms, clock.early_ms]
            )

    def _tell_fence(self) -> None:
        fence, (link, run_id) = self._connection.fence, self._link
        if self._library is None or not link:
            return
        if run_id == self._connection.run_id and fence.admits(self._connection.life):
            self._library.tell(lib.ADMIT, [link, repr(min(fence.until, 1e15)).encode()])
        else:
            self._library.tell(lib.SHUT, 0)
            if self._connection.connected and run_id != self._connection.run_id:
                self._library.tell(lib.LEAVE, link)
