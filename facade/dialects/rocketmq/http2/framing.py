"""The bytes of gRPC: heads of requests, messages with their lengths, statuses.

Pure. A status ends a call; RocketMQ's own errors are in messages.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NoReturn
from urllib.parse import quote

MESSAGE_BYTES: Final = 5_000_000  # of a request; a batch of the engine has 4,016,384 at most
METADATA_BYTES: Final = 16_384
PREFIX: Final = 5
_UNITS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_DIGITS: Final = 8


class GrpcStatus(IntEnum):
    """Statuses of gRPC that are answered here."""

    OK = 0
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class CallEnded(Exception):
    """A call ends with this status of gRPC."""

    def __init__(self, status: GrpcStatus, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def end(status: GrpcStatus, text: str) -> NoReturn:
    """Raises CallEnded."""
    raise CallEnded(status, text)


def message_of(body: bytes) -> bytes:
    """A message as it is written: not compressed, its length before it."""
    return struct.pack(">BI", 0, len(body)) + body


def size_of(prefix: bytes | bytearray) -> int:
    """The bytes of a message by its prefix. Raises CallEnded."""
    compressed, size = struct.unpack_from(">BI", prefix)
    if compressed:
        end(GrpcStatus.UNIMPLEMENTED, "compressed messages are not served")
    if size > MESSAGE_BYTES:
        end(GrpcStatus.RESOURCE_EXHAUSTED, f"a request has {MESSAGE_BYTES} bytes at most, given {size}")
    return int(size)


def timeout_of(text: str) -> float | None:
    """The time that a client gives a call, in seconds; None = it does not say, or says it wrong."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isascii() or not number.isdigit() or len(number) > _DIGITS:
        return None
    return int(number) * _UNITS[unit]


def trailers(status: GrpcStatus, text: str) -> list[tuple[str, str]]:
    """How a call ends."""
    words = [("grpc-status", str(int(status)))]
    if text:
        words.append(("grpc-message", quote(text, safe=" !\"#$&'()*+,/:;<=>?@[]^`{|}~")))
    return words
