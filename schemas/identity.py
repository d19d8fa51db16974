"""Message ids and receipt handles: made, parsed, refused.

Both are addresses with a keyed digest, so that an id or handle that this installation did not give out is told apart
without a look at any store. All workers share the secret.
Neighbours: the engine makes and parses them; dialects pass the text along. This module must not know queues by name,
nor whether a delivery is still open: that is the scripts' part.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from functools import lru_cache
from hashlib import blake2b
from hmac import compare_digest
from struct import Struct as Layout

from msgspec import Struct

PARTITION_BITS = 12
OFFSET_BITS = 40
DIGEST_BITS = 22

_MAC_BYTES = 8
# version, incarnation, partition, tag, offset (48 bits as 16 + 32), nonce. With the MAC 33 bytes: a multiple of three, so
# that base64 has no spare bits and each handle has exactly one spelling.
_HANDLE = Layout(">B6sHHHIQ")
# Version 2 has, before the MAC, when the delivery began: 6 bytes, again a multiple of three in all.
_TIME_BYTES = 6
_TIME_OF_VERSION = {1: 0, 2: _TIME_BYTES}
_HANDLE_CHARS = {(_HANDLE.size + time + _MAC_BYTES) // 3 * 4: version for version, time in _TIME_OF_VERSION.items()}
_PLACE = Layout(">6sH")

_TO_URL = bytes.maketrans(b"+/", b"-_")
# The characters that only the plain alphabet has become one that the strict decoder refuses.
_FROM_URL = bytes.maketrans(b"-_+/", b"+/!!")


class BadIdentity(ValueError):
    """The text is no message id or handle that this installation has given out."""


@lru_cache(maxsize=16)
def _keyed(secret: bytes, purpose: bytes, size: int) -> blake2b:
    """A hasher to copy: keying one costs more than the digest itself."""
    if not secret:
        raise ValueError("the secret must not be empty")
    key = secret if len(secret) <= blake2b.MAX_KEY_SIZE else blake2b(secret).digest()
    return blake2b(key=key, person=purpose, digest_size=size)


@lru_cache(maxsize=4096)
def _unit(secret: bytes, incarnation: bytes, partition: int) -> tuple[blake2b, str]:
    """What ids of one partition have in common: a hasher to copy that has seen the address but for the offset, and the head of the text."""
    hasher = _keyed(secret, b"lw.id", 4).copy()
    hasher.update(_PLACE.pack(incarnation, partition))
    head = incarnation.hex()
    return hasher, f"{head[:8]}-{head[8:]}-8{partition:03x}-"


def _digest(hasher: blake2b, offset: int) -> int:
    hasher = hasher.copy()
    hasher.update(offset.to_bytes(8, "big"))
    return int.from_bytes(hasher.digest(), "big") >> (32 - DIGEST_BITS)


def _mac(secret: bytes, payload: bytes) -> bytes:
    hasher = _keyed(secret, b"lw.handle", _MAC_BYTES).copy()
    hasher.update(payload)
    return hasher.digest()


class MessageId(Struct, frozen=True, gc=False):
    """The address of a message: `incarnation` 12 lower-case hex digits, `partition` 0-4095, `offset` below 2**40."""

    incarnation: str
    partition: int
    offset: int

    def text(self, secret: bytes) -> str:
        """The id as a UUID of version 8. Raises ValueError if a part is out of its range (a fault of the caller)."""
        if self.partition >> PARTITION_BITS or self.offset >> OFFSET_BITS:
            raise ValueError(f"{self} does not fit into a message id")
        incarnation = bytes.fromhex(self.incarnation)
        if len(incarnation) != 6:
            raise ValueError(f"incarnation {self.incarnation!r} is not 12 hex digits")
        hasher, head = _unit(secret, incarnation, self.partition)
        low = f"{2 << 62 | self.offset << DIGEST_BITS | _digest(hasher, self.offset):016x}"
        return f"{head}{low[:4]}-{low[4:]}"

    @classmethod
    def parse(cls, text: str, secret: bytes) -> MessageId:
        """The address in `text` (either case). Raises BadIdentity if it is malformed or made with another secret."""
        if len(text) != 36 or text[8] + text[13] + text[18] + text[23] != "----":
            raise BadIdentity("not a UUID")
        try:
            raw = bytes.fromhex(text.replace("-", ""))
        except ValueError:
            raise BadIdentity("not a UUID") from None
        if len(raw) != 16 or raw[6] >> 4 != 8 or raw[8] >> 6 != 2:
            raise BadIdentity("not a UUID of version 8")
        partition = int.from_bytes(raw[6:8], "big") & ((1 << PARTITION_BITS) - 1)
        low = int.from_bytes(raw[8:], "big") & ((1 << 62) - 1)
        offset = low >> DIGEST_BITS
        if low & ((1 << DIGEST_BITS) - 1) != _digest(_unit(secret, raw[:6], partition)[0], offset):
            raise BadIdentity("not a message id of this installation")
        return cls(raw[:6].hex(), partition, offset)


class Handle(Struct, frozen=True, gc=False):
    """One delivery: the address, the number of the `tag` (16 bits) and the `nonce` of the lease (64 bits); offset below 2**48.

    `lent_at_ms` is when it began (epoch milliseconds below 2**48), 0 = unknown: handles had no time once.
    """

    incarnation: str
    partition: int
    tag: int
    offset: int
    nonce: int
    lent_at_ms: int = 0

    def text(self, secret: bytes) -> str:
        """The handle: 52 URL-safe characters, without a time 44. Raises ValueError if a part is out of its range (our fault)."""
        incarnation = bytes.fromhex(self.incarnation)
        if len(incarnation) != 6:
            raise ValueError(f"incarnation {self.incarnation!r} is not 12 hex digits")
        offset = self.offset
        try:
            version = 2 if self.lent_at_ms else 1
            payload = _HANDLE.pack(version, incarnation, self.partition, self.tag, offset >> 32, offset & 0xFFFFFFFF, self.nonce)
            payload += self.lent_at_ms.to_bytes(_TIME_OF_VERSION[version], "big")
        except Exception as fault:  # struct.error, which is no ValueError
            raise ValueError(f"{self} does not fit into a handle") from fault
        return b2a_base64(payload + _mac(secret, payload), newline=False).translate(_TO_URL).decode("ascii")

    @classmethod
    def parse(cls, text: str, secret: bytes) -> Handle:
        """The delivery in `text`. Raises BadIdentity if it is malformed, altered or made with another secret."""
        version = _HANDLE_CHARS.get(len(text))
        if version is None:
            raise BadIdentity("not a handle: wrong length")
        try:
            raw = a2b_base64(text.encode("ascii").translate(_FROM_URL), strict_mode=True)
        except (UnicodeEncodeError, Base64Error):
            raise BadIdentity("not a handle: not URL-safe base64") from None
        payload, mac = raw[:-_MAC_BYTES], raw[-_MAC_BYTES:]
        if len(payload) != _HANDLE.size + _TIME_OF_VERSION[version]:
            raise BadIdentity("not a handle: wrong length")
        if payload[0] != version:
            raise BadIdentity(f"not a handle: version {payload[0]} of another length")
        if not compare_digest(mac, _mac(secret, payload)):
            raise BadIdentity("not a handle of this installation")
        _, incarnation, partition, tag, high, low, nonce = _HANDLE.unpack_from(payload)
        lent_at_ms = int.from_bytes(payload[_HANDLE.size :], "big")
        return cls(incarnation.hex(), partition, tag, high << 32 | low, nonce, lent_at_ms)
