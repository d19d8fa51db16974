"""What the window keeps of a record: a header with its times, then the record as it is in Kafka.

Lua reads the same header (`struct.unpack` in `state/lua/`).
"""

from __future__ import annotations

import struct

_HEADER = struct.Struct(">QQq")
HEADER_BYTES = _HEADER.size


def pack_body(sent_at_ms: int, due_ms: int, lease_ms: int | None, record: bytes) -> bytes:
    """What the window keeps of a record: sent, due, own lease (None = the queue's), then the record
    as it is in Kafka.

    With `record` b"" it keeps no body, so nothing of an own lease either.
    """
    return _HEADER.pack(sent_at_ms, due_ms, -1 if lease_ms is None else lease_ms) + record


def delay_of_body(packed: bytes) -> int:
    """How long after it was sent a message that was packed so is due, in ms."""
    sent_at_ms, due_ms, _ = _HEADER.unpack_from(packed)
    return int(due_ms - sent_at_ms)
