"""Signatures of MNS, version 2: what a request claims, and whether a secret makes the same
signature.

Pure: no clock, no keys. The method, three headers, all headers of MNS and the target of the request
are signed; the body is by its digest, if the head has one (reference/mns.md 4.1).
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

from msgspec import Struct

from facade.dialects.mns.wire.errors import (
    INVALID_ARGUMENT,
    INVALID_AUTHORIZATION,
    INVALID_DATE,
    INVALID_DIGEST,
    MISSING_DATE,
    TIME_EXPIRED,
    MnsError,
)

SKEW_SECONDS: Final = 900
KEY_ID_CHARACTERS: Final = 128

_CLAIMED: Final = re.compile(rb"MNS +([!-9;-~]{1,%d}):([A-Za-z0-9+/]{27}=)" % KEY_ID_CHARACTERS)
_NAMED: Final = re.compile(rb"MNS +([!-9;-~]{1,%d}):" % KEY_ID_CHARACTERS)
_PREFIX: Final = b"x-mns-"
_OWN_DATE: Final = b"x-mns-date"
_SIGNED: Final = (b"content-md5", b"content-type", b"date")

Headers = Iterable[tuple[bytes, bytes]]


class Claim(Struct, frozen=True):
    """Who has signed (`key_id`) and when, and all that a secret is tried against: what the client
    may have signed, for its date has two readings.
    """

    key_id: str
    signature: bytes
    to_sign: tuple[bytes, ...]
    at: datetime

    def check_time(self, now: datetime) -> None:
        """Raises MnsError for a request that is over 15 minutes old, or so much ahead of us."""
        # A difference is in range for any two times, a sum is not.
        if not abs((now - self.at).total_seconds()) <= SKEW_SECONDS:
            about = f"The request is not signed within {SKEW_SECONDS // 60} minutes of {now:%Y-%m-%dT%H:%M:%SZ}"
            raise MnsError(TIME_EXPIRED, about)

    def fits(self, secret: str) -> bool:
        """Whether `secret` makes this signature; takes as long whatever the secret is."""
        # "surrogatepass" never fails: an error of `encode` would hold the secret.
        key = secret.encode("utf-8", "surrogatepass")
        # Each reading is tried, so that the time does not tell which one fits.
        fitting = [
            hmac.compare_digest(b64encode(hmac.digest(key, text, "sha1")), self.signature) for text in self.to_sign
        ]
        return any(fitting)


def claim_of(method: str, target: bytes, headers: Headers) -> Claim:
    """What the head of a request with an Authorization claims; the target is as it was sent, names
    of headers are in small letters. Raises MnsError.
    """
    grouped = _grouped(headers)
    for name, values in grouped.items():
        if len(values) > 1 and (name in _SIGNED or name == b"authorization" or name.startswith(_PREFIX)):
            raise MnsError(
                INVALID_ARGUMENT, f"The header {name.decode('ascii', 'replace')[:100]} is there more than once"
            )
    claimed = _CLAIMED.fullmatch(_value(grouped, b"authorization"))
    if claimed is None:
        raise MnsError(
            INVALID_AUTHORIZATION, "Authorization should be MNS, an access key id, a colon and a signature in Base64"
        )
    dates = [_value(grouped, b"date")]
    if b"date" not in grouped and _OWN_DATE in grouped:
        dates.append(_value(grouped, _OWN_DATE))
    to_sign = tuple(_string_to_sign(method, target, date, grouped) for date in dates)
    return Claim(claimed[1].decode("ascii"), claimed[2], to_sign, _time(grouped))


def claimed_key_id(authorization: bytes) -> str | None:
    """The key id that a request names, believed by open mode; None when it names none."""
    named = _NAMED.match(authorization)
    return None if named is None else named[1].decode("ascii")


def string_to_sign(method: str, target: bytes, headers: Headers) -> bytes:
    """What a client signs: the arguments as of `claim_of`."""
    grouped = _grouped(headers)
    return _string_to_sign(method, target, _value(grouped, b"date"), grouped)


def check_digest(named: bytes, body: bytes) -> None:
    """Raises MnsError unless `named` is the digest of the body: in Base64, of its 16 bytes or, as
    SDKs have it, of its 32 hex digits.
    """
    digest = md5(body, usedforsecurity=False)
    if named not in (b64encode(digest.digest()), b64encode(digest.hexdigest().encode())):
        raise MnsError(INVALID_DIGEST, "Content-MD5 is not the digest of the body")


def _grouped(headers: Headers) -> dict[bytes, list[bytes]]:
    grouped: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        grouped.setdefault(name.lower(), []).append(value.strip())
    return grouped


def _value(grouped: dict[bytes, list[bytes]], name: bytes) -> bytes:
    return b",".join(grouped.get(name, ()))


def _string_to_sign(method: str, target: bytes, date: bytes, grouped: dict[bytes, list[bytes]]) -> bytes:
    lines = [method.encode(), _value(grouped, b"content-md5"), _value(grouped, b"content-type"), date]
    lines += [name + b":" + _value(grouped, name) for name in sorted(grouped) if name.startswith(_PREFIX)]
    return b"\n".join([*lines, target])


def _time(grouped: dict[bytes, list[bytes]]) -> datetime:
    """When the request was signed."""
    text = _value(grouped, b"date") or _value(grouped, _OWN_DATE)
    if not text:
        raise MnsError(MISSING_DATE, "The request needs a Date.")
    try:
        at = parsedate_to_datetime(text.decode("ascii"))
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)  # -0000 has none
    except (ValueError, TypeError, OverflowError):
        raise MnsError(INVALID_DATE, "Date should be as Thu, 01 Jan 2026 00:00:00 GMT") from None
