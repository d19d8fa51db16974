"""Which records of the control topic count, and which of those without a seal that holds may be
adopted by an operator.

A record whose writer had not seen the one before it changes nothing (`Precedence`). A writer that
was stopped, or a request that lay in a stopped broker's socket, may append long after somebody else
has changed the same thing. So a record says (header `SEEN`) up to which offset of the topic its
writer had read when it decided. It counts if that is beyond the last record of its key that counts;
every reader comes to the same, for all read the same log. Kafka's compaction keeps the last record
of a key whether it counts or not, so `overwritten` names the keys whose last one does not: what
counts is to be written again (`catalog.py`), before Kafka may compact what was written last.

`leaseway seal` shows candidates. One may be adopted only when its key never had a sealed record,
and when it lies before the first sealed record of the topic: what came after that had to be sealed,
so somebody else wrote it. In a copy of the topic in another cluster the seals of our own secret are
older than the copy, which `copied` allows. `catalog.py` reads and writes the topic.
"""

from __future__ import annotations

import collections
import hashlib
from dataclasses import dataclass
from urllib.parse import quote

from engine.catalog.seal import Broken, Reason
from engine.log import Record

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


_DIGEST_CHARS = 20
_AFTER = "it was appended after the service began to seal its records at offset {}, so somebody else wrote it"
HAS_SEALED = "its key has, or had, a record that is sealed"
_UNREADABLE = "its content can't be read"
_NOT_COPIED = "only in a copy of the topic (--copied) may it be a record of this service that counts"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The record of a key that is not sealed with the secret of now. `value` None = it deletes its
    key. `counts`: workers take it all the same, for the old secret sealed it. `barred`: why it can
    never be adopted, empty = it may be.
    """

    key: str
    offset: int
    reason: Reason
    value: bytes | None = None
    barred: str = ""
    counts: bool = False

    @property
    def name(self) -> str:
        """The key, quoted, and a digest of the record: who names it means what was shown."""
        seen = b"\0".join((self.key.encode(), b"%d" % self.offset, b"-" if self.value is None else b"+" + self.value))
        return f"{quote(self.key, safe='/')}@{hashlib.sha256(seen).hexdigest()[:_DIGEST_CHARS]}"


@dataclass(frozen=True, slots=True)
class _Noted:
    offset: int
    at_ms: int
    broken: Broken


class Candidates:
    """Hears of every record of the topic, in the order of the log."""

    def __init__(self) -> None:
        self._refused: dict[str, list[_Noted]] = {}
        self._sealed: set[str] = set()
        # The offset of the first record that was sealed, as far as one that is left says.
        self._since: int | None = None

    def sealed(self, key: str, since: int) -> None:
        """The seal of a record of `key` holds; by its writer, records are sealed since `since`."""
        self._sealed.add(key)
        self._since = since if self._since is None else min(self._since, since)

    def refused(self, key: str, record: Record, broken: Broken) -> None:
        """The seal of a record does not hold."""
        self._refused.setdefault(key, []).append(_Noted(record.offset, record.timestamp_ms, broken))
        opened = broken.content
        if broken.reason == Reason.STALE and opened is not None and opened.since is not None:
            self._since = opened.since if self._since is None else min(self._since, opened.since)

    @property
    def has_sealed(self) -> bool:
        """Whether the seal of any record holds."""
        return bool(self._sealed)

    def found(self, *, copied: bool = False) -> list[Candidate]:
        """One candidate for each key with records that do not count, by key. `copied`: the topic is
        a copy in another cluster.
        """
        return [self._judged(key, noted, copied) for key, noted in sorted(self._refused.items())]

    def _judged(self, key: str, noted: list[_Noted], copied: bool) -> Candidate:
        """The record of `key` that counted before records were sealed, else the last one with what
        bars it.
        """
        last, precedence, chosen = noted[-1], Precedence(), None
        for one in noted:
            opened = one.broken.content
            if self._barred(key, one, copied) or opened is None:
                continue
            if precedence.offer(key, one.offset, opened.seen, deletes=opened.value is None, at_ms=one.at_ms):
                chosen = Candidate(key, one.offset, one.broken.reason, opened.value)
        if chosen is not None:
            return chosen
        content = last.broken.content
        value = None if content is None else content.value
        return Candidate(key, last.offset, last.broken.reason, value, self._barred(key, last, copied))

    def _barred(self, key: str, noted: _Noted, copied: bool) -> str:
        if noted.broken.content is None:
            return _UNREADABLE
        if key in self._sealed:
            return HAS_SEALED
        if noted.broken.reason == Reason.STALE:
            return "" if copied else _NOT_COPIED
        if self._since is not None and noted.offset > self._since:
            return _AFTER.format(self._since)
        return ""
