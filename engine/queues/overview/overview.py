"""Shows what was counted in many queues, and what the numbers of one queue were: every worker can,
whoever has counted and noted them.
"""

from __future__ import annotations

import asyncio
import base64
import heapq
from collections.abc import Iterable, Mapping
from operator import attrgetter

import msgspec

from engine.errors import InvalidValue, StoreUnavailable
from engine.log.log_clock import LogClock
from engine.queues.overview.rings import NUMBERS, OF_TAG, SPANS, Chunk, Span
from engine.rules.queue import Queue
from engine.shapes import QueueCounts, QueueHistory
from runtime.background import Background
from state.clock.service_clock import ServiceClock
from state.errors import StateError
from state.shared.history import HistoryStore
from state.shared.overview import Counted, OverviewStore

# How long rows are shown that were read from Redis, so that many who look cost one read.
FRESH_S = 0.5


class Overview:
    """Rows of the overview, read at most once in FRESH_S, and once at a time. Any number of tasks
    may ask.
    """

    def __init__(self, store: OverviewStore, clock: LogClock) -> None:
        self._store = store
        self._clock = clock
        self._read: asyncio.Future[dict[str, Counted]] | None = None
        self._read_at = float("-inf")
        self._background = Background()

    def now_ms(self) -> int:
        """Returns Kafka's time, by which messages are sent, at the latest."""
        return self._clock.latest_ms()

    async def of(self, queues: Iterable[Queue]) -> list[QueueCounts]:
        """Returns a row for each queue, as it was counted last. Raises StoreUnavailable."""
        rows = await self._rows()
        return [_shown(queue, rows.get(queue.incarnation)) for queue in queues]

    async def _rows(self) -> Mapping[str, Counted]:
        now = asyncio.get_running_loop().time()
        read = self._read
        if read is None or (read.done() and (now - self._read_at >= FRESH_S or read.exception() is not None)):
            self._read, self._read_at = self._background.start(self._store.all(), "overview", awaited=True), now
        try:
            return await asyncio.shield(self._read)  # type: ignore[arg-type]
        except StateError as error:
            raise StoreUnavailable(str(error)) from error


def page(rows: list[QueueCounts], sort: str, limit: int, cursor: str) -> tuple[list[QueueCounts], str | None]:
    """Returns a page of rows in an order of `rules.limits.SORTS`, and the cursor of the next page.

    Numbers change between pages, so a queue may be on two of them, or on none. Raises InvalidValue.
    """
    after = _cursor(cursor) if cursor else None
    left = [row for row in rows if after is None or _place(row, sort) > after]
    some = heapq.nsmallest(limit, left, key=lambda row: _place(row, sort))
    return some, _written(_place(some[-1], sort)) if len(left) > limit else None


def _place(row: QueueCounts, sort: str) -> tuple[int, str]:
    """Where a row stands in an order."""
    if sort == "name":
        return 0, row.name
    if sort == "oldest":
        return row.oldest_at_ms or 2**53, row.name
    return -int(attrgetter(sort)(row)), row.name


def _written(place: tuple[int, str]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _cursor(text: str) -> tuple[int, str]:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=tuple[int, str])
    except ValueError:
        raise InvalidValue(
            "the cursor is none of this service: take `next` of the page before", field="cursor", given=text
        ) from None


def _shown(queue: Queue, row: Counted | None) -> QueueCounts:
    if row is None:
        return QueueCounts(queue.name, paused=bool(queue.paused))
    backlog = row.ready + row.delayed + row.leased + row.parked + row.stored
    return QueueCounts(
        name=queue.name,
        backlog=backlog,
        ready=row.ready,
        delayed=row.delayed,
        leased=row.leased,
        parked=row.parked,
        stored=row.stored,
        oldest_at_ms=row.oldest_at_ms,
        as_of_ms=row.as_of_ms,
        paused=bool(queue.paused),
        sent=row.sent,
        done={tag.name: row.done[tag.id] for tag in queue.tags if tag.id in row.done},
        set_back=row.set_back,
        noisy=row.noisy,
        groups_in_flight=row.groups_in_flight,
    )


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
            raise InvalidValue(
                f"span must be one of {', '.join(SPANS)}, given {span_name[:100]!r}",
                field="span",
                given=span_name[:100],
            )
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
        return _history(queue, span, range(end - span.steps, end), slots, chunks)


def _history(queue: Queue, span: Span, asked: range, noted: set[int], chunks: dict[int, Chunk]) -> QueueHistory:
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
        done={
            tag.name: {name: [_number(column, f"{tag.id}:{name}") for column in columns] for name in OF_TAG}
            for tag in queue.tags
        },
    )


def _changes(span: Span, chunks: dict[int, Chunk]) -> list[tuple[int, dict[str, int] | None]]:
    """From which slot on the queue had which numbers; slot -1 = before all that is known. Where no
    chunk tells, nothing has changed.
    """
    if not chunks:
        return []
    first = chunks[min(chunks)]
    changes: list[tuple[int, dict[str, int] | None]] = [
        (-1, None if first.before is None else _named(first.tags, first.before))
    ]
    for number, chunk in sorted(chunks.items()):
        changes += [(number * span.length + place, _named(chunk.tags, numbers)) for place, numbers in chunk.points()]
    return changes


def _number(column: dict[str, int] | None, name: str) -> int | None:
    """A number of a column; of a tag that was not there yet, 0."""
    return None if column is None else column.get(name, 0)


def _named(tags: list[int], numbers: list[int]) -> dict[str, int]:
    names = [*NUMBERS, *(f"{tag}:{name}" for tag in tags for name in OF_TAG)]
    return dict(zip(names, numbers, strict=True))
