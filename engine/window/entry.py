"""Records that were just written, as the window takes them.

Messages of this worker's own senders are kept here where they may be (`body_cache.py`), and those
of them that are alike but for their offsets are one entry: a group of a hundred sends is then some
ten arguments for the script, not seven hundred. Neighbours: `sender.py` has written them;
`core.load_entry` says what the window needs of one. Must not know how they travel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from engine.core import Core
from engine.log import Appended
from engine.rules.queue import Queue
from engine.window.body_cache import OVERHEAD_BYTES, Kept
from schemas.records import Message
from state.replies import LoadEntry

# Where it is in Kafka, the message, its record, and the hex MD5 of its body.
Row: TypeAlias = tuple[Appended, Message, bytes, str]


def entries_of(core: Core, queue: Queue, partition: int, rows: Sequence[Row], size: int) -> list[LoadEntry]:
    """Entries for records of a partition, in the order of `rows`, `size` bytes in all.

    The bodies of some are kept in `core.bodies` from now on.
    """
    now = asyncio.get_running_loop().time()
    if not core.bodies.have_room(size, len(rows), now):
        return [core.load_entry(queue, at.offset, at.timestamp_ms, message, value) for at, message, value, _ in rows]
    entries, kept = _apart(core, queue, rows, now)
    if kept:
        core.bodies.keep(queue.units[partition], kept)
    return entries


def _apart(core: Core, queue: Queue, rows: Sequence[Row], now: float) -> tuple[list[LoadEntry], list[Kept]]:
    """Entries without bodies, but for messages with leases of their own, which the window must
    know; and what is kept of them.
    """
    entries: list[LoadEntry] = []
    counts: list[int] = []
    kept: list[Kept] = []
    plain = queue.mask is not None and not queue.record.fifo
    # Where, when and for how long delayed a message is that goes with the last entry.
    fits: tuple[int, int, int] | None = None
    for at, message, value, digest in rows:
        own, grouped = message.lease_ms is not None, message.group is not None
        if fits == (at.offset, at.timestamp_ms, message.delay_ms) and not own and not grouped:
            counts[-1] += 1
        else:
            entries.append(core.load_entry(queue, at.offset, at.timestamp_ms, message, value if own else b""))
            counts.append(1)
        fits = (at.offset + 1, at.timestamp_ms, message.delay_ms) if plain and not own and not grouped else None
        tags = entries[-1].mask.count("1")
        if tags and not own:
            kept.append(Kept(at.offset, message, at.timestamp_ms, digest, len(value) + OVERHEAD_BYTES, tags, now))
    runs = zip(entries, counts, strict=True)
    return [entry if count == 1 else msgspec.structs.replace(entry, count=count) for entry, count in runs], kept
