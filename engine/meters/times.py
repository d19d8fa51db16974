"""How long messages were in their queue before somebody got them, and in hand until they were
settled or given back, of all that this worker has served. Pure data; times of the service, in ms.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from engine.meters.shapes import TimesOf

# From a consumer that waits to the longest retention.
BOUNDS_MS: Final = (
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000,
    86_400_000, 604_800_000,
)  # fmt: skip


class Histogram:
    """How many times fell between each two of BOUNDS_MS, and their sum."""

    __slots__ = ("between", "sum_ms")

    def __init__(self) -> None:
        self.between = [0] * (len(BOUNDS_MS) + 1)
        self.sum_ms = 0

    def note(self, times_ms: Iterable[int]) -> None:
        """Adds times; one below 0, by clocks that differ, is 0. One call for all of a request."""
        for ms in times_ms:
            if ms > 0:
                self.sum_ms += ms
            self.between[bisect_left(BOUNDS_MS, ms)] += 1

    def add(self, sum_ms: int, between: Sequence[int]) -> None:
        """Adds times that were noted elsewhere; `between` is empty when none was."""
        if between:
            self.sum_ms += sum_ms
            self.between = [mine + more for mine, more in zip(self.between, between, strict=True)]


class MessageTimes:
    """`in_queue`: from the send to the first delivery; `acked`, `released`: from a delivery to what
    ended it.
    """

    def __init__(self) -> None:
        self.in_queue = Histogram()
        self.acked = Histogram()
        self.released = Histogram()

    def shown(self) -> list[TimesOf]:
        """Returns all of them."""
        return [
            _shown("queue", "", self.in_queue),
            _shown("hand", "ack", self.acked),
            _shown("hand", "release", self.released),
        ]

    def add(self, rows: Iterable[tuple[int, Sequence[int]]]) -> None:
        """Adds what the plane has noted, as native/src/plane/counts.rs tells it."""
        for histogram, (sum_ms, between) in zip((self.in_queue, self.acked, self.released), rows, strict=False):
            histogram.add(sum_ms, between)


def _shown(place: str, verb: str, histogram: Histogram) -> TimesOf:
    return TimesOf(place, verb, [bound / 1000 for bound in BOUNDS_MS], [*histogram.between], histogram.sum_ms / 1000)
