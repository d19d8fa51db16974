"""Counts and times of requests in a minute."""

from __future__ import annotations

import itertools
from time import monotonic_ns

from hypothesis import given
from hypothesis import strategies as st

from engine.meters.meters import Cell, Meters, percentile_us
from schemas.vocabulary import BOUNDS_US, Measurement, Operation

CHANGE, DELETE = Operation.CHANGE, Operation.DELETE

TIMES = st.lists(st.integers(0, 200_000_000), min_size=1, max_size=200)


def cell_of(times: list[int]) -> Cell:
    """A cell of requests that took so many microseconds."""
    meters = Meters()
    for us in times:
        meters.note("a", 0, CHANGE, 2, monotonic_ns() - us * 1000)
    return meters.take()["a", 0, CHANGE]


def test_bounds_grow_by_an_eighth() -> None:
    assert all(1.11 < after / before < 1.13 for before, after in itertools.pairwise(BOUNDS_US))
    assert BOUNDS_US[0] == 100
    assert BOUNDS_US[-1] > 120_000_000


@given(TIMES, st.sampled_from([500, 900, 999, 1000]))
def test_a_percentile_is_at_most_an_eighth_too_high_and_never_too_low(times: list[int], per_thousand: int) -> None:
    counts: dict[int, int] = {}
    for us in times:
        place = next((at for at, bound in enumerate(BOUNDS_US) if us <= bound), len(BOUNDS_US))
        counts[place] = counts.get(place, 0) + 1
    found = percentile_us(per_thousand, len(times), max(times), counts)
    true = sorted(times)[-(-per_thousand * len(times) // 1000) - 1]
    assert true <= found <= max(true * 1.13, 100) or (true > BOUNDS_US[-1] and found == max(times))


def test_what_is_counted_is_what_was_noted() -> None:
    cell = cell_of([1_000_000, 3_000_000])
    assert (cell.requests, cell.messages, sum(cell.counts.values())) == (2, 4, 2)
    assert 2_000_000 <= cell.mean_us < 2_100_000 and 3_000_000 <= cell.p999_us == cell.max_us < 3_100_000
    assert cell.measured(Measurement.COUNT) == 2
    assert cell.measured(Measurement.LATENCY) == cell.mean_us / 1000
    assert cell.measured(Measurement.LATENCY_P999) == cell.p999_us / 1000
    assert (Cell().measured(Measurement.COUNT), Cell().measured(Measurement.LATENCY)) == (0, None)


@given(TIMES, TIMES)
def test_cells_of_two_workers_are_as_one_by_rows_or_by_cells(ours: list[int], theirs: list[int]) -> None:
    mine, other, by_rows, by_cells = cell_of(ours), cell_of(theirs), Cell(), Cell()
    for cell in (mine, other):
        by_rows.add_row(cell.row("t", CHANGE))
        by_cells.add_cell(cell)
    assert by_rows == by_cells
    assert (by_rows.requests, by_rows.sum_us) == (len(ours) + len(theirs), mine.sum_us + other.sum_us)
    assert sum(by_rows.counts.values()) == by_rows.requests


def test_a_minute_is_taken_once_and_cells_are_apart() -> None:
    meters, now = Meters(), monotonic_ns()
    for key in (
        ("a", 0, CHANGE, 1),
        ("a", 1, CHANGE, 1),
        ("a", 0, CHANGE, 3),
        ("a", 0, DELETE, 1),
        ("b", 0, CHANGE, 1),
    ):
        meters.note(*key, now)
    taken = {key: (cell.requests, cell.messages) for key, cell in meters.take().items()}
    assert taken == {
        ("a", 0, CHANGE): (2, 4),
        ("a", 1, CHANGE): (1, 1),
        ("a", 0, DELETE): (1, 1),
        ("b", 0, CHANGE): (1, 1),
    }
    assert meters.take() == {}
