"""All wait lists of a worker, and how many receives may wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from engine.errors import Overloaded, QuotaExceeded
from engine.receive.waits.wait_list import Serve, WaitList
from engine.rules.queue import Queue
from engine.rules.rights import Asker
from runtime.background import Background
from runtime.signals import Signal
from schemas.records import TagRecord
from schemas.records.settings import MAX_LONG_POLLS

# Incarnation, number of the tag.
Place = tuple[str, int]


class WaitLists:
    """All wait lists of this worker. `waiting` counts the receives that wait, `waiting_at` those of
    each place, `rights_changes` how often they were asked for their rights again, `refused` those
    beyond a bound. `watched` tells of how many more (or fewer) wait in the lists of a queue.
    """

    def __init__(self, waits_elsewhere: Callable[[Queue], bool] = lambda queue: False) -> None:
        """`waits_elsewhere`: whether somebody waits at this worker in no list: in the plane."""
        self._waits_elsewhere = waits_elsewhere
        self.watched: Signal[[str, int]] = Signal()
        self.waiting = self.rights_changes = self.refused = 0
        self.background = Background()  # what is under way for receives
        self._stopped = False
        self._waiting_of: dict[str, int] = {}
        self.waiting_at: dict[Place, int] = {}
        self._lists: dict[str, dict[int, WaitList]] = {}

    def stop(self) -> None:
        """Ends all waiting receives with an empty result, and serves no more."""
        self._stopped = True
        for found in self:
            found.stop()

    def __iter__(self) -> Iterator[WaitList]:
        for lists in self._lists.values():
            yield from lists.values()

    @property
    def most_waiting(self) -> int:
        """How many wait of those of whom the most do."""
        return max(self._waiting_of.values(), default=0)

    def enter(self, asker: Asker, at: Place, *, in_list: bool = True) -> None:
        """A receive begins to wait there, in the list of the place or for itself; `leave` with the
        same when it does no more. Raises Overloaded when MAX_LONG_POLLS do already, QuotaExceeded
        when as many as a bound allows do.
        """
        if self.waiting >= MAX_LONG_POLLS:
            raise Overloaded("too many receives are waiting here")
        for whose, most in asker.bounds:
            if self._waiting_of.get(whose, 0) >= most:
                self.refused += 1
                raise QuotaExceeded(f"{most} receives of {whose} may wait at a worker", field="waits", limit=most)
        for whose, _ in asker.bounds:
            self._waiting_of[whose] = self._waiting_of.get(whose, 0) + 1
        self.waiting += 1
        self.waiting_at[at] = self.waiting_at.get(at, 0) + 1
        if in_list:
            self.watched(at[0], 1)

    def leave(self, asker: Asker, at: Place, *, in_list: bool = True) -> None:
        self.waiting -= 1
        self.waiting_at[at] -= 1
        if not self.waiting_at[at]:
            del self.waiting_at[at]
        if in_list:
            self.watched(at[0], -1)
        for whose, _ in asker.bounds:
            left = self._waiting_of[whose] - 1
            if left:
                self._waiting_of[whose] = left
            else:
                del self._waiting_of[whose]

    def for_tag(self, queue: Queue, tag: TagRecord, serve: Serve) -> WaitList:
        """The list of a tag, made when it is not there yet, with what serves its waiters."""
        lists = self._lists.setdefault(queue.incarnation, {})
        found = lists.get(tag.id)
        if found is None:
            found = lists[tag.id] = WaitList(tag.id, queue.record.partitions, serve, self.background, queue.incarnation)
            if self._stopped:
                found.stop()
        return found

    def woken(self, incarnation: str, partition: int, head_ms: int = 0) -> None:
        """Something may be receivable in a partition (-1: in any) of a queue, visible since
        `head_ms` (0 = not known).
        """
        for found in self.of_queue(incarnation):
            found.wake(partition, head_ms)

    def of_queue(self, incarnation: str) -> Iterable[WaitList]:
        """The lists of a queue's tags."""
        return self._lists.get(incarnation, {}).values()

    def waits(self, queue: Queue) -> bool:
        """Whether somebody waits for messages of this queue here."""
        return any(found.waiters for found in self.of_queue(queue.incarnation)) or self._waits_elsewhere(queue)

    def ask_again(self, incarnation: str) -> None:
        """Rights with a queue ("" = any) have changed: who waits and has lost theirs is told."""
        self.rights_changes += 1
        for found in list(self.of_queue(incarnation) if incarnation else self):
            for waiter in list(found.waiters):
                waiter.ask_again()

    def drop_queue(self, incarnation: str) -> None:
        """A queue is gone: who waits is told that there is nothing."""
        for found in self._lists.pop(incarnation, {}).values():
            found.stop_timer()
            found.cancel_all()
