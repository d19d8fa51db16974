"""Which records of queues' topics count as messages: where transactions of Kafka are, where batches
are not whole, and where a commit of a transaction came late.

Up to the last stable offset, the first record of a transaction that has not ended, Kafka itself
leaves out what was aborted. What lies beyond is read as it is, and only what the service wrote
itself counts: it writes without transactions of Kafka, in a format of its own that names a sender.
All else waits for the end of that transaction. The service's own sends are so held up by nobody's
transaction, and no record of a stranger is shown before its commit.

Who sends a batch answers for it only if all of it was appended within BATCH_SPAN_MS, by its own
steady clock and by the log's. So a reader that has known a part of it for longer than that, and
then asks for the end of the log, has all that was answered (`Unfinished`). Nobody's wall clock
takes part, and no two clocks are compared.

A worker that was stopped while it was about to append the messages of a commit may do so long
after another has finished its work. So such a message says when its attempt began, by the log's
own clock, and does not count when it was appended much later (`is_late`): whoever takes up a commit
begins an attempt of its own. The rule depends on the record alone, so every reader comes to the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from engine.errors import LogUnavailable
from engine.log import Chunk, Log, Record
from schemas.records import Message
from schemas.vocabulary import BATCH_CLOCK_MARGIN_MS, BATCH_SPAN_MS, COMMIT_SPAN_MS, Reason
from schemas.wire import UndecodableRecord, decode_message
from state.clock.boot import boot_s


def is_late(message: Message, appended_at_ms: int) -> bool:
    """Whether a committed message came too late to count."""
    origin = message.origin
    return (
        origin is not None
        and origin.reason == Reason.COMMITTED
        and appended_at_ms - origin.moved_at_ms > COMMIT_SPAN_MS
    )


# Incarnation of the queue, partition, id of the batch.
BatchKey: TypeAlias = tuple[str, int, str]

# Of so many it is known; one that is forgotten is waited for anew.
MOST = 10_000


class Unfinished:
    """The unfinished batches that a worker has met. It outlives the ownership of units: who looks
    at an idle partition now and then would otherwise begin to wait each time.
    """

    def __init__(self) -> None:
        self._since: dict[BatchKey, float] = {}

    def note(self, key: BatchKey) -> None:
        """A part of the batch is in the log, and not all."""
        if key not in self._since:
            while len(self._since) >= MOST:
                del self._since[next(iter(self._since))]
            self._since[key] = boot_s()

    def is_over(self, key: BatchKey) -> bool:
        """Whether what is appended from now on of a batch can't be of one that was answered."""
        since = self._since.get(key)
        return since is not None and (boot_s() - since) * 1000 > BATCH_SPAN_MS + BATCH_CLOCK_MARGIN_MS

    def forget(self, key: BatchKey) -> None:
        """It is decided."""
        self._since.pop(key, None)


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

    async def fetch_own(
        self, topic: str, partition: int, offset: int, max_records: int, max_bytes: int, open_from: int
    ) -> Chunk:
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
