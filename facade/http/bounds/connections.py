"""How many connections a worker has at once, and which of them end for a new one."""

from __future__ import annotations

import collections
import resource
from collections.abc import Collection, Iterator
from typing import Protocol

# Descriptors that are left to Kafka's and Redis' clients, files and the process.
OTHER_DESCRIPTORS = 256
# What may be raised to where the system names no limit.
MANY_DESCRIPTORS = 1_048_576
# A connection that nobody has used for so long may be closed for a new one.
IDLE_S = 1.0
# So many are looked out at once: a look costs time for each connection.
AT_ONCE = 64


class Idle(Protocol):
    """A connection, as this module sees it."""

    @property
    def idle_since(self) -> float | None:
        """Since when nothing is asked on it (time of its loop); None = something is."""

    @property
    def peer(self) -> str:
        """Whose it is."""

    def close(self) -> None:
        """Ends it."""


def raise_descriptors() -> int:
    """Raises the limit of descriptors of this process as far as it may; what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            return soft
        return wanted
    return MANY_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def most_connections(wanted: int) -> int:
    """`wanted`, or fewer when descriptors do not suffice: a tenth of them, OTHER_DESCRIPTORS at
    least, are for other things.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(min(wanted, soft - max(OTHER_DESCRIPTORS, soft // 10)), 16)


class Connections:
    """The bound of one worker; for one event loop."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.refused = 0
        self.closed = 0  # idle ones, for new ones
        self._next: collections.deque[Idle] = collections.deque()  # to be closed, if they are idle still

    def count(self, refused: int, closed: int) -> None:
        """How many were refused and closed so far, as who accepts them itself has counted."""
        self.refused, self.closed = refused, closed

    def note_refused(self) -> None:
        """A connection was cut off that had not come so far."""
        self.refused += 1

    def enter(self, connections: Collection[Idle], now: float) -> bool:
        """A connection has come, and is one of `connections` already; whether it may stay. One that
        is idle may be closed for it.
        """
        if len(connections) <= self.most:
            return True
        for idle in self._idle(connections, now):
            idle.close()
            self.closed += 1
            return True
        self.refused += 1
        return False

    def _idle(self, connections: Collection[Idle], now: float) -> Iterator[Idle]:
        """Those to be closed: of the peers with the most connections first, and those that are idle
        for the longest time.
        """
        for looked in (False, True):
            if looked:
                self._next.extend(_chosen(connections, now))
            while self._next:
                found = self._next.popleft()
                if _is_idle(found, now) and found in connections:
                    yield found


def _is_idle(connection: Idle, now: float) -> bool:
    since = connection.idle_since
    return since is not None and now - since >= IDLE_S


def _chosen(connections: Collection[Idle], now: float) -> list[Idle]:
    numbers = collections.Counter(one.peer for one in connections)
    idle = [one for one in connections if _is_idle(one, now)]
    idle.sort(key=lambda one: (-numbers[one.peer], one.idle_since))
    return idle[:AT_ONCE]
