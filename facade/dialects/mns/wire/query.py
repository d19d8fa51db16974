"""Query strings of MNS: names in any case, values as they were sent or escaped; a plus is a
plus.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from facade.dialects.mns.wire.errors import INVALID_ARGUMENT, INVALID_QUERY, MnsError

_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}")


def parse(query: bytes) -> dict[str, str]:
    """Parameters by their names in small letters. Raises MnsError."""
    if _BAD_ESCAPE.search(query):
        raise MnsError(INVALID_QUERY, "the query string has a percent sign without two hex digits behind it")
    found: dict[str, str] = {}
    for part in query.split(b"&"):
        if not part:
            continue
        raw_name, _, raw_value = part.partition(b"=")
        try:
            name, value = unquote_to_bytes(raw_name).decode().lower(), unquote_to_bytes(raw_value).decode()
        except UnicodeDecodeError:
            raise MnsError(INVALID_QUERY, "the query string is not UTF-8") from None
        if name in found:
            raise MnsError(INVALID_QUERY, f"the query string has {name[:100]!r} twice")
        found[name] = value
    return found


def number(name: str, text: str, low: int, high: int) -> int:
    """A whole number in its range. Raises MnsError."""
    if not _NUMBER.fullmatch(text.strip()) or not low <= int(text) <= high:
        raise MnsError(INVALID_ARGUMENT, f"The value of {name} should between {low} and {high}, given {text[:100]!r}")
    return int(text)


def asked(query: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    """As `number`, of a parameter; None = it is not there. Raises MnsError."""
    text = query.get(name.lower())
    return None if text is None else number(name, text, low, high)
