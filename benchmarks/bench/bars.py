"""The bars that Leaseway is to clear, each beside what a bench reached.

Neighbours: `results` prints the table. It must not know how anything was run. The bars are ratios
of medians of the same bench, of whichever number of workers was best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.bench.generator import Sample
from benchmarks.bench.outcome import Figure, Outcome
from benchmarks.bench.plan import KIB, Cell

IN_MEMORY = "elasticmq"
PIPELINES = tuple(Cell("pipeline", batch, each) for batch in (1, 10) for each in (8, 32))
# Peer -> at least this many times its rate in PIPELINES: singly 8+8, 32+32, in tens 8+8, 32+32.
RATES = {
    IN_MEMORY: (1.1, 1.5, 1.4, 1.7),
    "elasticmq-h2": (1.8, 3.0, 4.0, 5.0),
    "localstack": (6.0, 8.0, 6.0, 8.0),
    "ministack": (6.0, 8.0, 6.0, 8.0),
    "moto": (6.0, 8.0, 6.0, 8.0),
}
# At most this many times ElasticMQ's time from send to receipt at 500 messages a second.
LATENCIES = {"p50_ms": 1.4, "p99_ms": 1.2, "p99_9_ms": 1.0}
# At most this many times ElasticMQ's CPU a message in PIPELINES.
COSTS = (0.8, 0.8, 0.6, 0.6)


@dataclass(frozen=True)
class Bar:
    """`reached` None = a side was not measured; `most` = the figure may be no larger, else no
    smaller.
    """

    what: str
    bound: float
    reached: float | None
    most: bool = False

    @property
    def verdict(self) -> str:
        """For people."""
        if self.reached is None:
            return "not measured"
        return "met" if (self.reached <= self.bound if self.most else self.reached >= self.bound) else "missed"


def _cpu(sample: Sample) -> float:
    return float(sample.phase["server_cpu_s_per_1000"])


def _end_to_end(kind: str) -> Figure:
    return lambda sample: float(sample.phase["end_to_end"][kind])


def bars(found: Outcome) -> Iterator[Bar]:
    """Every bar, in the order of the page."""
    for peer, bounds in RATES.items():
        for cell, bound in zip(PIPELINES, bounds, strict=True):
            yield Bar(f"{cell.name}: rate over {peer}'s", bound, _over(found.ours(cell), found.median(peer, cell)))
    for batch in (1, 10):
        large = Cell("pipeline", batch, 8, 64 * KIB)
        yield Bar(f"{large.name}: rate over {IN_MEMORY}'s", 1.5, _over(found.ours(large), found.median(IN_MEMORY, large)))
    for each in (8, 32):
        hundreds, tens = (Cell("pipeline", batch, each, api="native") for batch in (100, 10))
        yield Bar(f"{hundreds.name}: rate over our own in tens", 2.0, _over(found.ours(hundreds), found.ours(tens)))
    slow = Cell("latency", 1, 8, rate=500)
    for kind, bound in LATENCIES.items():
        what = f"{slow.name}: {kind.removesuffix('_ms').replace('_', '.')} over {IN_MEMORY}'s"
        yield Bar(what, bound, _least(found, slow, _end_to_end(kind)), most=True)
    for cell, bound in zip(PIPELINES, COSTS, strict=True):
        yield Bar(f"{cell.name}: CPU a message over {IN_MEMORY}'s", bound, _least(found, cell, _cpu), most=True)


def _least(found: Outcome, cell: Cell, figure: Figure) -> float | None:
    return _over(found.ours(cell, figure, min), found.median(IN_MEMORY, cell, figure))


def _over(mine: float | None, theirs: float | None) -> float | None:
    return mine / theirs if mine and theirs else None
