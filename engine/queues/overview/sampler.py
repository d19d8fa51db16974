"""Notes the numbers of all queues at each step of each span: what has changed since the last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from engine.queues.overview.rings import SPANS, Chunk, Span
from state.shared.history import GROUP, HistoryStore
from state.shared.overview import Counted


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

    def __init__(self, store: HistoryStore) -> None:
        self._store = store
        self._before: Mapping[str, Counted] = {}
        self._rows: dict[str, Counted] = {}
        self._tracks = [_Track(span) for span in SPANS.values()]

    def begin(self, rows: Mapping[str, Counted]) -> None:
        """Goes on after another worker, or none, which has left these rows."""
        self._before, self._rows = rows, {}
        self._tracks = [_Track(span) for span in SPANS.values()]

    def note(self, rows: Mapping[str, Counted]) -> None:
        """These queues were counted."""
        self._rows.update(rows)
        for track in self._tracks:
            track.counted.update(rows)

    def note_lost(self) -> None:
        """Redis has lost what was written: what is held here is written again."""
        for track in self._tracks:
            track.unwritten.update(track.chunks)

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
        """Notes the numbers as they were counted last, once in each step. Raises StateUnavailable,
        StateLost: then that step is a gap.
        """
        for track in self._tracks:
            slot = now_ms // track.span.step_ms
            if slot > track.slot:
                track.slot = slot
                await self._sample(track, *divmod(slot, track.span.length))

    async def _sample(self, track: _Track, number: int, place: int) -> None:
        span = track.span
        if track.places is None or track.places[0] != number:
            (noted,) = await self._store.noted(span.name, [number])
            track.places = (number, noted)
            await self._store.trim(span.name, number - span.kept + 1)
        began = [name for name in track.counted if name not in track.chunks or track.chunks[name][0] != number]
        for at in range(0, len(began), GROUP):
            some = began[at : at + GROUP]
            chunks = await asyncio.gather(*(self._chunk(track, name, number) for name in some))
            track.chunks.update((name, (number, chunk)) for name, chunk in zip(some, chunks, strict=True))
        track.unwritten.update(name for name in track.counted if track.chunks[name][1].note(place, self._rows[name]))
        track.counted.clear()
        running = {name: track.chunks[name][1].pack() for name in track.unwritten if track.chunks[name][0] == number}
        await self._store.write(span.name, number, running)
        await self._store.trim(span.name, number - span.kept + 1, [name for name in began if name in running])
        track.unwritten.clear()
        track.places = (number, track.places[1] | 1 << place)
        await self._store.note(span.name, *track.places)

    async def _chunk(self, track: _Track, name: str, number: int) -> Chunk:
        """The chunk of a queue that begins, or that another worker has begun."""
        if name in track.chunks:
            before = track.chunks[name][1]
            return Chunk(before.tags, before.last)
        (found,) = await self._store.read(name, track.span.name, [number])
        if found is not None:
            return Chunk.unpack(found)
        row = self._before.get(name)
        return Chunk() if row is None else Chunk(list(row.done), Chunk(list(row.done)).numbers(row))
