"""What the plane does by itself for this worker: it drains outboxes in place of the owners of the
units, and sends within bytes of a day that quotas have counted before.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.journal.outbox import DrainRequest, DrainResult
from engine.plane import library as lib
from engine.plane.library import Library
from engine.rules.queue import Queue
from state.redis.calls import drain_template

# Of so many queues at most it is known; what was allowed to others counts as sent.
MOST: Final = 10_000


class Allowances:
    """What the plane of this worker was allowed. `known`: the queue of an incarnation, if there is
    one.
    """

    def __init__(self, known: Callable[[str], Queue | None]) -> None:
        self._known = known
        self._library: Library | None = None
        self._incarnations: dict[int, str] = {}

    def start(self, library: Library) -> None:
        """Allows sends in the plane of the library from now on."""
        self._library = library

    def grant(self, number: int, queue: Queue, size: int, valid_s: float) -> None:
        """Allows so many bytes more to the queue that the plane knows by `number`, for so long."""
        if self._library is not None and size > 0:
            if len(self._incarnations) >= MOST:
                self._incarnations.clear()
            self._incarnations[number] = queue.incarnation
            self._library.tell(lib.GRANT, [number, size, round(valid_s * 1000)])

    def unused(self) -> list[tuple[Queue, int]]:
        """Takes back what was not sent yet. Returns bytes by queue."""
        if self._library is None:
            return []
        rows = self._library.ask(lib.ALLOWANCES)
        found = [(self._known(self._incarnations.get(number, "")), size) for number, size in rows if size]
        self._incarnations = {number: self._incarnations[number] for number, _ in rows if number in self._incarnations}
        return [(queue, size) for queue, size in found if queue is not None]


# A drain of which nothing is heard for so long is its owner's again: more than a hundred appends
# take, unless Kafka is in trouble.
SILENCE_S: Final = 60.0
# How a drain ends that the owner goes on with.
_PASSED: Final = DrainResult(0, has_more=True, is_passed=True)


class Drains:
    """The drains under way in the plane of this worker; see `engine.journal.outbox.Drainer`.

    `note_append` is told of each append: when it began and was answered (`boot_s`), and the
    broker's time of it (ms).
    """

    def __init__(self, prefix: str, note_append: Callable[[float, float, int], None]) -> None:
        self._prefix = prefix
        self._note_append = note_append
        self._library: Library | None = None
        self._numbers = itertools.count(1)
        self._under_way: dict[int, asyncio.Future[DrainResult]] = {}

    def start(self, library: Library) -> None:
        """Has the plane of the library drain from now on."""
        self._library = library

    def stop(self) -> None:
        """Gives the drains under way back to the owners. The plane may go on with them for a while:
        the journal may then have an entry twice, which counts once.
        """
        self._library = None
        for number in list(self._under_way):
            self._pass(number)

    def drain(self, request: DrainRequest) -> asyncio.Future[DrainResult] | None:
        """See `Drainer`. Without a plane nothing begins."""
        if self._library is None:
            return None
        loop, number, unit = asyncio.get_running_loop(), next(self._numbers), request.unit
        future = self._under_way[number] = loop.create_future()
        silence = loop.call_later(SILENCE_S, self._pass, number)
        future.add_done_callback(lambda _: silence.cancel())
        where = [request.queue, unit.incarnation, unit.partition, request.topic, request.place, request.key]
        call = drain_template(self._prefix, unit, request.epoch, request.most)
        self._library.tell(
            lib.DRAIN, [number, *where, call, request.done_seq, request.most, request.rounds, request.moved]
        )
        return future

    def ended(self, number: int, news: Sequence[Any]) -> None:
        """Takes in how a drain has ended, as native/src/plane/ended.rs tells it."""
        end, moved, done_seq, since_ms, has_more, append, text = news
        if append:
            begun_us, answered_us, at_ms = append
            self._note_append(begun_us / 1e6, answered_us / 1e6, at_ms)
        is_passed, error = end == lib.PASSED, ""
        if end == lib.NOT_APPENDED:
            error = text or "Kafka did not store entries of the journal"
        self._end(
            number,
            DrainResult(moved, bool(has_more) or is_passed, done_seq, since_ms, end == lib.FENCED, is_passed, error),
        )

    def _pass(self, number: int) -> None:
        self._end(number, _PASSED)

    def _end(self, number: int, result: DrainResult) -> None:
        future = self._under_way.pop(number, None)
        if future is not None and not future.done():
            future.set_result(result)
