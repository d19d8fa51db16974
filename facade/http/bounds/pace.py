"""How fast a request must come: its head within a time, its body at a least rate."""

from __future__ import annotations

# A head comes whole within this time of its first byte.
HEAD_S = 10.0
# Of a body that is not whole, so much comes in each such time.
SPAN_S = 10.0
LEAST_BYTES_A_SECOND = 16 * 1024


class Pace:
    """The pace of the request that comes on one connection. Times are those of its loop."""

    __slots__ = ("_at", "_came", "_in_body", "since")

    def __init__(self) -> None:
        self._in_body = False
        self.since = 0.0  # when it began to come
        self._at = 0.0  # when its head began, or this span of its body
        self._came = 0  # bytes in that time

    def note(self, size: int, now: float, *, in_body: bool, first: bool) -> None:
        """So much has come, and the request is not whole; `first` = nothing had come before."""
        if first:
            self.since = now
        if first or in_body is not self._in_body:
            self._in_body, self._at, self._came = in_body, now, 0
        self._came += size

    def passed_over(self, seconds: float) -> None:
        """For so long nobody read what the client sent: that is not its fault."""
        self._at += seconds
        self.since += seconds

    def left_s(self, now: float) -> float:
        """How long it may be waited for from now; 0 = it comes too slowly. To be asked when that
        time is over, not before.
        """
        if not self._in_body:
            return max(self._at + HEAD_S - now, 0.0)
        left_s = self._at + SPAN_S - now
        if left_s <= 0 and self._came >= SPAN_S * LEAST_BYTES_A_SECOND:
            self._at, self._came, left_s = now, 0, SPAN_S
        return max(left_s, 0.0)
