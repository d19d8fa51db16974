"""The arithmetic of the protocol: which rounds count, medians with their range, ratios by pairs of
one round, fast and slow hours. It reads no clock and no process.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.bench.plan import MOST_DRIFT, MOST_FOREIGN, SLOW


@dataclass(frozen=True)
class Run:
    """One side in one cell in one round. `cpu_us`, `threads_us`: CPU us for a message, by process,
    and of the worker by thread; `times`: end to end, ms; `loops`: ms of the loop before and after;
    `by_plane`: the share of its requests that the plane of Leaseway has served, None = nobody says.
    """

    side: str
    cell: str
    round: int
    rate: float = 0.0
    foreign: float = 0.0
    loops: tuple[float, float] = (1.0, 1.0)
    lost: int = 0
    doubled: int = 0
    fault: str = ""
    cpu_us: Mapping[str, float] = field(default_factory=dict)
    threads_us: Mapping[str, float] = field(default_factory=dict)
    generator_us: float = 0.0
    times: Mapping[str, float] = field(default_factory=dict)
    peak_mib: float = 0.0
    by_plane: float | None = None

    @property
    def verdict(self) -> str:
        """Returns why this is no rate; "" = it counts. A loss comes first: it is a finding."""
        if self.lost:
            return f"{self.lost} messages lost: no rate"
        if self.fault:
            return self.fault
        if self.foreign > MOST_FOREIGN:
            return f"void: {self.foreign:.1%} of foreign CPU"
        drift = max(self.loops) / min(self.loops)
        if drift > MOST_DRIFT:
            return f"void: the machine changed its speed, the loop took {self.loops[0]:.2f} and {self.loops[1]:.2f} ms"
        return ""

    @property
    def loop(self) -> float:
        """Returns the loop's time around this run."""
        return sum(self.loops) / 2


@dataclass(frozen=True)
class Spread:
    """A median, its range, and of how many rounds."""

    median: float
    low: float
    high: float
    rounds: int


def spread(numbers: Iterable[float]) -> Spread | None:
    """Returns None when there are no numbers."""
    seen = sorted(numbers)
    return Spread(statistics.median(seen), seen[0], seen[-1], len(seen)) if seen else None


Figure = Callable[[Run], float]


def rate(run: Run) -> float:
    """Returns messages a second."""
    return run.rate


class Outcome:
    """All runs of a bench."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        good = [run for run in runs if not run.verdict]
        fastest = min((run.loop for run in good), default=1.0)
        slow = [run for run in good if run.loop > SLOW * fastest]
        fast = [run for run in good if run.loop <= SLOW * fastest]
        # Figures of two hours are never in one median: those of the hour with more rounds are told.
        self.counted, self.other = (fast, slow) if len(fast) >= len(slow) else (slow, fast)
        self.hour = "fast" if self.counted is fast else "slow"

    @property
    def sides(self) -> list[str]:
        """Returns the sides, in the order of their first runs."""
        return list(dict.fromkeys(run.side for run in self.runs))

    @property
    def cells(self) -> list[str]:
        """Returns the cells, in the order of their first runs."""
        return list(dict.fromkeys(run.cell for run in self.runs))

    def of(self, side: str, cell: str) -> list[Run]:
        """Returns the runs that count."""
        return [run for run in self.counted if (run.side, run.cell) == (side, cell)]

    def spread(self, side: str, cell: str, figure: Figure = rate) -> Spread | None:
        """Returns a figure's median and range over the rounds that count."""
        return spread(figure(run) for run in self.of(side, cell))

    def ratio(self, side: str, other: str, cell: str, figure: Figure = rate) -> Spread | None:
        """Returns the spread of side/other, each of one round: a round in which either does not
        count is no pair.
        """
        theirs = {run.round: figure(run) for run in self.of(other, cell)}
        pairs = [(figure(run), theirs[run.round]) for run in self.of(side, cell) if theirs.get(run.round)]
        return spread(ours / beside for ours, beside in pairs)

    def loops(self) -> Spread | None:
        """Returns the loop's times in the rounds that count: only figures at the same time of the
        loop may be compared between benches.
        """
        return spread(run.loop for run in self.counted)
