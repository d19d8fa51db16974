"""Since when this worker has known atomic batches that are not whole.

Who sends a batch answers for it only if all of it was appended within BATCH_SPAN_MS, by its own
steady clock and by the log's. So a reader that has known a part of it for longer than that, and
then asks for the end of the log, has all that was answered. Nobody's wall clock takes part, and no
two clocks are compared.
"""

from __future__ import annotations

from typing import TypeAlias

from schemas.vocabulary import BATCH_CLOCK_MARGIN_MS, BATCH_SPAN_MS
from state.clock.boot import boot_s

# Incarnation of the queue, partition, id of the batch.
BatchKey: TypeAlias = tuple[str, int, str]

# Of so many it is known; one that is forgotten is waited for anew.
MOST = 10_000


class Unfinished:
    """The unfinished batches that a worker has met. It outlives the ownership of units: who looks
    at an idle partition now and then would otherwise begin to wait each time.
    """

    def __init__(self) -> None:
        self._since: dict[BatchKey, float] = {}

    def note(self, key: BatchKey) -> None:
        """A part of the batch is in the log, and not all."""
        if key not in self._since:
            while len(self._since) >= MOST:
                del self._since[next(iter(self._since))]
            self._since[key] = boot_s()

    def is_over(self, key: BatchKey) -> bool:
        """Whether what is appended from now on of a batch can't be of one that was answered."""
        since = self._since.get(key)
        return since is not None and (boot_s() - since) * 1000 > BATCH_SPAN_MS + BATCH_CLOCK_MARGIN_MS

    def forget(self, key: BatchKey) -> None:
        """It is decided."""
        self._since.pop(key, None)
