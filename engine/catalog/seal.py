"""The seal of control records: what makes it certain that a worker of this installation wrote one.

Each record of the control topic, also each that deletes, carries a seal in the header `SEAL`: the
tag of AES-256-GCM under a key that only the service's secret gives. The tag covers the topic, the
record's key, its content, what its writer had seen (`SEEN`), and when it was sealed. So a record
can't be made or altered without the secret, nor be moved to another key or installation, nor be
played back: within an hour `candidates.py` knows that something came after it, and later its time
is too far from the log's. Records of some kinds are encrypted, too (HIDDEN).
"""

from __future__ import annotations

import collections
import secrets
from dataclasses import dataclass
from enum import StrEnum
from struct import Struct as Layout

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.log import Headers, Record

# Headers of a control record. SEEN: the offset up to which its writer had read the topic when it
# decided.
SEEN = "lw-seen"
SEAL = "lw-seal"
# Kinds of records whose content is encrypted: it has secrets, or addresses of people. Spark's jobs
# read the others.
HIDDEN = frozenset({"key", "user", "producers"})
# A record is sealed and appended within moments. Kafka keeps each for a day before it compacts, so
# whoever reads one that is younger than this has read all that came before it.
FRESH_MS = 3_600_000

_VERSION = 1
_CLEAR, _HIDDEN = 0, 1
_NAME_BYTES, _NONCE_BYTES, _TAG_BYTES = 4, 12, 16
# Version, form, name of the secret, when it was sealed, since which offset records are, nonce, tag.
_LAYOUT = Layout(f">BB{_NAME_BYTES}sQQ{_NONCE_BYTES}s{_TAG_BYTES}s")
_BOUND = Layout(">IIBB4sQQQB")
_FIRST = 2**64 - 1  # instead of an offset: the record is the first that is sealed
_PURPOSE = b"leaseway control record 1"


class Reason(StrEnum):
    """Why a record does not count; `about` says it for people."""

    UNSEALED = "unsealed"
    OTHER = "other_secret"
    ALTERED = "altered"
    STALE = "stale"
    REPLAYED = "replayed"
    OLD = "old_secret"  # counts

    @property
    def about(self) -> str:
        return _ABOUT[self]


_ABOUT = {
    Reason.UNSEALED: "it has no seal: a version of before wrote it, or somebody else",
    Reason.OTHER: "another secret than LEASEWAY_SECRET sealed it",
    Reason.ALTERED: "it was altered, or moved from another key or topic",
    Reason.STALE: "it was sealed more than an hour before or after it was appended",
    Reason.REPLAYED: "it was appended before, and something newer counts",
    Reason.OLD: "LEASEWAY_SECRET_OLD sealed it",
}


class Broken(Exception):
    """The seal of a record does not hold. `content` is what it says all the same, if that can be
    read, for who wants to seal it.
    """

    def __init__(self, reason: Reason, content: Opened | None) -> None:
        super().__init__(reason.about)
        self.reason = reason
        self.content = content


@dataclass(frozen=True, slots=True)
class Opened:
    """What a record says. `value` None = it deletes; `seen` None = a writer of before, which did
    not say; `current` = sealed with the secret, not with the old one; `since`: the offset of the
    first record of the topic that was sealed, None = it knows of none.
    """

    value: bytes | None
    seen: int | None
    nonce: bytes = b""
    current: bool = True
    since: int | None = None


