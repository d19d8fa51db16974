"""The records of queues' topics that count as messages, where transactions of Kafka are.

Up to the last stable offset, the first record of a transaction that has not ended, Kafka itself
leaves out what was aborted. What lies beyond is read as it is, and only what the service wrote
itself counts: it writes without transactions of Kafka, in a format of its own that names a sender.
All else waits for the end of that transaction. The service's own sends are so held up by nobody's
transaction, and no record of a stranger is shown before its commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.errors import LogUnavailable
from engine.log import Chunk, Log, Record
from schemas.wire import UndecodableRecord, decode_message

# How often it is looked again whether a log that grows has a transaction at its end.
TRIES = 3


class MessageLog:
    """Reads topics of queues. Any number of tasks may ask."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def fetch(self, topic: str, partition: int, offset: int, max_records: int, max_bytes: int) -> Chunk:
        """As `Log.fetch`, with what counts. A chunk from beyond a transaction that is open says so
        in `open_from`; it may be empty before the end. Raises LogUnavailable.
        """
        part = (topic, partition)
        for _ in range(TRIES):
            chunk = await self._log.fetch(topic, partition, offset, max_records, max_bytes, committed=True)
            begin = max(offset, chunk.next_offset)
            if chunk.records or not chunk.at_end or (await self._log.end_offsets([part])).get(part, 0) <= begin:
                return chunk
            # Asked after the end: if it is still before that, a transaction is open there.
            stable = (await self._log.stable_offsets([part])).get(part)
            if stable is None:
                raise LogUnavailable(f"the end of {topic} can't be read")
            if stable <= begin:
                return await self.fetch_own(topic, partition, begin, max_records, max_bytes, stable)
        return msgspec.structs.replace(chunk, at_end=False)

    async def fetch_own(self, topic: str, partition: int, offset: int, max_records: int, max_bytes: int, open_from: int) -> Chunk:
        """As `fetch`, from beyond a transaction that was found open, and only what the service
        wrote: also when it has ended meanwhile.
        """
        chunk = await self._log.fetch(topic, partition, offset, max_records, max_bytes)
        return msgspec.structs.replace(chunk, records=list(filter(_is_own, chunk.records)), open_from=open_from)

    async def read_at(self, topic: str, partition: int, offsets: Sequence[int]) -> dict[int, Record]:
        """As `Log.read_at`: a record that does not count is absent. Raises LogUnavailable."""
        found = await self._log.read_at(topic, partition, offsets, committed=True)
        lacking = [offset for offset in offsets if offset not in found]
        if lacking:
            part = (topic, partition)
            stable = (await self._log.stable_offsets([part])).get(part, 0)
            if beyond := [offset for offset in lacking if offset >= stable]:
                records = await self._log.read_at(topic, partition, beyond)
                found.update({offset: record for offset, record in records.items() if _is_own(record)})
        return found


def _is_own(record: Record) -> bool:
    """Whether the service wrote a record."""
    try:
        return bool(decode_message(record.value, record.headers).sender)
    except UndecodableRecord:
        return False
