"""What this worker alone knows of queues: by tag how many receives found nothing and how many wait,
and bytes of sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping

from engine.meters.meters import Meters
from engine.meters.shapes import ReceiveCounts
from engine.receive.waits.wait_lists import Place, WaitLists
from engine.rules.queue import Queue


class Tallies:
    """One per worker. `known`: the lives of queues that there are; `elsewhere`: how many wait in no
    list of ours, but in the plane.
    """

    def __init__(
        self, known: Container[str], meters: Meters, wait_lists: WaitLists, elsewhere: Callable[[], Mapping[Place, int]]
    ) -> None:
        self._known = known
        self._meters = meters
        self._wait_lists = wait_lists
        self._elsewhere = elsewhere
        # Where somebody waited at a look before: that nobody does any more is shown, too.
        self._seen: set[Place] = set()

    def of(self, queues: Iterable[Queue]) -> list[ReceiveCounts]:
        """Returns a row for each tag of these queues of which there was something to show since the
        worker began.
        """
        self._meters.taken_soon()  # what the plane has counted belongs to it
        waiting, empty = Counter(self._wait_lists.waiting_at), self._meters.empty
        waiting.update(self._elsewhere())
        self._seen = {place for place in self._seen.union(waiting) if place[0] in self._known}
        shown = self._seen.union(empty)
        at = ((queue.name, tag.name, (queue.incarnation, tag.id)) for queue in queues for tag in queue.tags)
        return [
            ReceiveCounts(name, tag, empty.get(place, 0), waiting[place]) for name, tag, place in at if place in shown
        ]

    def stored(self, queues: Iterable[Queue]) -> dict[str, int]:
        """Returns the bytes of messages that Kafka has taken from sends since the worker began, by
        queue, where there were any.
        """
        self._meters.taken_soon()
        stored = self._meters.stored
        return {queue.name: stored[queue.incarnation] for queue in queues if queue.incarnation in stored}
