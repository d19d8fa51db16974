"""scale.md: a table for each series, what grew, and why."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from benchmarks.scale.dimensions import DIMENSIONS
from benchmarks.scale.load import BATCH, CONNECTIONS
from benchmarks.scale.measure import FULL, ROUNDS
from benchmarks.scale.readings import FIGURES, FLAT, Figure, Result, Row, growth, median, span, worse

Why = Mapping[str, Mapping[str, str]]
UNEXPLAINED = "not explained yet (benchmarks/scale/why.py has no sentence for it)."


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Prose as lines of the page; of an empty line, that one."""
    return textwrap.wrap(text, 100, subsequent_indent=indent, break_on_hyphens=False) or [text]


def _cell(row: Row, figure: Figure) -> str:
    middle = median(row, figure)
    if middle is None:
        return "-"
    low, high = span(row, figure)
    text = format(middle, figure.form)
    return text if len(row.rounds) == 1 else f"{text} ({format(low, figure.form)}-{format(high, figure.form)})"


def table(rows: Sequence[Row]) -> list[str]:
    """The steps of a series: medians with the lowest and highest round, and the last step's median
    over the best before it.
    """
    names = ["step", *(figure.name for figure in FIGURES)]
    lines = [f"| {' | '.join(names)} |", "|" + "---:|" * len(names)]
    lines += [f"| {row.step:,} | {' | '.join(_cell(row, figure) for figure in FIGURES)} |" for row in rows]
    ratios = [growth(rows, figure) for figure in FIGURES]
    if any(ratio is not None for ratio in ratios):
        lines.append(f"| last / best | {' | '.join('-' if ratio is None else f'{ratio:.2f}x' for ratio in ratios)} |")
    notes = [f"- At {row.step:,}: {row.note}." for row in rows if row.note]
    return [*lines, "", *notes, *([""] if notes else [])]


def verdict(series: str, rows: Sequence[Row], why: Why) -> list[str]:
    """What grew, a line for each figure, and why if that is known."""
    if sum(bool(row.rounds) for row in rows) < 2:
        return ["Too few steps to say what grows.", ""]
    said = [
        f"- {name} grew {ratio:.2f}x: {why.get(series, {}).get(name, UNEXPLAINED)}"
        for name, ratio in worse(rows).items()
    ]
    return [*(said or ["Flat."]), ""]


def _section(result: Result, why: Why) -> list[str]:
    dimension = DIMENSIONS[result.dimension]
    lines = [
        f"## {dimension.name.capitalize()}, per {dimension.per}",
        "",
        *_wrapped(f"{dimension.about} {result.setting}"),
        "",
    ]
    for series in result.series:
        rows = result.of(series)
        heading = [f"### {series.capitalize()}", ""] if len(result.series) > 1 else []
        said = [part for line in verdict(series, rows, why) for part in _wrapped(line, "  ")]
        lines += [*heading, *table(rows), *said]
    return lines


def page(results: Sequence[Result], why: Why) -> str:
    """The whole page."""
    rounds = ROUNDS[FULL]
    about = (
        "Written by `make bench-scale`; do not edit (explanations: benchmarks/scale/why.py). Each dimension "
        "has its own `leaseway up` "
        "with one worker and embedded defaults, on the same machine as the client. "
        f"The load: {CONNECTIONS} connections, each of which sends {BATCH} messages of 1 KiB, receives up to "
        f"{BATCH}, acks them, "
        f"and again; native API. Medians of {rounds.count} rounds of {rounds.seconds:.0f} s, in brackets the "
        "lowest and the highest."
    )
    figures = (
        "CPU is in ms for each message that was sent, received and acked, with all that the process does in "
        "the background meanwhile. "
        "Redis commands are for each message too, with those within scripts; MiB are at the end of a round. "
        "`last / best` compares the "
        f"last step with the best before it; what is worse by more than {(FLAT - 1) * 100:.0f}% counts as grown."
    )
    title = "# Scale of state: what a message costs as the state grows"
    lines = [title, "", *_wrapped(about), "", *_wrapped(figures), "", "![figures by step](scale.svg)", ""]
    sections = [line for result in results for line in _section(result, why)]
    if absent := [name for name in DIMENSIONS if name not in {result.dimension for result in results}]:
        sections += [f"Not measured yet: {', '.join(absent)}."]
    return "\n".join([*lines, *sections]).rstrip("\n") + "\n"
