"""AWS Signature Version 4: what a request claims, and whether a secret makes the same signature.
Header and presigned query.

Pure: no clock, no keys. Any region is accepted, the service must be sqs.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from hashlib import sha256
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct

from facade.dialects.sqs.wire.errors import INCOMPLETE_SIGNATURE, REQUEST_EXPIRED, SIGNATURE_DOES_NOT_MATCH, SqsError
from facade.dialects.sqs.wire.limits import KEY_ID_CHARACTERS, PRESIGNED_SECONDS, SKEW_SECONDS

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_TERMINATOR: Final = "aws4_request"
_TIME: Final = "%Y%m%dT%H%M%SZ"
# Of each part that clients repeat. A head has 64 KiB at most, so a hostile client fills 8 MiB.
_KEPT: Final = 128
_KEY_ID: Final = re.compile(rf"[!-.0-~]{{1,{KEY_ID_CHARACTERS}}}")
_CLAIMED: Final = re.compile(
    rb"AWS4-HMAC-SHA256 .*?Credential=([!-.0-~]{1,%d})/(?:[0-9]*/([^/,\s]*)/)?" % KEY_ID_CHARACTERS
)
_CLAIMED_IN_QUERY: Final = re.compile(
    rb"X-Amz-Credential=([A-Za-z0-9_.~-]{1,%d})(?:/|%%2[Ff])(?:[0-9]*(?:/|%%2[Ff])([A-Za-z0-9_.~-]*)(?:/|%%2[Ff]))?"
    % KEY_ID_CHARACTERS
)
# Whoever sees a request of ours may not turn it into another: these say where it goes, when, and
# what it asks.
_ALWAYS_SIGNED: Final = ("host",)
_SIGNED_IF_THERE: Final = ("x-amz-date", "x-amz-target", "x-amz-content-sha256")


class Asked(Struct, frozen=True):
    """A request as the signature sees it: path and query as they were sent, header names in lower
    case.
    """

    method: str
    path: bytes
    query: bytes
    headers: list[tuple[bytes, bytes]]


class Claim(Struct, frozen=True):
    """Who has signed (`key_id`), and all that a secret is tried against. `expires_s` of a presigned
    request, else None.
    """

    key_id: str
    day: str
    region: str
    at: datetime
    at_text: str
    signed_headers: list[str]
    signature: str
    canonical: str
    payload: str | None
    expires_s: int | None

    def check_time(self, now: datetime) -> None:
        """Raises SqsError for a request that was signed too long ago, or in the future."""
        # A difference is in range for any two times, a sum is not.
        age_s = (now - self.at).total_seconds()
        if not -SKEW_SECONDS <= age_s <= (SKEW_SECONDS if self.expires_s is None else self.expires_s):
            raise SqsError(
                REQUEST_EXPIRED,
                f"Signature expired: {self.at_text} is not within {SKEW_SECONDS // 60} minutes of {now:{_TIME}}.",
            )

    def fits(self, secret: str, body: bytes) -> bool:
        """Whether `secret` makes this signature of this request with this body; takes as long
        whatever the answer is.
        """
        payload = sha256(body).hexdigest()
        if self.payload not in (None, payload, _UNSIGNED):
            return False
        request = f"{self.canonical}\n{self.payload or payload}"
        scope = f"{self.day}/{self.region}/sqs/{_TERMINATOR}"
        to_sign = f"{_ALGORITHM}\n{self.at_text}\n{scope}\n{sha256(request.encode('latin-1')).hexdigest()}"
        made = _hmac(signing_key(secret, self.day, self.region), to_sign).hex()
        return hmac.compare_digest(made.encode(), self.signature.encode())


def claim_of(asked: Asked) -> Claim | None:
    """What the request claims; None = it is not signed. Raises SqsError for a claim that can't be
    understood.
    """
    headers: dict[str, list[str]] = {}
    for name, value in asked.headers:
        headers.setdefault(_text(name), []).append(value.decode("latin-1"))
    fields = _fields(asked.query)
    authorization = headers.get("authorization", [""])[0]
    if authorization:
        # All but the signature is the same in every request of a client for a day.
        constant, marker, signature = authorization.rpartition("Signature=")
        if marker and "," not in signature:
            algorithm, parts = _parts(constant)
            parts = {**parts, "Signature": signature.strip()}
        else:
            algorithm, parts = _parts(authorization)
        at_text = _last(headers, "x-amz-date") or _last(headers, "date")
        expires = None
    elif "X-Amz-Algorithm" in fields:
        algorithm, at_text = fields["X-Amz-Algorithm"], fields.get("X-Amz-Date", "")
        parts = {name: fields.get(f"X-Amz-{name}", "") for name in ("Credential", "SignedHeaders", "Signature")}
        expires = _expires(fields.get("X-Amz-Expires", ""))
    else:
        return None
    if algorithm != _ALGORITHM or not all(parts.get(name) for name in ("Credential", "SignedHeaders", "Signature")):
        raise _incomplete(f"A request is signed with {_ALGORITHM}, Credential, SignedHeaders and Signature.")
    key_id, day, region = _scope(parts["Credential"])
    at, at_text = _time(at_text)
    signed = parts["SignedHeaders"].split(";")
    _check_signed(signed, headers, presigned=expires is not None)
    if at_text[:8] != day:
        raise SqsError(
            SIGNATURE_DOES_NOT_MATCH, f"The date in the credential's scope is not that of the request, {at_text}."
        )
    payload = _last(headers, "x-amz-content-sha256") or None
    canonical = _canonical(asked, headers, signed)
    return Claim(key_id, day, region, at, at_text, signed, parts["Signature"], canonical, payload, expires)


def claimed_key_id(authorization: bytes, query: bytes) -> str | None:
    """The key id that a request names, believed by open mode; None when it names none."""
    found = claimed_scope(authorization, query)
    return None if found is None else found[0]


def claimed_scope(authorization: bytes, query: bytes) -> tuple[str, str] | None:
    """The key id and the region ("" = none) that a request names; None when it names no key."""
    found = _CLAIMED.match(authorization) or (_CLAIMED_IN_QUERY.search(query) if b"X-Amz-Credential" in query else None)
    if found is None:
        return None
    key_id = found[1]
    return (unquote_to_bytes(key_id) if b"%" in key_id else key_id).decode("latin-1"), (found[2] or b"").decode(
        "latin-1"
    )


def _incomplete(message: str) -> SqsError:
    return SqsError(INCOMPLETE_SIGNATURE, message)


@lru_cache(maxsize=_KEPT)
def _text(name: bytes) -> str:
    return name.decode("latin-1")


@lru_cache(maxsize=_KEPT)
def _parts(authorization: str) -> tuple[str, dict[str, str]]:
    """The algorithm and the parts of an Authorization header. Not to be changed by who asks."""
    algorithm, _, rest = authorization.partition(" ")
    return algorithm, {
        name.strip(): value.strip() for name, _, value in (part.partition("=") for part in rest.split(","))
    }


def _last(headers: Mapping[str, list[str]], name: str) -> str:
    return headers.get(name, [""])[-1].strip()


def _fields(query: bytes) -> dict[str, str]:
    return (
        {name: unquote_to_bytes(value).decode("utf-8", "replace") for name, value in _pairs(query)}
        if b"X-Amz-" in query
        else {}
    )


def _pairs(query: bytes) -> Iterable[tuple[str, str]]:
    for part in query.decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if part:
            yield name, value


def _expires(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= PRESIGNED_SECONDS):
        raise _incomplete(f"X-Amz-Expires must be 1 to {PRESIGNED_SECONDS}.")
    return int(text)


@lru_cache(maxsize=_KEPT)
def _scope(credential: str) -> tuple[str, str, str]:
    parts = credential.rsplit("/", 4)
    if len(parts) != 5 or not _KEY_ID.fullmatch(parts[0]) or parts[3:] != ["sqs", _TERMINATOR]:
        raise _incomplete(f"Credential must be a key id and a scope, as key/20260101/us-east-1/sqs/{_TERMINATOR}.")
    return parts[0], parts[1], parts[2]


@lru_cache(maxsize=_KEPT)
def _time(text: str) -> tuple[datetime, str]:
    """The time of a request, and the same in the form that is signed."""
    try:
        at = datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        try:
            at = parsedate_to_datetime(text).astimezone(UTC)
        except (ValueError, TypeError, OverflowError):
            raise _incomplete("The request needs X-Amz-Date, as 20260101T000000Z.") from None
    return at, at.strftime(_TIME)


def _check_signed(signed: list[str], headers: Mapping[str, list[str]], *, presigned: bool) -> None:
    needed = [*_ALWAYS_SIGNED, *(name for name in _SIGNED_IF_THERE if name in headers)]
    if not presigned and "x-amz-date" not in headers:
        needed.append("date")
    for name in needed:
        if name not in signed or name not in headers:
            raise SqsError(SIGNATURE_DOES_NOT_MATCH, f"The header '{name}' must be signed.")


def _canonical(asked: Asked, headers: Mapping[str, list[str]], signed: list[str]) -> str:
    """The canonical request without its last line, the hash of the payload."""
    query = _canonical_query(asked.query) if asked.query else ""
    lines = "".join(
        f"{name}:{','.join(' '.join(value.split()) for value in headers.get(name, []))}\n" for name in signed
    )
    return f"{asked.method}\n{_path(asked.path)}\n{query}\n{lines}\n{';'.join(signed)}"


def _canonical_query(raw: bytes) -> str:
    fields = sorted(
        (quote(unquote_to_bytes(name), safe="-_.~"), quote(unquote_to_bytes(value), safe="-_.~"))
        for name, value in _pairs(raw)
        if name != "X-Amz-Signature"
    )
    return "&".join(f"{name}={value}" for name, value in fields)


@lru_cache(maxsize=_KEPT)
def _path(raw: bytes) -> str:
    """The path without dot segments and empty ones, each part escaped once more than it was
    sent.
    """
    kept: list[str] = []
    text = raw.decode("latin-1")
    for part in text.split("/"):
        if part == "..":
            del kept[-1:]
        elif part not in ("", "."):
            kept.append(part)
    end = "/" if kept and text.endswith("/") else ""
    return quote("/" + "/".join(kept) + end, safe="/~", encoding="latin-1")


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode("latin-1", "replace"), "sha256")


@lru_cache(maxsize=256)
def signing_key(secret: str, day: str, region: str) -> bytes:
    """What signs the requests of a day in a region."""
    key = ("AWS4" + secret).encode()
    for part in (day, region, "sqs", _TERMINATOR):
        key = _hmac(key, part)
    return key
