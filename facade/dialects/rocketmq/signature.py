"""Signatures of RocketMQ clients: what the metadata of a request claims, and whether a secret makes
the same signature.

No keys. Only the time of the request is signed, so whoever sees a request can make others until
that time is too old: a quarter of an hour. The clients of Java, Go and Python write their local
time and say that it is UTC, Node's writes UTC, and Rust's its offset too; so a time counts that is
now in UTC, in the zone of this machine, or in one that the settings name.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code

ALGORITHM: Final = "MQv2-HMAC-SHA1"
DATE_TIME: Final = "x-mq-date-time"
KEY_ID_CHARACTERS: Final = 128
LIFE: Final = timedelta(minutes=15)  # of a signature, and what clocks may differ, as in SQS
ANY: Final = "any"
# The farthest time zones, which ANY allows.
_BEHIND, _AHEAD = timedelta(hours=-12), timedelta(hours=14)

_KEY_ID: Final = re.compile(rf"[!-+\--.0-~]{{1,{KEY_ID_CHARACTERS}}}")  # printable, without ',' and '/'
_SIGNATURE: Final = re.compile(r"[0-9A-Fa-f]{40}")
_TIME: Final = re.compile(r"\d{8}T\d{6}Z", re.ASCII)
_WITH_OFFSET: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)

Zones = tuple[timedelta, ...] | None  # offsets from UTC; None = any


class Claim(Struct, frozen=True):
    """Who has signed, when by their clock, and what a secret is tried against. `is_exact`: the time
    has its offset, so no zone is tried.
    """

    key_id: str
    signature: bytes
    to_sign: bytes
    at: datetime
    is_exact: bool = False

    def check_time(self, now: datetime, zones: Zones) -> None:
        """Raises RocketError for a time that is not now, in UTC, here, or in one of the zones."""
        ahead = self.at - now
        if self.is_exact:
            zones = ()
        if zones is None:
            if _BEHIND - LIFE <= ahead <= _AHEAD + LIFE:
                return
        elif any(
            abs(ahead - zone) <= LIFE for zone in (timedelta(), *(() if self.is_exact else (_here(now),)), *zones)
        ):
            return
        about = f"{DATE_TIME} is {self.at:%Y%m%dT%H%M%SZ}, and it is {now:%Y%m%dT%H%M%SZ} here"
        raise RocketError(
            Code.UNAUTHORIZED, f"{about}: a client that writes local time needs its zone in LEASEWAY_ROCKETMQ_ZONES"
        )

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
    at, is_exact = _time(text)
    return Claim(key_id, bytes.fromhex(words["signature"]), text.encode("utf-8", "surrogatepass"), at, is_exact)


def zones_of(setting: str) -> Zones:
    """The zones of the setting, as "+08:00,-03:30" or "any". Raises ValueError."""
    if setting == ANY:
        return None
    return tuple(_offset(word.strip()) for word in setting.split(",") if word.strip())


def _offset(word: str) -> timedelta:
    found = datetime.strptime(word, "%z").utcoffset()
    assert found is not None
    return found


def _here(now: datetime) -> timedelta:
    return now.astimezone().utcoffset() or timedelta()


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


def _time(text: str) -> tuple[datetime, bool]:
    """A time, and whether it has its offset. Raises RocketError."""
    try:
        if (found := _WITH_OFFSET.fullmatch(text)) is not None:
            return datetime.fromisoformat(found[1] + found[2]).astimezone(UTC), True
        if _TIME.fullmatch(text) is None:
            raise ValueError
        return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC), False
    except (ValueError, OverflowError):
        raise RocketError(
            Code.UNAUTHORIZED, f"{DATE_TIME} must be as 20260102T030405Z or 2026-01-02T03:04:05+08:00"
        ) from None
