"""Bytes of a day that the plane may send by itself: quotas have counted them before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.plane import library as lib
from engine.plane.library import Library
from engine.rules.queue import Queue

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
