"""What one connection has of requests that are not whole: how fast they come, how much they are
besides their bodies, and whose room they take.

Most requests come whole in one read, and none of this is asked for them. Neighbours: `connection`
asks. This module must not know replies.
"""

from __future__ import annotations

from collections.abc import Callable

from facade.http.bounds.pace import Pace
from facade.http.bounds.shares import Share, Shares

# Of a head that comes in several reads; and of what comes within a body and is none of it:
# trailers, extensions of chunks.
HEAD_BYTES = 64 * 1024


class TooMuch(Exception):
    """The head of a request, or what comes beside its body, is larger than it may be."""


class Unfinished:
    """Of one connection. `give_way` is called when others need the room."""

    __slots__ = ("_beside", "_give_way", "_head_bytes", "_holder", "_is_begun", "_share", "_shares", "_waits", "pace")

    def __init__(self, shares: Shares, holder: Callable[[], str], give_way: Callable[[], object]) -> None:
        self._shares = shares
        self._holder = holder
        self._give_way = give_way
        self._share: Share | None = None
        self._head_bytes = 0  # of a head, after the first read of it
        self._beside = 0  # bytes since the last one of the body; -1 = that one came just now
        self.pace = Pace()
        self._is_begun = False  # some of the request has come
        self._waits = False  # a request is kept before its turn

    def head_begins(self) -> None:
        """Of the next request."""
        self._head_bytes = 0
        self._is_begun = False

    def head_ends(self) -> None:
        """It is whole."""
        self._beside = -1
        if self._share is not None and not self._waits:
            self.end()

    def body_came(self) -> None:
        """Some of a body that came in pieces."""
        self._beside = -1

    def came(self, size: int, now: float, *, in_head: bool, first: bool) -> bool:
        """So much has come, and the request is not whole; `first` = its head began in it. Whether
        nothing of it had come before. Raises TooMuch, Overloaded.
        """
        if in_head:
            self._head_bytes += 0 if first else size
            beside, what = self._head_bytes, "The head of a request"
        else:
            self._beside = self._beside + size if self._beside >= 0 else 0
            beside, what = self._beside, "What comes beside a request's body"
        if beside > HEAD_BYTES:
            raise TooMuch(f"{what} may have {HEAD_BYTES} bytes.")
        if in_head:
            self.keep(size)
        first, self._is_begun = not self._is_begun, True
        self.pace.note(size, now, in_body=not in_head, first=first)
        return first

    def wait(self) -> None:
        """A request is kept before its turn: what is kept stays counted until `end`."""
        self._waits = True

    def keep(self, size: int) -> None:
        """So many bytes are kept of what is not whole, or not in turn. Raises Overloaded."""
        if self._share is None:
            self._share = self._shares.begin(self._holder(), self._give_way)
        self._shares.grow(self._share, size)

    def end(self) -> None:
        """Nothing is kept any more."""
        share, self._share = self._share, None
        self._waits = False
        if share is not None:
            self._shares.end(share)