class Seal:
    """Seals records of one topic and opens them. `old` is a secret that opens, too; "" = none."""

    def __init__(self, topic: str, secret: str, old: str = "") -> None:
        self._topic = topic.encode()
        self._name, self._cipher = _keys(secret)
        self._ciphers = dict(_keys(one) for one in (old, secret) if one)
        # Nonces of the last hour of the log: what comes with one of them again was played back.
        self._nonces: set[bytes] = set()
        self._times: collections.deque[tuple[int, bytes]] = collections.deque()

    def close(
        self, key: str, value: bytes | None, seen: int, at_ms: int, since: int | None = None
    ) -> tuple[bytes | None, Headers]:
        """The value and the headers of a record to append. `since`: the offset of the first record
        that was sealed, None = this is it.
        """
        first = _FIRST if since is None else since
        form = _HIDDEN if value is not None and key.partition("/")[0] in HIDDEN else _CLEAR
        nonce = secrets.token_bytes(_NONCE_BYTES)
        bound = self._bound(key, form, self._name, at_ms, first, seen, value)
        sealed = self._cipher.encrypt(nonce, value if form == _HIDDEN and value is not None else b"", bound)
        content, tag = sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:]
        header = _LAYOUT.pack(_VERSION, form, self._name, at_ms, first, nonce, tag)
        return content if form == _HIDDEN else value, [(SEEN, str(seen).encode()), (SEAL, header)]

    def open(self, key: str, record: Record) -> Opened:
        """What a record says. Raises Broken."""
        seen, value = _seen_of(record), record.value or None
        header = next((found for name, found in record.headers or () if name == SEAL), None)
        if header is None:
            raise Broken(Reason.UNSEALED, Opened(value, seen))
        if len(header) != _LAYOUT.size or header[0] != _VERSION or header[1] not in (_CLEAR, _HIDDEN) or seen is None:
            raise Broken(Reason.ALTERED, None)
        _, form, name, at_ms, first, nonce, tag = _LAYOUT.unpack(header)
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise Broken(Reason.OTHER, Opened(value, seen) if form == _CLEAR else None)
        bound = self._bound(key, form, name, at_ms, first, seen, value)
        try:
            content = cipher.decrypt(nonce, (value or b"" if form == _HIDDEN else b"") + tag, bound)
        except InvalidTag:
            raise Broken(Reason.ALTERED, None) from None
        since = None if first == _FIRST else first
        opened = Opened(content if form == _HIDDEN else value, seen, nonce, name == self._name, since)
        if abs(record.timestamp_ms - at_ms) > FRESH_MS:
            raise Broken(Reason.STALE, opened)
        return opened

    def was_known(self, nonce: bytes, at_ms: int) -> bool:
        """Notes a nonce that the log took at `at_ms`; whether it was there before."""
        if nonce in self._nonces:
            return True
        self._nonces.add(nonce)
        self._times.append((at_ms, nonce))
        # A record may be played back for an hour after it was sealed, and that may be an hour after
        # the log took it first, by clocks that differ.
        while self._times[0][0] < at_ms - 2 * FRESH_MS:
            self._nonces.discard(self._times.popleft()[1])
        return False

    def _bound(self, key: str, form: int, name: bytes, at_ms: int, first: int, seen: int, value: bytes | None) -> bytes:
        """What the tag covers besides a content that is encrypted. Lengths go before what varies,
        so that no two records give the same bytes.
        """
        place = key.encode()
        head = _BOUND.pack(len(self._topic), len(place), _VERSION, form, name, at_ms, first, seen, value is not None)
        return b"".join((_PURPOSE, head, self._topic, place, value or b"" if form == _CLEAR else b""))


def _keys(secret: str) -> tuple[bytes, AESGCM]:
    """The name of a secret, which tells nothing of it, and the cipher under its key."""
    return _derived(secret, b" name", _NAME_BYTES), AESGCM(_derived(secret, b"", 32))


def _derived(secret: str, what: bytes, size: int) -> bytes:
    return HKDF(SHA256(), size, salt=None, info=_PURPOSE + what).derive(secret.encode())


def _seen_of(record: Record) -> int | None:
    """What the writer of a record had seen; None = it does not say. What can't be read is as if it
    had seen nothing.
    """
    found = next((value for name, value in record.headers or () if name == SEEN), None)
    if found is None:
        return None
    return int(found) if found.isdigit() and len(found) < 20 else 0
