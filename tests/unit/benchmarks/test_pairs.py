"""Pairs of runs: what is asked for, and what a line of the result says."""

from __future__ import annotations

import pytest

from benchmarks.bench.generator import Sample
from benchmarks.bench.plan import Cell
from benchmarks.pairs import Pairs, cells, setting


def test_cells_are_batches_by_connections() -> None:
    assert cells("1x8,10x32", 100, "native") == [Cell("pipeline", 1, 8, 100, "native"), Cell("pipeline", 10, 32, 100, "native")]


@pytest.mark.parametrize("text", ["10", "x8", "10x", "tens x 8"])
def test_what_is_no_cell_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="int"):
        cells(text, 1024, "sqs")


def test_a_setting_may_have_an_equals_sign_in_its_value() -> None:
    assert setting("NAME=a=b") == ("NAME", "a=b")
    with pytest.raises(ValueError, match="NAME"):
        setting("NAME")


def sample(rate: float, seconds: float, worker: float) -> Sample:
    by = {"kafka": (seconds - worker) / 2, "redis": (seconds - worker) / 2, "worker": worker}
    phase = {"msgs_per_s": rate, "messages": 2_000, "server_cpu_s_by_process": by}
    return Sample("here", Cell("pipeline", 10, 8), phase, {}, "")


def test_the_median_is_that_of_ratios_not_a_ratio_of_medians() -> None:
    pairs = Pairs()
    pairs.add(sample(100, 4, 2), sample(100, 4, 2))
    pairs.add(sample(300, 4, 2), sample(100, 8, 4))
    pairs.add(sample(120, 12, 2), sample(200, 4, 2))
    assert pairs.ratios == [1.0, 3.0, 0.6]
    said = "tens: 120 beside 100 msg/s, 1.000x (0.600 to 3.000 in 3 rounds)"
    assert pairs.told("tens") == f"{said}; CPU of a message 1.000x: worker 1.000x, redis 1.000x, kafka 1.000x"
    assert Pairs().told("tens") == "tens: no round without a fault"
