"""Reads what the workers have counted, from the meter topic.

A record that Kafka has twice counts once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from engine.errors import LogUnavailable
from engine.log import Log
from engine.log.shapes import Record
from schemas.records.watching import MeterRecord
from schemas.topics import meter_partition, meter_topic
from schemas.vocabulary import LATE_MS
from schemas.wire import UndecodableRecord, decode

logger = logging.getLogger(__name__)

CHUNK_RECORDS = 1_000
CHUNK_BYTES = 1_000_000
PATIENCE_S = 10.0


class Seen:
    """Which records were read: a repeat is dropped."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, str, str]] = set()

    def is_new(self, record: MeterRecord) -> bool:
        """Whether a record is the first of its kind."""
        key = (record.minute_ms, record.incarnation, record.worker)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def forget_before(self, minute_ms: int) -> None:
        """Drops what is known of older minutes."""
        self._seen = {key for key in self._seen if key[0] >= minute_ms}


class History:
    """Reads of this worker. Any number of tasks may read at once; each holds a chunk of a megabyte
    and what its `add` keeps.
    """

    def __init__(self, prefix: str, log: Log) -> None:
        self._topic = meter_topic(prefix)
        self._log = log

    async def read(self, incarnation: str, from_ms: int, to_ms: int, add: Callable[[MeterRecord], None]) -> None:
        """Gives `add` each record of a life of a queue whose minute began in [from_ms, to_ms).
        Raises LogUnavailable, also when the reading takes 10 s.
        """
        part = (self._topic, meter_partition(incarnation))
        until = asyncio.get_running_loop().time() + PATIENCE_S
        starts, ends = await asyncio.gather(
            self._log.offsets_at([part], from_ms), self._log.offsets_at([part], to_ms + LATE_MS)
        )
        offset, end, seen, key = starts.get(part, 0), ends.get(part, 0), Seen(), incarnation.encode()
        while offset < end:
            if asyncio.get_running_loop().time() > until:
                raise LogUnavailable(f"the meters from {from_ms} to {to_ms} took longer than {PATIENCE_S:g} s to read")
            chunk = await self._log.fetch(*part, offset, CHUNK_RECORDS, CHUNK_BYTES)
            for record in chunk.records:
                if (
                    record.key == key
                    and (found := meter_of(record)) is not None
                    and from_ms <= found.minute_ms < to_ms
                    and seen.is_new(found)
                ):
                    add(found)
            offset = chunk.next_offset
            if chunk.at_end:
                return


def meter_of(record: Record) -> MeterRecord | None:
    """What a record says; None = it is none of ours."""
    try:
        found = decode(record.value or b"")
    except UndecodableRecord as error:
        logger.error("action=read_meters offset=%d error=%s", record.offset, error)
        return None
    return found if isinstance(found, MeterRecord) else None
