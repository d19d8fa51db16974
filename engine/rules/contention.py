"""What queues are used for by this worker: does a queue have the worker to itself, is it received
from.
"""

from __future__ import annotations

# After so long without a use another queue does not count.
RECENT_S = 1.0


class Activity:
    """Remembers the last two queues in use, and when each was received from. Times are the loop's,
    in seconds.
    """

    def __init__(self) -> None:
        self._last = ""
        self._last_at = self._other_at = float("-inf")
        self._received_at: dict[str, float] = {}

    def note_use(self, incarnation: str, now: float) -> None:
        """A queue is in use."""
        if incarnation != self._last:
            self._last, self._other_at = incarnation, self._last_at
        self._last_at = now

    def is_contended(self, incarnation: str, now: float) -> bool:
        """Whether another queue than this was in use within RECENT_S."""
        return now - (self._other_at if incarnation == self._last else self._last_at) < RECENT_S

    def note_receive(self, incarnation: str, now: float) -> None:
        """Messages of a queue were leased."""
        self._received_at[incarnation] = now

    def is_received(self, incarnation: str, now: float) -> bool:
        """Whether messages of a queue were leased within RECENT_S."""
        return now - self._received_at.get(incarnation, float("-inf")) < RECENT_S

    def forget(self, incarnation: str) -> None:
        """A queue is gone."""
        self._received_at.pop(incarnation, None)
