"""benchmarks/results.md: one table of all cells and sides, the bars, and what does not count."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.bench import plan
from benchmarks.bench.protocol import Figure, Outcome, Run, Spread, rate

OURS, MEMORY = "leaseway", "elasticmq"
TIMES = {"p50": "p50", "p99": "p99", "p99_9": "p99.9"}
HEAD = ["cell", "side", "messages/s", "of ElasticMQ", "p50 / p99 / p99.9 ms", "CPU us", "by process", "generator us"]
HEAD += ["rounds", "lost", "doubled"]


def page(outcome: Outcome, about: str, notes: Sequence[str]) -> str:
    """Returns the whole page."""
    loops = outcome.loops()
    said = f"Written by `make bench` ([protocol](README.md#the-protocol)). {about}"
    if loops:
        said += (
            f" The calibration loop took {_span(loops, '.2f')} ms: only figures at the same time of the "
            "loop may be compared."
        )
    if outcome.other:
        hour = "slow" if outcome.hour == "fast" else "fast"
        said += f" {len(outcome.other)} more rounds count in no median: they were in the {hour} hour."
    lines = ["# Leaseway beside its peers", "", *_wrapped(said), ""]
    lines += [*_table(HEAD, _rows(outcome)), *_bars(outcome), "", "## What does not count", ""]
    wrong = [f"- {run.side}, {run.cell}, round {run.round + 1}: {run.verdict}" for run in outcome.runs if run.verdict]
    return "\n".join([*lines, *([*(f"- {note}" for note in notes), *wrong] or ["Nothing."]), ""])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_on_hyphens=False, break_long_words=False)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _span(found: Spread | None, digits: str = ",.0f") -> str:
    if found is None:
        return "-"
    if found.rounds == 1:
        return f"{found.median:{digits}}"
    return f"{found.median:{digits}} ({found.low:{digits}}-{found.high:{digits}})"


def _times(name: str) -> Figure:
    return lambda run: run.times.get(name, 0.0)


def _cpu(name: str = "") -> Figure:
    return lambda run: run.cpu_us.get(name, 0.0) if name else sum(run.cpu_us.values())


def _generator(run: Run) -> float:
    return run.generator_us


def _rows(outcome: Outcome) -> Iterator[Sequence[str]]:
    for cell in outcome.cells:
        for side in outcome.sides:
            runs = [run for run in outcome.runs if (run.side, run.cell) == (side, cell)]
            counted = outcome.of(side, cell)
            if not runs:
                continue
            spreads = [outcome.spread(side, cell, _times(name)) for name in TIMES]
            parts = (
                {name: outcome.spread(side, cell, _cpu(name)) for name in counted[0].cpu_us if name != "supervisor"}
                if counted
                else {}
            )
            yield (
                cell,
                side,
                _span(outcome.spread(side, cell)),
                _span(outcome.ratio(side, MEMORY, cell), ".2f") if side != MEMORY else "",
                " / ".join(f"{one.median:.1f}" for one in spreads if one),
                _span(outcome.spread(side, cell, _cpu())),
                ", ".join(f"{name} {one.median:.0f}" for name, one in parts.items() if one and len(parts) > 1)
                + _threads(counted),
                _span(outcome.spread(side, cell, _generator)),
                f"{len(counted)} of {len(runs)}",
                str(sum(run.lost for run in runs)),
                str(sum(run.doubled for run in runs)),
            )


def _threads(runs: Sequence[Run]) -> str:
    """The worker's threads that use most, of the middle round."""
    if not runs or not runs[0].threads_us:
        return ""
    middle = sorted(runs, key=rate)[len(runs) // 2].threads_us
    most = sorted(middle.items(), key=lambda item: -item[1])[:3]
    return f" ({', '.join(f'{name} {spent:.0f}' for name, spent in most)})"


def _bars(outcome: Outcome) -> Iterator[str]:
    rows = [*_rates(outcome), *_costs(outcome), *_latencies(outcome), *_others(outcome)]
    if rows:
        yield from ("", "## The bars", "", *_table(("what", "bar", "reached", "verdict"), rows))


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _rates(outcome: Outcome) -> Iterator[Sequence[str]]:
    for cell, (least, goal) in plan.RATES.items():
        if found := outcome.ratio(OURS, MEMORY, cell):
            reached = "goal met" if found.median >= goal else _verdict(found.median >= least)
            yield f"{cell}: rate of ElasticMQ's in memory", f">= {least}, goal {goal}", _span(found, ".2f"), reached


def _costs(outcome: Outcome) -> Iterator[Sequence[str]]:
    for cell, most in plan.WORKER_US.items():
        if found := outcome.spread(OURS, cell, _cpu("worker")):
            yield (
                f"{cell}: a worker's CPU for a message, us",
                f"<= {most}",
                _span(found),
                _verdict(found.median <= most),
            )


def _latencies(outcome: Outcome) -> Iterator[Sequence[str]]:
    for name, text in TIMES.items():
        if found := outcome.ratio(OURS, MEMORY, "500/s", _times(name)):
            yield (
                f"500/s: {text} of ElasticMQ's",
                f"<= {plan.MOST_TIMES}",
                _span(found, ".2f"),
                _verdict(found.median <= plan.MOST_TIMES),
            )


def _others(outcome: Outcome) -> Iterator[Sequence[str]]:
    """TLS beside none, and each side beside the same of the other checkout."""
    for cell in outcome.cells:
        for side, other, least in (
            ("leaseway-tls", OURS, plan.LEAST_TLS),
            (OURS, "beside", 1.0),
            ("leaseway-2", "beside-2", 1.0),
        ):
            if cell != "500/s" and (found := outcome.ratio(side, other, cell)):
                yield (
                    f"{cell}: rate of {side} over {other}",
                    f">= {least}",
                    _span(found, ".2f"),
                    _verdict(found.median >= least),
                )
