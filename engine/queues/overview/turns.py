"""Which queues are counted next. Pure data; times are the loop's, in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.rules.queue import Queue

# Partitions, for each tag, that are looked at in a round: of queues that are in use, that were
# never counted, in which time alone changes something, and of the others. Each kind has its share,
# so none waits for the others for ever.
CHANGED, NEW, MOVING, STILL = 640, 192, 128, 64
# In one go, for the worker's other calls wait behind it.
AT_A_TIME = 128
MOVING_S = 2.0
STILL_S = 30.0


class Turns:
    """What is known of each queue, by incarnation. `rows`: those that have one."""

    def __init__(self) -> None:
        self.rows: set[str] = set()
        # In the order in which they were said to be in use.
        self._changed: dict[str, None] = {}
        # When each was looked at last, the longest ago first.
        self._moving: dict[str, float] = {}
        self._still: dict[str, float] = {}

    def note_changed(self, incarnations: Iterable[str]) -> None:
        """These queues are in use."""
        self._changed.update(dict.fromkeys(incarnations))

    def note_counted(self, incarnation: str, now: float, *, moves: bool) -> None:
        """A queue was looked at. `moves`: time alone changes something, or it has no row yet."""
        self.forget((incarnation,))
        (self._moving if moves else self._still)[incarnation] = now

    def forget(self, incarnations: Iterable[str]) -> None:
        """These queues have no turn; those that are there are new again."""
        for incarnation in incarnations:
            for turns in (self._changed, self._moving, self._still):
                turns.pop(incarnation, None)

    def keep_rows(self, incarnations: set[str]) -> None:
        """These are all that have a row: others are to be counted again."""
        self.forget([name for name in (*self._moving, *self._still) if name not in incarnations])
        self.rows = incarnations

    def gone(self, known: Mapping[str, Queue]) -> list[str]:
        """Those whose queue is gone."""
        return [name for name in (*self._changed, *self._moving, *self._still) if name not in known]

    def due(self, known: Mapping[str, Queue], now: float) -> list[Queue]:
        """The queues of the next round, each once, in the order of their turns."""
        new = (name for name in known if name not in self._moving and name not in self._still)
        shares = (
            (iter(self._changed), CHANGED),
            (new, NEW),
            (_before(self._moving, now - MOVING_S), MOVING),
            (_before(self._still, now - STILL_S), STILL),
        )
        due: dict[str, Queue] = {}
        for names, most in shares:
            left = most
            for name in names:
                if left <= 0:
                    break
                queue = known.get(name)
                if queue is not None and name not in due:
                    due[name] = queue
                    left -= size(queue)
        return list(due.values())


def size(queue: Queue) -> int:
    """How much it is to look at a queue: its partitions, for each tag."""
    return len(queue.units) * len(queue.tags)


def groups(queues: Sequence[Queue]) -> Iterator[list[Queue]]:
    """Queues in their order, some to be looked at in one go."""
    some: list[Queue] = []
    left = AT_A_TIME
    for queue in queues:
        some.append(queue)
        left -= size(queue)
        if left <= 0:
            yield some
            some, left = [], AT_A_TIME
    if some:
        yield some


def _before(turns: Mapping[str, float], at: float) -> Iterator[str]:
    """Those looked at before a time."""
    for name, looked_at in turns.items():
        if looked_at > at:
            return
        yield name
