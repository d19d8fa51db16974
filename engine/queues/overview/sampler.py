"""Notes the numbers of all queues at each step of each span: what has changed since the last."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from engine.errors import EngineError
from engine.queues.overview.rings import SPANS, Chunk, Span
from engine.queues.overview.saving import Saving
from state.shared.history import GROUP, HistoryStore
from state.shared.overview import Counted

logger = logging.getLogger(__name__)

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
