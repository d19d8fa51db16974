"""Keeps in Kafka what the numbers of queues were, and brings it back when Redis has lost it.

The history topic is what Redis has, by the same names; the newest record of a name counts, and one
without a value says that it is gone. Redis says which names the topic does not have as they are, so
whoever counts next saves what the one before did not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable
from engine.log import Log, Record
from runtime.cancel import before
from schemas.records.watching import HistoryRecord
from schemas.topics import history_topic
from schemas.wire import UndecodableRecord, decode, encode
from state.shared.history import GONE, HistoryStore

logger = logging.getLogger(__name__)

# A save takes no longer, for nothing is counted meanwhile. What Kafka has not taken then, the next
# one saves.
PATIENCE_S = 2.0
AT_A_TIME = 200
CHUNK_RECORDS = 1_000
CHUNK_BYTES = 4_000_000


class Saving:
    """Belongs to the worker that counts, which calls one method at a time. One that goes on after
    its successor has begun may save what is older than that has saved: until that changes, and is
    saved again, a restored history ends with it.
    """

    def __init__(self, prefix: str, store: HistoryStore, log: Log, catalog: Catalog) -> None:
        self._topic = history_topic(prefix)
        self._store = store
        self._log = log
        self._catalog = catalog

    async def save(self) -> None:
        """Writes to Kafka what that does not have as it is in Redis. Raises EngineError: what is
        not written is still to be saved; StateUnavailable, StateLost.
        """
        names = await self._store.unsaved()
        until = asyncio.get_running_loop().time() + PATIENCE_S

        def late() -> LogUnavailable:
            return LogUnavailable(f"the histories of queues took longer than {PATIENCE_S:g} s to save")

        for at in range(0, len(names), AT_A_TIME):
            some = names[at : at + AT_A_TIME]
            gone = [name.removeprefix(GONE) for name in some if name.startswith(GONE)]
            kept = [name for name in some if not name.startswith(GONE)]
            # What Redis has lost since is not gone: `restore` brings it back.
            found = zip(kept, await self._store.values(kept), strict=True)
            values = [*((name, _record(name, value)) for name, value in found if value is not None), *((name, None) for name in gone)]
            appends = [self._log.append(self._topic, 0, value, key=name.encode()) for name, value in values]
            await before(until, asyncio.gather(*appends), late)
            await self._store.note_saved(some)

    async def restore(self) -> bool:
        """Brings back what Kafka has, and returns True, where Redis has lost it. Raises
        EngineError, StateUnavailable, StateLost: then it is not all there, and the next call does
        it again.
        """
        if await self._store.is_whole():
            return False
        await self._catalog.sync()
        newer = set(await self._store.unsaved())
        part = (self._topic, 0)
        starts, ends = await asyncio.gather(self._log.start_offsets([part]), self._log.end_offsets([part]))
        offset, end = starts.get(part, 0), ends.get(part, 0)
        while offset < end:
            chunk = await self._log.fetch(*part, offset, CHUNK_RECORDS, CHUNK_BYTES)
            await self._put(chunk.records, newer)
            offset = chunk.next_offset
            if chunk.at_end:
                break
        await self._store.note_whole()
        logger.info("action=restore_history records=%d", end)
        return True

    async def _put(self, records: Iterable[Record], newer: set[str]) -> None:
        """Gives Redis the newest of some records, and notes what is of queues that are gone."""
        values = {(record.key or b"").decode("utf-8", "replace"): _packed(record) for record in records}
        gone = [name for name, value in values.items() if value and not self._is_known(name)]
        await self._store.unsave_gone(gone)
        await self._store.put({name: value for name, value in values.items() if self._is_known(name) and name not in newer})

    def _is_known(self, name: str) -> bool:
        """Whether a name is of a queue that is there, or of no queue."""
        incarnation, slash, _ = name.partition("/")
        return bool(slash) and (not incarnation or incarnation in self._catalog.by_incarnation)


def _record(name: str, packed: bytes) -> bytes:
    incarnation, _, field = name.partition("/")
    span, _, number = field.partition(":")
    return encode(HistoryRecord(incarnation, span, int(number), packed))


def _packed(record: Record) -> bytes | None:
    """What a record has for Redis; None = it is gone, or can't be read."""
    if not record.value:
        return None
    try:
        found = decode(record.value)
    except UndecodableRecord as error:
        logger.error("action=restore_history offset=%d error=%s", record.offset, error)
        return None
    return found.packed if isinstance(found, HistoryRecord) else None
