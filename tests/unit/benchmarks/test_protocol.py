"""The arithmetic of the bench protocol: which rounds are void, medians and ranges, ratios by pairs,
fast and slow hours, and what the page says of them.
"""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.bench import plan
from benchmarks.bench.processes import Mark, mark
from benchmarks.bench.protocol import Outcome, Run, Spread, spread
from benchmarks.bench.results import page


def runs(side: str, rates: list[float], loop: float = 1.0, cell: str = "1x8") -> list[Run]:
    return [Run(side, cell, turn, rate=rate, loops=(loop, loop)) for turn, rate in enumerate(rates)]


def test_a_round_counts_up_to_five_percent_of_foreign_cpu() -> None:
    assert Run("a", "1x8", 0, rate=1, foreign=0.05).verdict == ""
    assert Run("a", "1x8", 0, rate=1, foreign=0.051).verdict == "void: 5.1% of foreign CPU"


def test_a_round_in_which_the_machine_changed_its_speed_is_void() -> None:
    assert Run("a", "1x8", 0, loops=(10.0, 11.0)).verdict == ""
    assert Run("a", "1x8", 0, loops=(12.0, 10.0)).verdict.startswith("void: the machine changed its speed")


def test_a_loss_is_told_even_of_a_round_that_is_void_and_is_no_rate() -> None:
    lost = Run("a", "1x8", 0, rate=9, lost=2, foreign=0.9)
    assert lost.verdict == "2 messages lost: no rate"
    outcome = Outcome([lost, *runs("a", [5.0])])
    assert outcome.spread("a", "1x8") == Spread(5.0, 5.0, 5.0, 1)
    assert "| 1 of 2 | 2 | 0 |" in page(outcome, "", [])


def test_a_median_has_its_range_and_its_rounds() -> None:
    assert spread([4.0, 1.0, 3.0, 2.0]) == Spread(2.5, 1.0, 4.0, 4)
    assert spread([]) is None


def test_a_ratio_is_of_pairs_of_one_round_not_of_medians() -> None:
    outcome = Outcome([*runs("a", [100, 300, 120]), *runs("b", [100, 100, 200])])
    assert outcome.ratio("a", "b", "1x8") == Spread(1.0, 0.6, 3.0, 3)


def test_a_round_that_is_void_for_one_side_is_no_pair() -> None:
    void = Run("b", "1x8", 1, rate=1, foreign=0.2)
    outcome = Outcome([*runs("a", [100, 300]), Run("b", "1x8", 0, rate=50), void])
    assert outcome.ratio("a", "b", "1x8") == Spread(2.0, 2.0, 2.0, 1)
    assert Outcome(runs("a", [1.0])).ratio("a", "b", "1x8") is None


def test_a_fast_and_a_slow_hour_are_never_in_one_median() -> None:
    outcome = Outcome([*runs("a", [100.0, 110.0, 120.0], loop=10.0), Run("a", "1x8", 3, rate=60.0, loops=(12.0, 12.0))])
    assert (outcome.hour, outcome.spread("a", "1x8")) == ("fast", Spread(110.0, 100.0, 120.0, 3))
    assert "1 more rounds count in no median: they were in the slow hour" in page(outcome, "", []).replace("\n", " ")
    slow = Outcome([Run("a", "1x8", 0, rate=100.0, loops=(10.0, 10.0)), *runs("a", [60.0, 70.0, 80.0], loop=12.0)])
    assert (slow.hour, slow.spread("a", "1x8")) == ("slow", Spread(70.0, 60.0, 80.0, 3))


def full(side: str, cell: str, rate: float, worker: float, ms: float) -> Run:
    times = {"p50": ms, "p99": ms, "p99_9": ms}
    return Run(side, cell, 0, rate=rate, cpu_us={"worker": worker}, threads_us={"python": worker}, times=times)


def test_the_bars_are_those_of_the_issue() -> None:
    found = [full("leaseway", "1x8", 120, 70, 1.0), full("elasticmq", "1x8", 100, 0, 1.0)]
    found += [full("leaseway", "10x32", 250, 11, 1.0), full("elasticmq", "10x32", 100, 0, 1.0)]
    found += [full("leaseway", "500/s", 500, 9, 1.6), full("elasticmq", "500/s", 500, 0, 1.0)]
    found += [full("leaseway-tls", "1x8", 101, 70, 1.0)]
    told = page(Outcome(found), "", [])
    assert "| 1x8: rate of ElasticMQ's in memory | >= 1.2, goal 1.5 | 1.20 | met |" in told
    assert "| 10x32: rate of ElasticMQ's in memory | >= 2.0, goal 2.5 | 2.50 | goal met |" in told
    assert "| 1x8: a worker's CPU for a message, us | <= 70 | 70 | met |" in told
    assert "| 10x32: a worker's CPU for a message, us | <= 10 | 11 | missed |" in told
    assert "| 500/s: p99.9 of ElasticMQ's | <= 1.5 | 1.60 | missed |" in told
    assert "| 1x8: rate of leaseway-tls over leaseway | >= 0.85 | 0.84 | missed |" in told


def test_what_is_absent_is_said_and_no_bar_is_called_met() -> None:
    told = page(Outcome(runs("leaseway", [5.0])), "", ["elasticmq is absent: no Java"])
    assert "- elasticmq is absent: no Java" in told
    assert "ElasticMQ's in memory" not in told


def test_cells_have_names_or_are_batches_by_connections() -> None:
    assert plan.cell("fifo") is plan.CELLS["fifo"]
    assert plan.cell("100x8", "native") == plan.Cell("native 100x8", 100, 8, api="native")
    for text in ("10", "x8", "10x", "tens x 8"):
        with pytest.raises(ValueError, match="is no cell"):
            plan.cell(text)


def test_foreign_cpu_is_what_belongs_to_no_named_process() -> None:
    cores = os.cpu_count() or 1
    used = Mark(10.0, 6.0, {"worker": 2.0, "generator": 3.0}, {}).since(Mark(0.0, 0.0, {}, {}))
    assert used.foreign() == pytest.approx(1.0 / (10.0 * cores))
    more = Mark(10.0, 1.0, {"worker": 1.2}, {})  # two clocks of the kernel never agree wholly
    assert more.foreign() == 0.0


def test_proc_tells_what_this_process_has_used_by_thread() -> None:
    roots = {"self": [os.getpid()]}
    before, began = mark(roots), time.process_time()
    while time.process_time() - began < 0.2:
        pass
    used = mark(roots).since(before)
    assert used.by_name["self"] >= 0.15
    assert sum(used.by_thread["self"].values()) >= 0.15
    assert used.machine > 0
