"""The bars of a bench: which figures they compare, which side must be larger, and what is said when
one is missing.
"""

from __future__ import annotations

from benchmarks.bench.bars import Bar, bars
from benchmarks.bench.generator import Sample
from benchmarks.bench.outcome import Outcome
from benchmarks.bench.plan import MODES, Cell, cells


def found(rates: dict[str, float], cpu: dict[str, float], p50: dict[str, float]) -> dict[str, Bar]:
    """The bars when each peer has one rate, one CPU figure and one time, in every cell alike."""

    def sample(peer: str, cell: Cell) -> Sample:
        times = dict.fromkeys(("p50_ms", "p99_ms", "p99_9_ms"), p50[peer])
        return Sample(peer, cell, {"msgs_per_s": rates[peer], "server_cpu_s_per_1000": cpu[peer], "end_to_end": times}, {}, "")

    outcome = Outcome("here", 1, [sample(peer, cell) for peer in rates for cell in cells(MODES)], [], [])
    return {bar.what: bar for bar in bars(outcome)}


def test_the_best_number_of_workers_counts_and_the_larger_side_depends_on_the_figure() -> None:
    peers = ("leaseway-1", "leaseway-2", "elasticmq")
    all_ = found(*(dict(zip(peers, row, strict=True)) for row in ((900, 1600, 1000), (0.2, 0.3, 0.25), (2, 1.1, 1))))
    singly = all_["pipeline, batch 1, 32+32, 1 KiB: rate over elasticmq's"]
    assert (singly.bound, singly.reached, singly.verdict) == (1.5, 1.6, "met")
    assert all_["pipeline, batch 10, 32+32, 1 KiB: rate over elasticmq's"].verdict == "missed"
    cost = all_["pipeline, batch 10, 8+8, 1 KiB: CPU a message over elasticmq's"]
    assert (cost.bound, cost.reached, cost.verdict) == (0.6, 0.8, "missed")
    assert all_["pipeline, batch 1, 8+8, 1 KiB: CPU a message over elasticmq's"].verdict == "met"
    times = [all_[f"latency at 500/s, batch 1, 8+8, 1 KiB: {p} over elasticmq's"] for p in ("p50", "p99", "p99.9")]
    assert [time.verdict for time in times] == ["met", "met", "missed"]


def test_a_peer_that_is_absent_is_not_called_met() -> None:
    all_ = found({"leaseway-1": 100.0}, {"leaseway-1": 0.1}, {"leaseway-1": 1.0})
    assert {bar.verdict for what, bar in all_.items() if "our own" not in what} == {"not measured"}
    assert all_["native pipeline, batch 100, 8+8, 1 KiB: rate over our own in tens"].reached == 1.0
    assert len(all_) == 20 + 2 + 2 + 3 + 4
