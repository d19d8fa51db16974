"""The MD5s of SQS: clients compare them with their own and raise when they differ."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import md5
from struct import pack

_TEXT, _BINARY = b"\x01", b"\x02"


def of_body(body: bytes) -> str:
    """Hex MD5 of a body in UTF-8."""
    return md5(body, usedforsecurity=False).hexdigest()


def of_attributes(attributes: Iterable[tuple[str, str, bytes]]) -> str | None:
    """Hex MD5 of (name, data type, value) triples; None of none.

    By name: length and name, length and data type, one byte for the kind of transport, length and
    value; lengths are 4 bytes, big-endian.
    """
    digest = md5(usedforsecurity=False)
    none = True
    for name, data_type, value in sorted(attributes):
        none = False
        for part in (name.encode(), data_type.encode()):
            digest.update(pack(">I", len(part)) + part)
        digest.update((_BINARY if data_type.startswith("Binary") else _TEXT) + pack(">I", len(value)) + value)
    return None if none else digest.hexdigest()
