"""benchmarks/results.md: tables of medians with their range, ratios, latencies, CPU by process,
memory, and what did not count.

Neighbours: `generator` gives samples, `chart` draws. It must not know how anything was run.
"""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Iterable, Sequence

from benchmarks.bench.bars import bars
from benchmarks.bench.generator import Sample
from benchmarks.bench.outcome import OURS, Outcome
from benchmarks.bench.plan import Cell

YARDSTICK = "bare-asgi"


def _table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> list[str]:
    names = list(head)
    return [f"| {' | '.join(names)} |", "|" + "---|" * len(names), *(f"| {' | '.join(row)} |" for row in rows), ""]


def _spread(outcome: Outcome, peer: str, cell: Cell, figure: Callable[[Sample], float], form: str) -> str:
    numbers = [figure(sample) for sample in outcome.good(peer, cell)]
    if not numbers:
        return "-"
    middle, low, high = (format(number, form) for number in (statistics.median(numbers), min(numbers), max(numbers)))
    return middle if len(numbers) == 1 else f"{middle} ({low}-{high})"


def _rates(outcome: Outcome) -> list[str]:
    cells = [cell for cell in outcome.cells if not cell.rate]
    rows = [[cell.name, *(_spread(outcome, peer, cell, lambda s: s.rate, ",.0f") for peer in outcome.peers)] for cell in cells]
    return ["## Messages a second: median (lowest-highest)", "", *_table(["cell", *outcome.peers], rows)]


def _ratios(outcome: Outcome) -> list[str]:
    others = [peer for peer in outcome.peers if not peer.startswith(OURS)]
    rows = []
    for cell in outcome.cells:
        ours = outcome.ours(cell)
        if cell.rate or cell.api == "native" or ours is None:
            continue
        rates = [outcome.median(peer, cell) for peer in others]
        rows.append([cell.name, *(f"{ours / rate:.2f}x" if rate else "-" for rate in rates)])
    return ["## Leaseway (best number of workers) against each: ratio of medians", "", *_table(["cell", *others], rows)]


def _bars(outcome: Outcome) -> list[str]:
    rows = []
    for bar in bars(outcome):
        reached = "-" if bar.reached is None else f"{bar.reached:.2f}x"
        rows.append([bar.what, f"{'<=' if bar.most else '>='} {bar.bound:g}x", reached, bar.verdict])
    return ["## The bars, with the best number of workers", "", *_table(["what", "bar", "reached", ""], rows)]


def _latencies(outcome: Outcome) -> list[str]:
    rows = []
    for cell in (cell for cell in outcome.cells if cell.rate):
        for peer in outcome.peers:
            if outcome.good(peer, cell):
                kinds = ("p50_ms", "p99_ms", "p99_9_ms")
                figures = [_spread(outcome, peer, cell, lambda s, k=kind: s.phase["end_to_end"][k], ".2f") for kind in kinds]  # type: ignore[misc]
                rows.append([f"{cell.rate}/s", peer, *figures])
    return ["## Open loop: end to end, ms", "", *_table(["rate", "peer", "p50", "p99", "p99.9"], rows)] if rows else []


def _cost(sample: Sample, name: str) -> float:
    return sample.cpu_by_process.get(name, 0.0)


def _costs(outcome: Outcome) -> list[str]:
    rows = []
    for cell in outcome.cells:
        for peer in outcome.peers:
            good = outcome.good(peer, cell)
            if not good:
                continue
            names = list(good[0].phase["server_cpu_s_by_process"])
            parts = [f"{name} {outcome.median(peer, cell, lambda s, n=name: _cost(s, n)):.3f}" for name in names]  # type: ignore[misc]
            total = _spread(outcome, peer, cell, lambda s: s.phase["server_cpu_s_per_1000"], ".3f")
            memory = _spread(outcome, peer, cell, lambda s: s.report["server_peak_rss_mib"], ",.0f")
            rows.append([cell.name, peer, total, ", ".join(parts) if len(parts) > 1 else "", memory])
    head = ["cell", "peer", "CPU s", "by process", "peak RSS, MiB"]
    return ["## Server CPU seconds per 1,000 messages, and peak memory", "", *_table(head, rows)]


def _substrate(outcome: Outcome) -> list[str]:
    names = list(dict.fromkeys(name for row in outcome.substrate for name in row))
    rows = []
    for name in names:
        numbers = [row[name] for row in outcome.substrate if name in row]
        rows.append([name, f"{statistics.median(numbers):,.0f} ({min(numbers):,.0f}-{max(numbers):,.0f})"])
    return ["## The substrate, a second", "", *_table(["what", "median (lowest-highest)"], rows)] if rows else []


def _not_counted(outcome: Outcome) -> list[str]:
    lines = [f"- {note}" for note in outcome.notes]
    lines += [f"- {sample.peer}, {sample.cell.name}: {sample.fault}" for sample in outcome.samples if sample.fault]
    return ["## What was absent, and rounds that do not count", "", *(lines or ["None."]), ""]


def page(outcome: Outcome) -> str:
    """The whole page."""
    about = (
        f"Written by `make bench`; do not edit. {outcome.machine} {outcome.rounds} interleaved round(s), all on this machine, "
        "warmed up. Leaseway answers a send when Kafka has it (embedded defaults); leaseway-N runs N workers. elasticmq, moto, ministack, "
        f"localstack and goaws hold messages in memory, elasticmq-h2 in an H2 file. {YARDSTICK}: no queue, but what HTTP in Python allows."
    )
    lines = ["# Leaseway beside its peers", "", *textwrap.wrap(about, 100, break_on_hyphens=False), "", "![rates](results.svg)", ""]
    parts = (_bars, _rates, _ratios, _latencies, _costs, _substrate, _not_counted)
    return "\n".join([*lines, *(line for part in parts for line in part(outcome))])
