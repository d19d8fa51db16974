"""The Avro binary of a snapshot in blocks: as one, a quarter of a million rows would hold up all
other threads for half a second.

Neighbours: `wire` calls it, `pack` has the small parts; tests hold it to the library. Must not know
topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_writer
from msgspec import to_builtins

from schemas.pack import long, text
from schemas.records import SnapshotRecord

ROWS = 2_000
_END = b"\x00"
_LONGS = parse_schema({"type": "array", "items": "long"})
_TEXTS = parse_schema({"type": "array", "items": "string"})


def _array(schema: Any, items: Sequence[Any]) -> Iterator[bytes]:
    """An array of Avro in blocks of ROWS items; each is what the library writes, without the end
    that it puts behind.
    """
    for at in range(0, len(items), ROWS):
        block = BytesIO()
        schemaless_writer(block, schema, to_builtins(items[at : at + ROWS]))
        yield block.getvalue()[: -len(_END)]
    yield _END


def pack_snapshot(record: SnapshotRecord, head: bytes, deliveries: Any) -> bytes:
    """`head` and the snapshot; `deliveries` = the parsed schema of that field. Raises ValueError or
    TypeError for what does not fit.
    """
    parts = [head, text(record.queue), text(record.incarnation), *map(long, (record.partition, record.seq, record.at_ms))]
    if record.tags:
        parts.append(long(len(record.tags)))
    for tag in record.tags:
        parts += (long(tag.tag), long(tag.floor))
        parts += _array(_LONGS, tag.settled_first)
        parts += _array(_LONGS, tag.settled_count)
        parts += _array(deliveries, tag.deliveries)
        parts += map(long, (tag.bound, tag.mark_ms, tag.mark_offset))
        for longs in (tag.deferred, tag.deferred_due, tag.slots, tag.slot_counts, tag.excepted, tag.excepted_slots):
            parts += _array(_LONGS, longs)
    parts.append(_END)
    parts += _array(_TEXTS, record.move_keys)
    parts += _array(_LONGS, record.move_offsets)
    return b"".join(parts)
