"""A whole bench: its samples, and the medians of what counts.

Neighbours: `results`, `chart` and `bars` read it. It must not know how anything was run, or how a
page looks.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.bench.generator import Sample
from benchmarks.bench.plan import Cell

OURS = "leaseway-"

Figure: TypeAlias = Callable[[Sample], float]


def _rate(sample: Sample) -> float:
    return sample.rate


@dataclass(frozen=True)
class Outcome:
    """A whole bench: `notes` say what was absent, `substrate` name -> per second, of each round."""

    machine: str
    rounds: int
    samples: Sequence[Sample]
    substrate: Sequence[dict[str, float]]
    notes: Sequence[str]

    @property
    def peers(self) -> list[str]:
        return list(dict.fromkeys(sample.peer for sample in self.samples))

    @property
    def cells(self) -> list[Cell]:
        return list(dict.fromkeys(sample.cell for sample in self.samples))

    def good(self, peer: str, cell: Cell) -> list[Sample]:
        """The samples that count."""
        return [sample for sample in self.samples if sample.peer == peer and sample.cell == cell and not sample.fault]

    def median(self, peer: str, cell: Cell, figure: Figure = _rate) -> float | None:
        """The median of a figure; None when no round counts."""
        numbers = [figure(sample) for sample in self.good(peer, cell)]
        return statistics.median(numbers) if numbers else None

    def ours(self, cell: Cell, figure: Figure = _rate, best: Callable[[list[float]], float] = max) -> float | None:
        """Our median with the best number of workers; None when no round counts."""
        numbers = [number for peer in self.peers if peer.startswith(OURS) and (number := self.median(peer, cell, figure)) is not None]
        return best(numbers) if numbers else None
