"""Control records that have no seal that holds, and which of them an operator may adopt.

`leaseway seal` shows them. One may be adopted only when its key never had a sealed record, and when
it lies before the first sealed record of the topic: what came after that had to be sealed, so
somebody else wrote it. In a copy of the topic in another cluster the seals of our own secret are
older than the copy, which `copied` allows. Pure: `catalog.py` reads and writes the topic.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from urllib.parse import quote

from engine.catalog.precedence import Precedence
from engine.catalog.seal import Broken, Reason
from engine.log import Record

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
