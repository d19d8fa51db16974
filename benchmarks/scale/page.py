"""scale.md: a table for each series, what grew, and why.

Neighbours: `readings` has the figures, `why` the explanations, `chart` draws. It must not know how anything was run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.scale.dimensions import DIMENSIONS
from benchmarks.scale.load import BATCH, BODY_BYTES, CONNECTIONS
from benchmarks.scale.measure import FULL, ROUNDS
from benchmarks.scale.readings import FIGURES, FLAT, Figure, Result, Row, growth, median, span, worse

UNEXPLAINED = "Not explained yet: benchmarks/scale/why.py has no sentence for it."


def _cell(row: Row, figure: Figure) -> str:
    middle = median(row, figure)
    if middle is None:
        return "-"
    low, high = span(row, figure)
    text = format(middle, figure.form)
    return text if len(row.rounds) == 1 else f"{text} ({format(low, figure.form)}-{format(high, figure.form)})"


def table(rows: Sequence[Row]) -> list[str]:
    """The steps of a series: medians with the lowest and highest round, and the last step's median over the first's."""
    names = ["step", *(figure.name for figure in FIGURES)]
    lines = [f"| {' | '.join(names)} |", "|" + "---:|" * len(names)]
    lines += [f"| {row.step:,} | {' | '.join(_cell(row, figure) for figure in FIGURES)} |" for row in rows]
    ratios = [growth(rows, figure) for figure in FIGURES]
    if any(ratio is not None for ratio in ratios):
        lines.append(f"| last / first | {' | '.join('-' if ratio is None else f'{ratio:.2f}x' for ratio in ratios)} |")
    return [*lines, "", *(f"- {row.step:,}: {row.note}." for row in rows if row.note), ""]


def verdict(series: str, rows: Sequence[Row], why: Mapping[str, str]) -> str:
    """A sentence that says what grew, and why if that is known."""
    grown = worse(rows)
    if not grown:
        return why.get(series, "Flat.")
    return f"Grew: {', '.join(grown)}. {why.get(series, UNEXPLAINED)}"


def _section(result: Result, why: Mapping[str, str]) -> list[str]:
    dimension = DIMENSIONS[result.dimension]
    lines = [f"## {dimension.name.capitalize()}, per {dimension.per}", "", f"{dimension.about} {result.setting}", ""]
    for series in result.series:
        rows = result.of(series)
        heading = [f"### {series.capitalize()}", ""] if len(result.series) > 1 else []
        lines += [*heading, *table(rows), verdict(series, rows, why), ""]
    return lines


def page(results: Sequence[Result], why: Mapping[str, str]) -> str:
    """The whole page."""
    rounds = ROUNDS[FULL]
    lines = [
        "# Scale of state: what a message costs as the state grows",
        "",
        "Written by `make bench-scale`; do not edit (explanations: benchmarks/scale/why.py). Each dimension has its own `leaseway up` with",
        f"one worker, embedded defaults, on the same machine as the client: {CONNECTIONS} connections, each of which sends {BATCH} messages of",
        f"{BODY_BYTES:,} bytes, receives up to {BATCH}, acks them, and again (native API).",
        f"Medians of {rounds.count} rounds of {rounds.seconds:.0f} s, in brackets the lowest and the highest.",
        "CPU of a process per message that was sent, received and acked, with all that the process does in the background meanwhile. Redis",
        "commands count those within scripts. A figure grew when it is worse at the last step than at the first by more than",
        f"{(FLAT - 1) * 100:.0f}%.",
        "",
        "![figures by step](scale.svg)",
        "",
    ]
    return "\n".join([*lines, *(line for result in results for line in _section(result, why))]).rstrip("\n") + "\n"
