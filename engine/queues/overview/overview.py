"""Shows what was counted in many queues: every worker can, whoever has counted."""

from __future__ import annotations

import asyncio
import base64
import heapq
from collections.abc import Iterable, Mapping
from operator import attrgetter

import msgspec

from engine.errors import InvalidValue, StoreUnavailable
from engine.log.log_clock import LogClock
from engine.rules.queue import Queue
from engine.shapes import QueueCounts
from runtime.background import Background
from state.errors import StateError
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
        raise InvalidValue("the cursor is none of this service: take `next` of the page before", field="cursor", given=text) from None


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
