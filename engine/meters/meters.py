"""Requests of this worker in the minute that runs, by queue, tag and operation.

A request is counted when its verb returns: one that was refused or has failed is not, and one whose
handles were stale is, with the messages that it has changed. A request with handles of several tags
is counted under the tag of the first. A request costs one call here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from time import monotonic_ns
from typing import Final

from msgspec import Struct

from engine.meters.requests import RequestCounts
from engine.meters.times import MessageTimes
from runtime.signals import Signal
from schemas.records.watching import MeterRow
from schemas.vocabulary import BOUNDS_US, P999, Measurement, Operation

# Number of the tag of a request that is about none: a send, or handles that hold nothing any more.
NO_TAG: Final = -1
RECEIVES: Final = frozenset((Operation.SHORT_RECEIVE, Operation.LONG_RECEIVE))


def percentile_us(per_thousand: int, requests: int, max_us: int, counts: Mapping[int, int]) -> int:
    """The bound that so many of a thousand requests were not above, at most the greatest time: at
    most an eighth too high, and never too low. `spark.reports.daily_statistics` has the same rule.
    """
    left = (per_thousand * requests + 999) // 1000
    for place in sorted(counts):
        left -= counts[place]
        if left <= 0:
            return min(max_us, BOUNDS_US[place]) if place < len(BOUNDS_US) else max_us
    return max_us


class Cell(Struct):
    """Requests of one kind: how many, with how many messages, the sum and the greatest of their
    times, and how many per place in BOUNDS_US.
    """

    requests: int = 0
    messages: int = 0
    sum_us: int = 0
    max_us: int = 0
    counts: dict[int, int] = {}

    def add_row(self, row: MeterRow) -> None:
        """Adds what a worker has counted."""
        self.requests += row.requests
        self.messages += row.messages
        self.sum_us += row.sum_us
        self.max_us = max(self.max_us, row.max_us)
        for place, count in zip(row.bounds, row.counts, strict=True):
            self.counts[place] = self.counts.get(place, 0) + count

    def add_cell(self, other: Cell) -> None:
        """Adds what another has."""
        self.requests += other.requests
        self.messages += other.messages
        self.sum_us += other.sum_us
        self.max_us = max(self.max_us, other.max_us)
        for place, count in other.counts.items():
            self.counts[place] = self.counts.get(place, 0) + count

    def row(self, tag: str, operation: str) -> MeterRow:
        """As it is written."""
        places = sorted(self.counts)
        counts = [self.counts[place] for place in places]
        return MeterRow(tag, operation, self.requests, self.messages, self.sum_us, self.max_us, places, counts)

    @property
    def mean_us(self) -> int:
        """Whole microseconds; 0 without requests."""
        return self.sum_us // self.requests if self.requests else 0

    @property
    def p999_us(self) -> int:
        """The bound that 99.9 % of the requests were not above."""
        return percentile_us(P999, self.requests, self.max_us, self.counts)

    def measured(self, measurement: str) -> float | None:
        """What a Measurement is, in ms or as a count; None = a time, and there was no request."""
        if measurement == Measurement.COUNT:
            return float(self.requests)
        if not self.requests:
            return None
        return (self.mean_us if measurement == Measurement.LATENCY else self.p999_us) / 1000


# Incarnation, number of the tag, operation.
Key = tuple[str, int, Operation]


class Meters:
    """Cells of the minute that runs. For the tasks of one loop.

    `requests`: who has asked, of all requests. Since the worker began: `empty`, receives that were
    answered without a message, by queue and tag; `stored`, bytes of messages of sends that Kafka
    has taken, by queue.
    """

    def __init__(self, is_queue: Callable[[str], bool] = bool) -> None:
        """`is_queue`: see `RequestCounts`."""
        # Tells that cells are about to be taken: what was counted elsewhere is to be added.
        self.taken_soon: Signal[[]] = Signal()
        self._cells: dict[Key, Cell] = {}
        # By incarnation and reason.
        self._stale: Counter[tuple[str, str]] = Counter()
        self.empty: dict[tuple[str, int], int] = {}
        self.stored: dict[str, int] = {}
        self.times: Final = MessageTimes()
        self.requests: Final = RequestCounts(is_queue)

    def note(
        self,
        incarnation: str,
        tag: int,
        operation: Operation,
        messages: int,
        began_ns: int,
        in_queue_ms: Sequence[int] = (),
    ) -> None:
        """A request was answered that began when the monotonic clock stood there. `in_queue_ms`:
        for how long messages of it were in the queue that nobody got before.
        """
        cell = self._cells.get((incarnation, tag, operation))
        if cell is None:
            cell = self._cells[incarnation, tag, operation] = Cell()
        us = (monotonic_ns() - began_ns) // 1000
        cell.requests += 1
        cell.messages += messages
        cell.sum_us += us
        if us > cell.max_us:  # noqa: PLR1730 - a branch costs less than max
            cell.max_us = us
        place = bisect_left(BOUNDS_US, us)
        cell.counts[place] = cell.counts.get(place, 0) + 1
        if not messages and operation in RECEIVES:
            self._note_empty(incarnation, tag, 1)
        if in_queue_ms:
            self.times.in_queue.note(in_queue_ms)

    def add(self, incarnation: str, tag: int, operation: Operation, cell: Cell, empty: int = 0) -> None:
        """Requests were answered elsewhere, as a cell has them; so many of them had no message."""
        known = self._cells.setdefault((incarnation, tag, operation), Cell())
        known.add_cell(cell)
        if empty and operation in RECEIVES:
            self._note_empty(incarnation, tag, empty)

    def note_stored(self, incarnation: str, size: int) -> None:
        """Kafka has messages of so many bytes."""
        self.stored[incarnation] = self.stored.get(incarnation, 0) + size

    def _note_empty(self, incarnation: str, tag: int, receives: int) -> None:
        self.empty[incarnation, tag] = self.empty.get((incarnation, tag), 0) + receives

    def keep(self, incarnations: Container[str]) -> None:
        """Forgets what is kept beyond a minute of other lives of queues."""
        self.empty = {place: count for place, count in self.empty.items() if place[0] in incarnations}
        self.stored = {incarnation: size for incarnation, size in self.stored.items() if incarnation in incarnations}

    def note_stale(self, incarnation: str, reason: str) -> None:
        """A handle was good for nothing; `reason` is a StaleReason word."""
        self._stale[incarnation, reason] += 1

    def take_stale(self) -> Counter[tuple[str, str]]:
        """Returns the stale handles since the last call, by incarnation and reason."""
        taken, self._stale = self._stale, Counter()
        return taken

    def take(self) -> dict[Key, Cell]:
        """What was counted since the last call, which begins anew."""
        self.taken_soon()
        taken, self._cells = self._cells, {}
        return taken


def merged(cells: Sequence[Cell]) -> Cell:
    """One cell of several."""
    whole = Cell()
    for cell in cells:
        whole.add_cell(cell)
    return whole
