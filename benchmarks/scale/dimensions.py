"""The dimensions: which steps each has, how a step's state is brought about, and what is loaded
there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.scale import fill
from benchmarks.scale.load import Load
from state.replies import MAX_OPEN
from tests.services import Up

# A million messages in flight are more than the default 4 partitions may have open.
WIDE = 8


class Stand:
    """A running service and how far it was filled: steps of a dimension rise, so each adds what the
    one before lacks.
    """

    def __init__(self, up: Up) -> None:
        self.port, self.endpoint = up.port, up.endpoint
        self.have = 0
        self.made = False

    def queue_once(self, name: str, partitions: int | None = None) -> None:
        """Makes the queue of a dimension that has one for all its steps."""
        if not self.made:
            fill.make_queues(self.endpoint, [name], partitions)
            self.made = True


@dataclass(frozen=True)
class Dimension:
    """`prepare` brings the state of a step and says what is to be loaded. Raises fill.Unreachable.
    `about`: one sentence or two.
    """

    name: str
    about: str
    full: tuple[int, ...]
    small: tuple[int, ...]
    prepare: Callable[[Stand, int], list[Load]]
    per: str = "message"


def _partitions(stand: Stand, step: int) -> list[Load]:
    name = f"partitions-{step}"
    fill.make_queues(stand.endpoint, [name], step)
    return [Load((name,))]


def _tags(stand: Stand, step: int) -> list[Load]:
    name, more = f"tags-{step}", [f"tag-{number}" for number in range(1, step)]
    fill.make_queues(stand.endpoint, [name])
    fill.make_tags(stand.endpoint, name, more)
    return [Load((name,), ("default", *more))]


def _queues(stand: Stand, step: int) -> list[Load]:
    names = [f"queue-{number}" for number in range(step)]
    fill.make_queues(stand.endpoint, names[stand.have :])
    stand.have = step
    return [Load((names[0],), name="one busy"), Load(tuple(names), name="all busy")]


def _backlog(stand: Stand, step: int) -> list[Load]:
    stand.queue_once("backlog")
    fill.send(stand.port, "backlog", step - stand.have)
    stand.have = step
    fill.check(stand.endpoint, "backlog", "backlog", step)
    # What is received is what was filled, so what is sent is of the same size, at 0 too.
    return [Load(("backlog",), body=len(fill.BODY))]


def _in_flight(stand: Stand, step: int) -> list[Load]:
    stand.queue_once("leased", WIDE)
    fill.send(stand.port, "leased", step - stand.have)
    fill.lease(stand.port, "leased", step - stand.have)
    stand.have = step
    fill.check(stand.endpoint, "leased", "leased", step)
    return [Load(("leased",))]


def _delayed(stand: Stand, step: int) -> list[Load]:
    stand.queue_once("delayed", WIDE)
    fill.send(stand.port, "delayed", step - stand.have, delay_s=fill.DELAY_S)
    stand.have = step
    fill.check(stand.endpoint, "delayed", "delayed", step)
    return [Load(("delayed",))]


_OPEN = (
    f"The queue has {WIDE} partitions at every step: a tag may have {MAX_OPEN:,} messages open in a partition "
    f"(state/replies.py, MAX_OPEN), so the default 4 end at {4 * MAX_OPEN:,}."
)
_STEPS_OPEN = (0, 10_000, 100_000, 1_000_000)

DIMENSIONS = {
    dimension.name: dimension
    for dimension in (
        Dimension("partitions", "Partitions of the loaded queue.", (1, 4, 16, 64), (1, 4), _partitions),
        Dimension(
            "tags",
            "Tags of the loaded queue; a message is sent once, and received and acked under every tag. Each of "
            "these deliveries counts.",
            (1, 5, 20),
            (1, 3),
            _tags,
            per="delivery",
        ),
        Dimension(
            "queues",
            "Queues of 4 partitions. One busy: one of them is loaded, the rest stand by. All busy: the load "
            "goes round all of them.",
            (1, 100, 500, 2_000),
            (1, 16),
            _queues,
        ),
        Dimension(
            "backlog",
            "Messages that wait in the loaded queue of 4 partitions: receives take its head, sends go to its end. "
            f"All bodies are of {len(fill.BODY)} bytes here.",
            (0, 100_000, 1_000_000, 5_000_000),
            (0, 20_000),
            _backlog,
        ),
        Dimension(
            "in-flight",
            f"Messages of the loaded queue that were received with a lease of 12 h and not acked. {_OPEN}",
            _STEPS_OPEN,
            (0, 2_000),
            _in_flight,
        ),
        Dimension(
            "delayed",
            f"Messages of the loaded queue that are delayed by an hour. {_OPEN}",
            _STEPS_OPEN,
            (0, 2_000),
            _delayed,
        ),
    )
}
