"""Which records of the control topic count: a record whose writer had not seen the one before it
changes nothing.

A writer that was stopped, or a request that lay in a stopped broker's socket, may append long after
somebody else has changed the same thing. So a record says (header `SEEN`) up to which offset of the
topic its writer had read when it decided. It counts if that is beyond the last record of its key
that counts; every reader comes to the same, for all read the same log. Kafka's compaction keeps the
last record of a key whether it counts or not, so `overwritten` names the keys whose last one does
not: what counts is to be written again (`catalog.py`), before Kafka may compact what was written
last.
"""

from __future__ import annotations

import collections

# A deleted key is remembered so long, by the log's time: as long as Kafka keeps its tombstone, and
# longer than any writer sleeps.
REMEMBER_MS = 86_400_000
# Refused offsets that a writer may still ask about.
_REFUSED = 1_000


class Precedence:
    """What counts in a log, record by record. `offer` is called in the order of the log."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._deleted: collections.deque[tuple[int, str, int]] = collections.deque()
        self._refused: collections.deque[int] = collections.deque(maxlen=_REFUSED)
        # Key -> offset of the record that counts, of keys whose last record in the log is another,
        # which does not.
        self.overwritten: dict[str, int] = {}

    def offer(self, key: str, offset: int, seen: int | None, *, deletes: bool, at_ms: int) -> bool:
        """Whether the record at `offset` counts. `seen` None: written before writers said so, it
        counts always.
        """
        last = self._counts.get(key, -1)
        if seen is not None and seen <= last:
            self._refused.append(offset)
            self.overwritten[key] = last
            return False
        self._counts[key] = offset
        self.overwritten.pop(key, None)
        if deletes:
            self._deleted.append((at_ms, key, offset))
            self._forget(at_ms - REMEMBER_MS)
        return True

    def refuse(self, key: str, offset: int) -> None:
        """The record at `offset` does not count, for a reason of somebody else's; -1 in
        `overwritten` = nothing of its key counts.
        """
        self._refused.append(offset)
        self.overwritten[key] = self._counts.get(key, -1)

    def counts(self, key: str) -> int | None:
        """The offset of the record of `key` that counts."""
        return self._counts.get(key)

    def was_refused(self, offset: int) -> bool:
        """Whether the record at `offset` did not count; of the newest 1,000 that did not."""
        return offset in self._refused

    def _forget(self, before_ms: int) -> None:
        while self._deleted and self._deleted[0][0] < before_ms:
            _, key, offset = self._deleted.popleft()
            if self._counts.get(key) == offset:
                del self._counts[key]
