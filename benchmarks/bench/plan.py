"""The cells of the protocol, the bars of issue 44, and which cells a side can run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
# A round with a larger share of CPU that belongs to nobody of the bench is void.
MOST_FOREIGN: Final = 0.05
# So is one in which the loop of pure CPU took so much longer at one end than at the other.
MOST_DRIFT: Final = 1.10
# A round whose loop took so many times the shortest one was in a slow hour.
SLOW: Final = 1.15
# Passes through the four pipelines before anything counts. ElasticMQ's JIT needs nine; all sides
# get them.
WARM_UPS: Final = 9
WARM_UP_S: Final = 2.0


@dataclass(frozen=True)
class Cell:
    """What one run measures. `each`: connections of senders, and as many of receivers; `rate` in
    messages a second on a timetable, 0 = as fast as it goes; `groups` of a FIFO queue.
    """

    name: str
    batch: int
    each: int
    body: int = KIB
    api: str = "sqs"
    rate: int = 0
    queues: int = 1
    tags: int = 1
    groups: int = 0

    @property
    def kind(self) -> str:
        """Returns the kind of its queues, or the API by which usual ones are spoken to."""
        return "tags" if self.tags > 1 else "fifo" if self.groups else "many" if self.queues > 1 else self.api


PIPELINES: Final = tuple(Cell(f"{batch}x{each}", batch, each) for batch in (1, 10) for each in (8, 32))
CELLS: Final = {
    cell.name: cell
    for cell in (
        *PIPELINES,
        Cell("500/s", 1, 8, rate=500),
        Cell("64k-1x8", 1, 8, 64 * KIB),
        Cell("64k-10x8", 10, 8, 64 * KIB),
        Cell("tags", 10, 8, tags=2),
        Cell("fifo", 10, 8, groups=100),
        Cell("queues", 10, 100, queues=100),
    )
}
PLAIN: Final = frozenset(("1x8", "1x32", "10x8", "10x32", "500/s"))
# The bars of issue 44. Cell -> at least, goal, of the rate of ElasticMQ in memory.
RATES: Final[Mapping[str, tuple[float, float]]] = {
    "1x8": (1.2, 1.5),
    "1x32": (1.6, 2.0),
    "10x8": (1.4, 2.0),
    "10x32": (2.0, 2.5),
}
# Cell -> at most, of a worker's CPU for a message.
WORKER_US: Final[Mapping[str, float]] = {"1x8": 70, "1x32": 50, "10x8": 16, "10x32": 10}
MOST_TIMES: Final = 1.5
LEAST_TLS: Final = 0.85


def cell(text: str, api: str = "sqs") -> Cell:
    """Returns the cell of that name; BATCHxCONNECTIONS is one too. Raises ValueError."""
    found = CELLS.get(text)
    if found is None:
        sizes = re.fullmatch(r"(\d+)x(\d+)", text)
        if sizes is None:
            raise ValueError(f"{text!r} is no cell; known: {', '.join(CELLS)}, BATCHxCONNECTIONS")
        found = Cell(text, int(sizes[1]), int(sizes[2]))
    if api != "sqs":
        found = Cell(f"{api} {found.name}", found.batch, found.each, found.body, api, found.rate)
    return found
