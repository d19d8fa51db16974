"""Whether a queue has this worker to itself.

Neighbours: `core` has the one of this worker, `loaders` tells it of every use of a queue, `sender`
asks. Must not know verbs.
"""

from __future__ import annotations

# After so long without a use another queue does not count.
RECENT_S = 1.0


class Crowd:
    """Remembers the last two queues in use; costs the same for any number of them. Times are the
    loop's, in seconds.
    """

    def __init__(self) -> None:
        self._last = ""
        self._last_at = self._other_at = float("-inf")

    def used(self, incarnation: str, now: float) -> None:
        """A queue is in use."""
        if incarnation != self._last:
            self._last, self._other_at = incarnation, self._last_at
        self._last_at = now

    def shared(self, incarnation: str, now: float) -> bool:
        """Whether another queue than this was in use within RECENT_S."""
        return now - (self._other_at if incarnation == self._last else self._last_at) < RECENT_S
