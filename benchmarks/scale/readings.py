"""What was read at each step, the figures that follow from it, and which of them grow."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec import Struct

PROCESSES = ("worker", "kafka", "redis")
# Two rounds at the same step differ by up to so much on a quiet machine of two cores; less than
# this is no growth.
FLAT = 1.25


class Reading(Struct, frozen=True):
    """One round. `messages`: deliveries that were acked; `cpu`: CPU seconds by process; `refused`:
    answers to the client that were no 200.

    `commands` that Redis ran, those within scripts too; `redis_bytes`: what it had allocated at the
    end.
    """

    messages: int
    seconds: float
    cpu: dict[str, float]
    commands: int
    redis_bytes: int
    refused: int = 0


class Row(Struct, frozen=True):
    """One step under one load. `note` says what was wrong or limited; without `rounds` the step
    could not be measured.
    """

    series: str
    step: int
    rounds: list[Reading]
    note: str = ""


class Result(Struct, frozen=True):
    """All steps of one dimension. `setting`: machine, command and date in a sentence."""

    dimension: str
    setting: str
    rows: list[Row]

    @property
    def series(self) -> list[str]:
        """The names of the series, in the order measured."""
        return list(dict.fromkeys(row.series for row in self.rows))

    def of(self, series: str) -> list[Row]:
        """The rows of a series."""
        return [row for row in self.rows if row.series == series]


@dataclass(frozen=True)
class Figure:
    """A number of a round. `form`: how it is written; `rises`: whether it is worse when it is
    higher.
    """

    name: str
    of: Callable[[Reading], float]
    form: str
    rises: bool = True


def _cpu(*processes: str) -> Callable[[Reading], float]:
    return lambda reading: sum(reading.cpu.get(process, 0.0) for process in processes) * 1000 / max(1, reading.messages)


RATE = Figure("msg/s", lambda reading: reading.messages / reading.seconds, ",.0f", rises=False)
CPU = tuple(Figure(f"CPU ms: {process}", _cpu(process), ".3f") for process in PROCESSES)
CPU_ALL = Figure("CPU ms: all", _cpu(*PROCESSES), ".3f")
COMMANDS = Figure("Redis commands", lambda reading: reading.commands / max(1, reading.messages), ".1f")
MEMORY = Figure("Redis MiB", lambda reading: reading.redis_bytes / 2**20, ",.1f")
FIGURES = (RATE, *CPU, CPU_ALL, COMMANDS, MEMORY)


def median(row: Row, figure: Figure) -> float | None:
    """The median of the rounds; None when there is none."""
    return statistics.median(figure.of(reading) for reading in row.rounds) if row.rounds else None


def span(row: Row, figure: Figure) -> tuple[float, float]:
    """The lowest and the highest of the rounds, of which there must be one."""
    numbers = [figure.of(reading) for reading in row.rounds]
    return min(numbers), max(numbers)


def growth(rows: Sequence[Row], figure: Figure) -> float | None:
    """The last step's median divided by the best before it; None when there are not two, or the
    best is 0.

    Not by the first's: a JVM is never quite warm at the first step, and what grows behind that
    would not be seen.
    """
    *before, last = [number for row in rows if (number := median(row, figure)) is not None] or [0.0]
    best = (min if figure.rises else max)(before, default=0.0)
    return last / best if best else None


def worse(rows: Sequence[Row]) -> dict[str, float]:
    """The growth of each figure that is worse at the last step than at the best before it by more
    than rounds differ, by its name.
    """
    found = {}
    for figure in FIGURES:
        ratio = growth(rows, figure)
        if ratio is not None and (ratio > FLAT if figure.rises else ratio < 1 / FLAT):
            found[figure.name] = ratio
    return found


def short(number: int) -> str:
    """1500 -> "1,500", 100000 -> "100k", 5000000 -> "5M": for the axis."""
    if number >= 10_000:
        for size, letter in ((1_000_000, "M"), (1_000, "k")):
            if number % size == 0:
                return f"{number // size}{letter}"
    return f"{number:,}"
