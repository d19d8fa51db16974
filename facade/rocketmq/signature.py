"""Signatures of RocketMQ clients: what the metadata of a request claims, and whether a secret makes
the same signature.

Pure: no clock, no keys. Only the time of the request is signed, so whoever sees a request can make
others until that time is too old. Clients write their local time and say that it is UTC
(reference/rocketmq.md 4.5): the window is as wide as the time zones are. Neighbours: the exchange
reads the claim, the engine has the secret. This module must not know methods.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from facade.rocketmq.wire.errors import RocketError
from facade.rocketmq.wire.rocketmq_pb2 import Code

ALGORITHM: Final = "MQv2-HMAC-SHA1"
DATE_TIME: Final = "x-mq-date-time"
KEY_ID_CHARACTERS: Final = 128
# The farthest time zones, and a quarter of an hour for clocks.
BEHIND: Final = timedelta(hours=12, minutes=15)
AHEAD: Final = timedelta(hours=14, minutes=15)

_KEY_ID: Final = re.compile(rf"[!-+\--.0-~]{{1,{KEY_ID_CHARACTERS}}}")  # printable, without ',' and '/'
_SIGNATURE: Final = re.compile(r"[0-9A-Fa-f]{40}")
_TIME: Final = re.compile(r"\d{8}T\d{6}Z", re.ASCII)


class Claim(Struct, frozen=True):
    """Who has signed, when by their clock, and what a secret is tried against."""

    key_id: str
    signature: bytes
    to_sign: bytes
    at: datetime

    def check_time(self, now: datetime) -> None:
        """Raises RocketError for a time that is now in no time zone."""
        if not -BEHIND <= self.at - now <= AHEAD:
            raise RocketError(Code.UNAUTHORIZED, f"{DATE_TIME} is no time of today: it is {now:%Y%m%dT%H%M%SZ} here")

    def fits(self, secret: str) -> bool:
        """Whether `secret` makes this signature; takes as long whatever the secret is."""
        # "surrogatepass" never fails: an error of `encode` would hold the secret.
        made = hmac.digest(secret.encode("utf-8", "surrogatepass"), self.to_sign, "sha1")
        return hmac.compare_digest(made, self.signature)


def claim_of(metadata: Mapping[str, str]) -> Claim | None:
    """What the metadata of a request claims; None = it is not signed. Raises RocketError."""
    words = _words(metadata.get("authorization", ""))
    key_id = _key_id(words)
    if key_id is None:
        return None
    if _SIGNATURE.fullmatch(words.get("signature", "")) is None:
        raise RocketError(Code.UNAUTHORIZED, "the signature must be 40 hex digits")
    if words.get("signedheaders", "").lower() != DATE_TIME:
        raise RocketError(Code.UNAUTHORIZED, f"the signed header must be {DATE_TIME}")
    text = metadata.get(DATE_TIME, "")
    return Claim(key_id, bytes.fromhex(words["signature"]), text.encode("utf-8", "surrogatepass"), _time(text))


def claimed_key_id(metadata: Mapping[str, str]) -> str | None:
    """The key id that a request names, believed by open mode; None when it names none."""
    return _key_id(_words(metadata.get("authorization", "")))


def _words(authorization: str) -> dict[str, str]:
    """The parts of the header by their names in small letters; none of another algorithm."""
    algorithm, _, rest = authorization.partition(" ")
    if algorithm != ALGORITHM:
        return {}
    pairs = (part.strip().partition("=") for part in rest.split(","))
    return {name.lower(): value for name, _, value in pairs}


def _key_id(words: Mapping[str, str]) -> str | None:
    """Clients may have a scope behind the key id."""
    key_id = words.get("credential", "").partition("/")[0]
    return key_id if _KEY_ID.fullmatch(key_id) else None


def _time(text: str) -> datetime:
    try:
        if _TIME.fullmatch(text) is None:
            raise ValueError
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise RocketError(Code.UNAUTHORIZED, f"{DATE_TIME} must be as 20260102T030405Z") from None
