"""What this worker has seen of others that hold something in Redis, so that their renewals and this
process' own monotonic clock decide when they are gone, and no wall clock does.

Whoever holds something changes a beat with every renewal. A contender that has seen one and the
same beat for as long as the holder may go without a renewal names that beat to the script, which
gives what was held to the contender if the beat is the same still.
"""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

# Holders that are watched at most; of more the one that was met first is forgotten, which only
# prolongs the time for which it has to be watched.
MOST = 100_000


class _Sighting(NamedTuple):
    beat: str
    since: float
    hold_s: float


class Sightings:
    """The beats that were seen last, by what is held."""

    def __init__(self) -> None:
        self._of: dict[str, _Sighting] = {}

    def over(self, held: str) -> str:
        """Returns the beat that its holder has not changed for its whole time; '' = there is none,
        or it may be renewed still.

        To be called before the script is sent, as `note` is called after its reply: what Redis or
        this process stood still for in between does not count.
        """
        seen = self._of.get(held)
        return seen.beat if seen is not None and monotonic() - seen.since >= seen.hold_s else ""

    def note(self, held: str, beat: str, hold_ms: int) -> None:
        """Remembers since when the holder shows this beat, which is good for `hold_ms`."""
        seen = self._of.get(held)
        if seen is not None and seen.beat == beat:
            return
        self._of.pop(held, None)
        if len(self._of) >= MOST:
            del self._of[next(iter(self._of))]
        self._of[held] = _Sighting(beat, monotonic(), hold_ms / 1000)

    def forget(self, held: str) -> None:
        """Forgets a holder that is gone, or that is this worker."""
        self._of.pop(held, None)
