"""What all connections of a worker's RocketMQ port share: how many there may be, and from where,
how many calls, and room for what comes.

A connection on which nobody known has called is a stranger's: of those there are few, and each is
closed after ten seconds.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final

from facade.http.bounds.connections import Connections, Idle
from facade.http.bounds.shares import MIB, Shares

HELD_BYTES: Final = 64 * MIB  # of all requests of a worker that are not answered; large ones have half of it
MOST_CALLS: Final = 40_000  # at once, of a worker
MOST_STRANGERS: Final = 512  # connections on which nobody known has called
STRANGERS_OF_PEER: Final = 256
PEER_PART: Final = 2  # an address has one such part of all connections


class Port:
    """Of one worker, for one event loop."""

    def __init__(self, most_connections: int) -> None:
        self.connections = Connections(most_connections)
        self.shares = Shares(HELD_BYTES)
        self.calls = 0
        self._answered = asyncio.Event()
        self.there: set[Idle] = set()
        self._strangers: dict[Idle, None] = {}  # the oldest first
        self._strangers_of: Counter[str] = Counter()
        self._of: Counter[str] = Counter()

    def enter(self, connection: Idle, now: float) -> bool:
        """Counts a connection that has come, of somebody unknown, and returns whether it may stay;
        another may be closed for it.
        """
        peer = connection.peer
        self.there.add(connection)
        self._of[peer] += 1
        self._strangers[connection] = None
        self._strangers_of[peer] += 1
        if self._of[peer] > max(self.connections.most // PEER_PART, 1):
            self.connections.note_refused()
            return False
        if self._strangers_of[peer] > STRANGERS_OF_PEER:
            self._close_oldest(one for one in self._strangers if one.peer == peer)
        elif len(self._strangers) > MOST_STRANGERS:
            self._close_oldest(iter(self._strangers))
        return self.connections.enter(self.there, now)

    def identified(self, connection: Idle) -> None:
        """Somebody known has called on it."""
        if connection in self._strangers:
            del self._strangers[connection]
            _less(self._strangers_of, connection.peer)

    def begin(self) -> bool:
        """Counts a call, and returns whether there is room for it."""
        if self.calls >= MOST_CALLS:
            return False
        self.calls += 1
        return True

    def end(self) -> None:
        """A call is done with."""
        self.calls -= 1
        if not self.calls:
            self._answered.set()

    async def all_answered(self) -> None:
        """Returns when no call is under way."""
        while self.calls:
            self._answered.clear()
            await self._answered.wait()

    def leave(self, connection: Idle) -> None:
        """A connection is no more."""
        if connection not in self.there:
            return
        self.identified(connection)
        self.there.discard(connection)
        _less(self._of, connection.peer)

    def _close_oldest(self, some: Iterator[Idle]) -> None:
        self.connections.note_refused()
        next(some).close()


def _less(numbers: Counter[str], peer: str) -> None:
    numbers[peer] -= 1
    if not numbers[peer]:
        del numbers[peer]
