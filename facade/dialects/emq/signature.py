"""Galaxy-V2 signatures: what a request claims, and whether a secret makes the same signature.

Pure: no clock, no keys. All headers of Xiaomi are signed, and the path; `id` and `type` of the
query are not. A body without a digest in the head is not signed.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import md5
from typing import Final
from urllib.parse import parse_qsl

from msgspec import Struct

from facade.dialect import Refusal

SKEW_SECONDS: Final = 900
KEY_ID_CHARACTERS: Final = 128

_CLAIMED: Final = re.compile(rb"Galaxy-V2 +([!-~]{1,%d}):([A-Za-z0-9+/]{27}=)" % KEY_ID_CHARACTERS, re.IGNORECASE)
_NAMED: Final = re.compile(rb"Galaxy-V2 +([!-~]{1,%d}):" % KEY_ID_CHARACTERS, re.IGNORECASE)
_DIGEST: Final = re.compile(rb"[0-9A-Fa-f]{1,32}")
_SECONDS: Final = re.compile(rb"[0-9]{1,12}")
_PREFIX: Final = b"x-xiaomi-"
_DATE: Final = b"x-xiaomi-date"
_TIMESTAMP: Final = b"x-xiaomi-timestamp"
_DIGESTS: Final = (b"content-md5", b"x-xiaomi-content-md5")
# Signed or needed as one value each; which of two would it be? Other headers of Xiaomi are joined.
_ONCE: Final = (b"authorization", b"content-type", b"date", _DATE, _TIMESTAMP, *_DIGESTS)
_SUBRESOURCE: Final = r"acl|quota|uploads|partNumber|uploadId|storageAccessToken|metadata"
_HAS_SUBRESOURCE: Final = re.compile(rf"(?:^|&)(?:{_SUBRESOURCE})(?:=|&|$)".encode())
_IS_SUBRESOURCE: Final = re.compile(_SUBRESOURCE)
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999

Headers = Iterable[tuple[bytes, bytes]]


class SignatureError(Refusal):
    """A claim that can't be understood. The text does not repeat what was sent."""


class ClockSkew(Refusal):
    """A request that was signed too long ago, or in the future. The client may set its clock and
    ask again.
    """


class Claim(Struct, frozen=True):
    """Who has signed (`key_id`) and when, and all that a secret is tried against. `digests` are
    those of the body that the head names, as 32 hex digits.
    """

    key_id: str
    signature: bytes
    to_sign: bytes
    digests: tuple[bytes, ...]
    at: datetime

    def check_time(self, now: datetime) -> None:
        """Raises ClockSkew for a request that is over 15 minutes old, or so much ahead of us."""
        # A difference is in range for any two times, a sum is not.
        if not abs((now - self.at).total_seconds()) <= SKEW_SECONDS:
            raise ClockSkew(
                f"the request is not signed within {SKEW_SECONDS // 60} minutes of {now:%Y-%m-%dT%H:%M:%SZ}"
            )

    def fits(self, secret: str) -> bool:
        """Whether `secret` makes this signature; takes as long whatever the secret is."""
        # "surrogatepass" never fails: an error of `encode` would hold the secret.
        made = b64encode(hmac.digest(secret.encode("utf-8", "surrogatepass"), self.to_sign, "sha1"))
        return hmac.compare_digest(made, self.signature)

    def check_body(self, body: bytes) -> None:
        """Raises SignatureError unless the digests are those of `body`. Nothing here is secret, so
        it may take as long as it takes.
        """
        if self.digests:
            digest = md5(body, usedforsecurity=False).hexdigest().encode()
            if any(digest != named for named in self.digests):
                raise SignatureError("Content-MD5 is not the digest of the body")


def claim_of(method: str, path: bytes, query: bytes, headers: Headers) -> Claim | None:
    """What the head of a request claims; None = it is not signed. Path and query are as they were
    sent, names of headers in lower case. Raises SignatureError.
    """
    grouped = _grouped(headers)
    for name in _ONCE:
        if len(grouped.get(name, ())) > 1:
            raise SignatureError(f"the header {name.decode()} is there more than once")
    authorization = _value(grouped, b"authorization")
    if not authorization:
        return None
    claimed = _CLAIMED.fullmatch(authorization)
    if claimed is None:
        raise SignatureError("Authorization must be Galaxy-V2, a key id, a colon and a signature in Base64")
    digests = tuple(_digest(_value(grouped, name)) for name in _DIGESTS if name in grouped)
    to_sign = _string_to_sign(method, path, query, grouped)
    return Claim(claimed[1].decode("ascii"), claimed[2], to_sign, digests, _time(grouped))


def claimed_key_id(authorization: bytes) -> str | None:
    """The key id that a request names, believed by open mode; None when it names none."""
    named = _NAMED.match(authorization)
    return None if named is None else named[1].decode("ascii")


def string_to_sign(method: str, path: bytes, query: bytes, headers: Headers) -> bytes:
    """What a client signs: the arguments as of `claim_of`."""
    return _string_to_sign(method, path, query, _grouped(headers))


def _grouped(headers: Headers) -> dict[bytes, list[bytes]]:
    grouped: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        grouped.setdefault(name.lower(), []).append(value.strip())
    return grouped


def _value(grouped: dict[bytes, list[bytes]], name: bytes) -> bytes:
    return b",".join(grouped.get(name, ()))


def _string_to_sign(method: str, path: bytes, query: bytes, grouped: dict[bytes, list[bytes]]) -> bytes:
    lines = [method.encode(), _value(grouped, b"content-md5"), _value(grouped, b"content-type")]
    lines.append(b"" if _DATE in grouped else _value(grouped, b"date"))
    lines += [name + b":" + _value(grouped, name) for name in sorted(grouped) if name.startswith(_PREFIX)]
    return b"\n".join([*lines, path + _subresources(query)])


def _subresources(query: bytes) -> bytes:
    """The part of the query that is signed: no method of EMQ has one, but the signature is that of
    other services too.
    """
    if not _HAS_SUBRESOURCE.search(query):
        return b""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, encoding="latin-1")
    signed = sorted(f"{name}={value}" if value else name for name, value in pairs if _IS_SUBRESOURCE.fullmatch(name))
    return f"?{'&'.join(signed)}".encode("latin-1")


def _digest(value: bytes) -> bytes:
    if not _DIGEST.fullmatch(value):
        raise SignatureError("the MD5 of the body must be in hex digits")
    return value.lower().rjust(32, b"0")  # Java leaves leading zeros out


def _time(grouped: dict[bytes, list[bytes]]) -> datetime:
    """When the request was signed: by the header that clients correct when they hear that their
    clock is wrong, else by the date. All of them are signed.
    """
    if _TIMESTAMP in grouped:
        seconds = _value(grouped, _TIMESTAMP)
        if not _SECONDS.fullmatch(seconds) or int(seconds) > _LAST_SECOND:
            raise SignatureError("X-Xiaomi-Timestamp must be seconds since 1970")
        return datetime.fromtimestamp(int(seconds), UTC)
    try:
        at = parsedate_to_datetime(_value(grouped, _DATE if _DATE in grouped else b"date").decode("ascii"))
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)  # -0000 has none
    except (ValueError, TypeError, OverflowError):
        raise SignatureError("the request needs a date, as Thu, 01 Jan 2026 00:00:00 GMT") from None
