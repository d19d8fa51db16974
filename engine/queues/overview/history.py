"""Shows what the numbers of a queue were: every worker can, whoever has noted them."""

from __future__ import annotations

import asyncio

from engine.errors import InvalidValue, StoreUnavailable
from engine.queues.overview.rings import NUMBERS, OF_TAG, SPANS, Chunk, Span
from engine.rules.queue import Queue
from engine.shapes import QueueHistory
from state.clock.service_clock import ServiceClock
from state.errors import StateError
from state.shared.history import HistoryStore


class History:
    """Any number of tasks may ask; each reads up to 15 kB for a tag."""

    def __init__(self, store: HistoryStore, clock: ServiceClock) -> None:
        self._store = store
        self._clock = clock

    async def of(self, queue: Queue, span_name: str) -> QueueHistory:
        """Returns the numbers of a queue at each step of a span that ends now. Raises InvalidValue,
        StoreUnavailable.
        """
        span = SPANS.get(span_name)
        if span is None:
            raise InvalidValue(f"span must be one of {', '.join(SPANS)}, given {span_name[:100]!r}", field="span", given=span_name[:100])
        end = self._clock.now_ms() // span.step_ms + 1
        numbers = range((end - span.steps) // span.length, (end - 1) // span.length + 1)
        try:
            noted, found = await asyncio.gather(
                self._store.noted(span.name, numbers), self._store.read(queue.incarnation, span.name, numbers)
            )
            newest = None if any(found) else await self._store.newest(queue.incarnation, span.name, numbers.start)
        except StateError as error:
            raise StoreUnavailable(str(error)) from error
        slots = {
            number * span.length + place
            for number, bits in zip(numbers, noted, strict=True)
            for place in range(span.length)
            if bits >> place & 1
        }
        chunks = {number: Chunk.unpack(data) for number, data in zip(numbers, found, strict=True) if data is not None}
        if newest is not None:  # nothing has changed since
            chunks[numbers.start] = Chunk.unpack(newest).after()
        return _shown(queue, span, range(end - span.steps, end), slots, chunks)


def _shown(queue: Queue, span: Span, asked: range, noted: set[int], chunks: dict[int, Chunk]) -> QueueHistory:
    """The numbers at each slot; None where nothing was noted, and before the queue was made."""
    changes = _changes(span, chunks)
    made = queue.record.created_at_ms // span.step_ms
    columns: list[dict[str, int] | None] = []
    now: dict[str, int] | None = next((numbers for slot, numbers in changes if slot < 0), None)
    later = [change for change in changes if change[0] >= 0]
    for slot in asked:
        while later and later[0][0] <= slot:
            now = later.pop(0)[1]
        columns.append(now if slot in noted and slot >= made else None)
    last = max((slot for slot in noted if slot in asked), default=None)
    return QueueHistory(
        queue=queue.name,
        step_ms=span.step_ms,
        as_of_ms=0 if last is None else last * span.step_ms,
        at_ms=[slot * span.step_ms for slot in asked],
        numbers={name: [_number(column, name) for column in columns] for name in NUMBERS},
        done={tag.name: {name: [_number(column, f"{tag.id}:{name}") for column in columns] for name in OF_TAG} for tag in queue.tags},
    )


def _changes(span: Span, chunks: dict[int, Chunk]) -> list[tuple[int, dict[str, int] | None]]:
    """From which slot on the queue had which numbers; slot -1 = before all that is known. Where no
    chunk tells, nothing has changed.
    """
    if not chunks:
        return []
    first = chunks[min(chunks)]
    changes: list[tuple[int, dict[str, int] | None]] = [(-1, None if first.before is None else _named(first.tags, first.before))]
    for number, chunk in sorted(chunks.items()):
        changes += [(number * span.length + place, _named(chunk.tags, numbers)) for place, numbers in chunk.points()]
    return changes


def _number(column: dict[str, int] | None, name: str) -> int | None:
    """A number of a column; of a tag that was not there yet, 0."""
    return None if column is None else column.get(name, 0)


def _named(tags: list[int], numbers: list[int]) -> dict[str, int]:
    names = [*NUMBERS, *(f"{tag}:{name}" for tag in tags for name in OF_TAG)]
    return dict(zip(names, numbers, strict=True))
