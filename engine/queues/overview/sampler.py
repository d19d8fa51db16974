"""Notes the numbers of all queues at each step of each span: what has changed since the last. Keeps
them in Kafka, and brings them back when Redis has lost them.

The history topic is what Redis has, by the same names; the newest record of a name counts, and one
without a value says that it is gone. Redis says which names the topic does not have as they are, so
whoever counts next saves what the one before did not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, LogUnavailable
from engine.log import Log, Record
from engine.queues.overview.rings import SPANS, Chunk, Span
from runtime.cancel import before
from schemas.records.watching import HistoryRecord
from schemas.topics import history_topic
from schemas.wire import UndecodableRecord, decode, encode
from state.shared.history import GONE, GROUP, HistoryStore
from state.shared.overview import Counted

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
            values = [
                *((name, _record(name, value)) for name, value in found if value is not None),
                *((name, None) for name in gone),
            ]
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
        await self._store.put(
            {name: value for name, value in values.items() if self._is_known(name) and name not in newer}
        )

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


# How often it is saved; a chunk is some of these long.
SAVED_MS = 60_000
# Steps without a point after which another worker may have counted meanwhile.
RECENT = 3


class _Track:
    """One span: the chunk that runs, of each queue that was noted by this worker."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.slot = -1
        self.places: tuple[int, int] | None = None
        self.chunks: dict[str, tuple[int, Chunk]] = {}
        self.counted: set[str] = set()
        self.unwritten: set[str] = set()


class Sampler:
    """Belongs to the worker that counts. Memory: up to 2.5 kB for a queue that changes all the
    time.
    """

    def __init__(self, store: HistoryStore, saving: Saving) -> None:
        self._store = store
        self._saving = saving
        self._saved = -1
        self._rows: dict[str, Counted] = {}
        self._tracks = [_Track(span) for span in SPANS.values()]

    async def begin(self, now_ms: int) -> None:
        """Goes on after another worker, or none; after itself, where Redis has lost the lock with
        everything else: nobody has noted anything since then. Raises StateUnavailable, StateLost.
        """
        self._saved = -1
        hour = self._tracks[0]
        if now_ms // hour.span.step_ms - hour.slot <= RECENT and not await self._store.is_whole():
            return
        self._rows = {}
        self._tracks = [_Track(span) for span in SPANS.values()]

    def note(self, rows: Mapping[str, Counted]) -> None:
        """These queues were counted."""
        self._rows.update(rows)
        for track in self._tracks:
            track.counted.update(rows)

    async def drop(self, incarnations: Iterable[str]) -> None:
        """These lives of queues are over. Raises StateUnavailable, StateLost."""
        names = [*incarnations]
        for name in names:
            self._rows.pop(name, None)
            for track in self._tracks:
                track.chunks.pop(name, None)
                track.counted.discard(name)
                track.unwritten.discard(name)
        await self._store.drop(names)

    async def sample(self, now_ms: int) -> None:
        """Notes the numbers as they were counted last, once in each step, and saves them once in
        SAVED_MS, before a new chunk begins. Raises StateUnavailable, StateLost: then that step is a
        gap. One is a gap too while Redis has lost what was noted and Kafka does not give it back.
        """
        due = [track for track in self._tracks if now_ms // track.span.step_ms > track.slot]
        if not due or not await self._is_restored():
            return
        if now_ms // SAVED_MS != self._saved:
            self._saved = now_ms // SAVED_MS
            await self._save()
        for track in due:
            track.slot = now_ms // track.span.step_ms
            await self._sample(track, *divmod(track.slot, track.span.length))

    async def _is_restored(self) -> bool:
        """Whether Redis has all that was noted; what is held here is newer than what Kafka has."""
        try:
            if await self._saving.restore():
                for track in self._tracks:
                    track.unwritten.update(track.chunks)
                    if track.places is not None:
                        await self._write(track, *track.places)
        except EngineError as error:
            logger.warning("action=restore_history error=%s", error)
            return False
        return True

    async def _save(self) -> None:
        try:
            await self._saving.save()
        except EngineError as error:
            logger.warning("action=save_history error=%s", error)

    async def _sample(self, track: _Track, number: int, place: int) -> None:
        span = track.span
        if track.places is None or track.places[0] != number:
            (noted,) = await self._store.noted(span.name, [number])
            track.places = (number, noted)
            await self._store.trim(span.name, number - span.kept + 1)
        if track.places[1] >> place & 1:
            return  # another worker has, and its numbers are nearer to the beginning of the step
        began = [name for name in track.counted if name not in track.chunks or track.chunks[name][0] != number]
        for at in range(0, len(began), GROUP):
            some = began[at : at + GROUP]
            chunks = await asyncio.gather(*(self._chunk(track, name, number) for name in some))
            track.chunks.update((name, (number, chunk)) for name, chunk in zip(some, chunks, strict=True))
        empty = [name for name in track.counted if track.chunks[name][1].is_empty]
        track.unwritten.update(name for name in track.counted if track.chunks[name][1].note(place, self._rows[name]))
        track.counted.clear()
        begun = [name for name in empty if name in track.unwritten]
        await self._write(track, number, track.places[1] | 1 << place)
        await self._store.trim(span.name, number - span.kept + 1, begun)

    async def _write(self, track: _Track, number: int, places: int) -> None:
        """Writes what is unwritten of the chunk that runs, and at which places of it numbers were
        noted.
        """
        running = {name: track.chunks[name][1].pack() for name in track.unwritten if track.chunks[name][0] == number}
        await self._store.write(track.span.name, number, running)
        track.unwritten.clear()
        track.places = (number, places)
        await self._store.note(track.span.name, number, places)

    async def _chunk(self, track: _Track, name: str, number: int) -> Chunk:
        """The chunk of a queue that begins, or that another worker has begun."""
        if name in track.chunks:
            return track.chunks[name][1].after()
        (found,) = await self._store.read(name, track.span.name, [number])
        if found is not None:
            return Chunk.unpack(found)
        newest = await self._store.newest(name, track.span.name, number)
        return Chunk() if newest is None else Chunk.unpack(newest).after()
