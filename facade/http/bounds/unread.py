"""Whether the client of a connection reads what is written to it.

Neighbours: `connection` asks. This module must not know sockets.
"""

from __future__ import annotations


class Unread:
    """Of one connection. Times are those of its loop."""

    __slots__ = ("_patience_s", "_since", "_size")

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._size = 0
        self._since = 0.0

    def left_s(self, size: int, now: float) -> float:
        """So many bytes wait for the client: how long it may still read none of them, 0 or less =
        it has read none for too long.
        """
        if size != self._size or not size:
            self._size, self._since = size, now
        return self._since + self._patience_s - now
