"""Message ids and receipt handles: made, parsed, refused.

Both are addresses with a keyed digest, so that an id or handle that this installation did not give
out is told apart without a look at any store. All workers share the secret.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from hmac import compare_digest
from struct import Struct as Layout
from struct import error as LayoutError

from msgspec import Struct

PARTITION_BITS = 12
OFFSET_BITS = 40
DIGEST_BITS = 22

_DIGEST_BYTES = 4
_ADDRESS = re.compile(r"([0-9a-f]{12})/(\d{1,4})/(\d{1,13})", re.ASCII)
_SPARE_BITS = 8 * _DIGEST_BYTES - DIGEST_BITS
_VARIANT = 2 << 62
_ID_CHARS = 36
_TAIL_CHARS = 6  # which the digest is in
_PLACE = Layout(">6sH")

_MAC_BYTES = 8
_NONCE_BYTES = 8
_OFFSET_BYTES = 6
# Version, incarnation, partition, tag; behind it offset, nonce, when the delivery began (version 1:
# nothing), version 3: the deadline, and the MAC. In all 33, 39 or 45 bytes: a multiple of three, so
# that base64 has no spare bits and each handle has exactly one spelling.
_HEAD = Layout(">B6sHH")
_MS_BYTES = 6
_TIME_BYTES = {version: (version - 1) * _MS_BYTES for version in (1, 2, 3)}
_LAYOUTS = {
    version: Layout(f"{_HEAD.format}{_OFFSET_BYTES}sQ{time}s{_MAC_BYTES}s") for version, time in _TIME_BYTES.items()
}
_OF_CHARS = {layout.size // 3 * 4: (version, layout.unpack) for version, layout in _LAYOUTS.items()}

_TO_URL = bytes.maketrans(b"+/", b"-_")
# The characters that only the plain alphabet has become one that the strict decoder refuses.
_FROM_URL = bytes.maketrans(b"-_+/", b"+/!!")


class BadIdentity(ValueError):
    """The text is no message id or handle that this installation has given out."""


@lru_cache(maxsize=16)
def _keyed(secret: bytes, purpose: bytes, size: int) -> Callable[[], blake2b]:
    """What makes hashers with this key: a copy costs less than keying one."""
    if not secret:
        raise ValueError("the secret must not be empty")
    key = secret if len(secret) <= blake2b.MAX_KEY_SIZE else blake2b(secret).digest()
    return blake2b(key=key, person=purpose, digest_size=size).copy


def address_of(text: str) -> str:
    """A message id without its digest: the same for each secret. Other text as it is."""
    if len(text) != _ID_CHARS:
        return text
    try:
        return f"{text[:-_TAIL_CHARS]}{int(text[-_TAIL_CHARS:], 16) >> DIGEST_BITS}"
    except ValueError:
        return text


def _incarnation(text: str) -> bytes:
    incarnation = bytes.fromhex(text)
    if len(incarnation) != 6:
        raise ValueError(f"incarnation {text!r} is not 12 hex digits")
    return incarnation


@lru_cache(maxsize=4096)
def ids_of(secret: bytes, incarnation: str, partition: int) -> Callable[[int], str]:
    """What gives an offset of this partition its id. Both raise ValueError for a part out of its
    range (a fault of the caller).
    """
    if partition >> PARTITION_BITS:
        raise ValueError(f"partition {partition} does not fit into a message id")
    place = _PLACE.pack(_incarnation(incarnation), partition)
    seen = _keyed(secret, b"lw.id", _DIGEST_BYTES)()
    seen.update(place)
    copy = seen.copy
    head = f"{place[:4].hex()}-{place[4:6].hex()}-8{partition:03x}-"

    def text(offset: int) -> str:
        if offset >> OFFSET_BITS:
            raise ValueError(f"offset {offset} does not fit into a message id")
        hasher = copy()
        hasher.update(offset.to_bytes(8))
        return head + (_VARIANT | offset << DIGEST_BITS | int.from_bytes(hasher.digest()) >> _SPARE_BITS).to_bytes(
            8
        ).hex("-", 6)

    return text


@lru_cache(maxsize=4096)
def _handle_head(
    secret: bytes, version: int, incarnation: str, partition: int, tag: int
) -> tuple[bytes, Callable[[], blake2b]]:
    """What handles of one partition and tag begin with, and what makes hashers that have seen
    it.
    """
    head = _HEAD.pack(version, _incarnation(incarnation), partition, tag)
    seen = _keyed(secret, b"lw.handle", _MAC_BYTES)()
    seen.update(head)
    return head, seen.copy


def handles_of(
    secret: bytes, incarnation: str, partition: int, tag: int, nonce: int, leased_at_ms: int, until_ms: int = 0
) -> Callable[[int], str]:
    """What gives an offset its handle, for all that one receive has leased. Both raise ValueError
    for a part out of its range (our fault).
    """
    version = 3 if until_ms else 2 if leased_at_ms else 1
    try:
        head, copy = _handle_head(secret, version, incarnation, partition, tag)
        tail = nonce.to_bytes(_NONCE_BYTES) + leased_at_ms.to_bytes(min(_TIME_BYTES[version], _MS_BYTES))
        if until_ms:
            tail += until_ms.to_bytes(_MS_BYTES)
    except (LayoutError, OverflowError) as fault:
        raise ValueError(
            f"partition {partition}, tag {tag}, nonce {nonce}, times {leased_at_ms}, {until_ms}: "
            "one does not fit into a handle"
        ) from fault

    def text(offset: int) -> str:
        try:
            rest = offset.to_bytes(_OFFSET_BYTES) + tail
        except OverflowError as fault:
            raise ValueError(f"offset {offset} does not fit into a handle") from fault
        hasher = copy()
        hasher.update(rest)
        return b2a_base64(head + rest + hasher.digest(), newline=False).translate(_TO_URL).decode()

    return text


class MessageId(Struct, frozen=True, gc=False):
    """The address of a message: `incarnation` 12 lower-case hex digits, `partition` 0-4095,
    `offset` below 2**40.
    """

    incarnation: str
    partition: int
    offset: int

    def text(self, secret: bytes) -> str:
        """The id as a UUID of version 8. Raises ValueError if a part is out of its range (a fault
        of the caller).
        """
        return ids_of(secret, self.incarnation, self.partition)(self.offset)

    @property
    def address(self) -> str:
        """The same as `incarnation/partition/offset`, which no secret makes."""
        return f"{self.incarnation}/{self.partition}/{self.offset}"

    @classmethod
    def of_address(cls, text: str) -> MessageId | None:
        """What `address` gave; None = it is no address."""
        match = _ADDRESS.fullmatch(text)
        if match is None or int(match[2]) >> PARTITION_BITS or int(match[3]) >> OFFSET_BITS:
            return None
        return cls(match[1], int(match[2]), int(match[3]))

    @classmethod
    def parse(cls, text: str, secret: bytes) -> MessageId:
        """The address in `text` (either case). Raises BadIdentity if it is malformed or made with
        another secret.
        """
        if len(text) != 36 or text[8] + text[13] + text[18] + text[23] != "----":
            raise BadIdentity("not a UUID")
        try:
            raw = bytes.fromhex(text.replace("-", ""))
        except ValueError:
            raise BadIdentity("not a UUID") from None
        if len(raw) != 16 or raw[6] >> 4 != 8 or raw[8] >> 6 != 2:
            raise BadIdentity("not a UUID of version 8")
        partition = int.from_bytes(raw[6:8]) & ((1 << PARTITION_BITS) - 1)
        found = cls(raw[:6].hex(), partition, int.from_bytes(raw[8:]) >> DIGEST_BITS & ((1 << OFFSET_BITS) - 1))
        if found.text(secret) != text.lower():
            raise BadIdentity("not a message id of this installation")
        return found


def incarnation_in(id: str) -> str:
    """The incarnation that a message id of a record of ours names, whatever secret it was made
    with; empty = it is no such id.
    """
    return id[:8] + id[9:13] if len(id) == 36 and id[8] == id[13] == "-" else ""


class Handle(Struct, frozen=True, gc=False):
    """One delivery: the address, the number of the `tag` (16 bits) and the `nonce` of the lease (64
    bits); offset below 2**48.

    `leased_at_ms` is when it began (epoch milliseconds below 2**48), 0 = unknown: handles had no
    time once. `until_ms`: the handle counts only while the lease ends just then; 0 = whenever it
    ends.
    """

    incarnation: str
    partition: int
    tag: int
    offset: int
    nonce: int
    leased_at_ms: int = 0
    until_ms: int = 0

    def text(self, secret: bytes) -> str:
        """The handle: 52 URL-safe characters, without a time 44, with a deadline 60. Raises
        ValueError if a part is out of its range (our fault).
        """
        return handles_of(
            secret, self.incarnation, self.partition, self.tag, self.nonce, self.leased_at_ms, self.until_ms
        )(self.offset)

    @classmethod
    def parse(cls, text: str, secret: bytes) -> Handle:
        """The delivery in `text`. Raises BadIdentity if it is malformed, altered or made with
        another secret.
        """
        form = _OF_CHARS.get(len(text))
        if form is None:
            raise BadIdentity("not a receipt handle: wrong length")
        try:
            raw = a2b_base64(text.encode().translate(_FROM_URL), strict_mode=True)
            version, incarnation, partition, tag, offset, nonce, times, mac = form[1](raw)
        except (UnicodeEncodeError, Base64Error):
            raise BadIdentity("not a receipt handle: not URL-safe base64") from None
        except LayoutError:
            raise BadIdentity("not a receipt handle: wrong length") from None
        if version != form[0]:
            raise BadIdentity(f"not a receipt handle: version {version} of another length")
        hasher = _keyed(secret, b"lw.handle", _MAC_BYTES)()
        hasher.update(raw[:-_MAC_BYTES])
        if not compare_digest(mac, hasher.digest()):
            raise BadIdentity("not a receipt handle of this installation")
        leased_at_ms, until_ms = int.from_bytes(times[:_MS_BYTES]), int.from_bytes(times[_MS_BYTES:])
        return cls(incarnation.hex(), partition, tag, int.from_bytes(offset), nonce, leased_at_ms, until_ms)
