"""scale.svg: small multiples, a row for each series, a column for each figure; every panel from 0,
on a scale of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from benchmarks.scale.readings import (
    COMMANDS,
    CPU,
    CPU_ALL,
    MEMORY,
    PROCESSES,
    RATE,
    Figure,
    Result,
    Row,
    median,
    short,
    span,
)

WIDE, HIGH, LEFT, TOP = 232, 152, 8, 46
PLOT_LEFT, PLOT_TOP, PLOT_RIGHT, PLOT_BOTTOM = 46, 26, 218, 122
COLUMNS: tuple[tuple[str, tuple[tuple[str, Figure], ...]], ...] = (
    ("msg/s", (("all", RATE),)),
    ("CPU ms a message", tuple(zip((*PROCESSES, "all"), (*CPU, CPU_ALL), strict=True))),
    ("Redis commands a message", (("redis", COMMANDS),)),
    ("Redis MiB", (("redis", MEMORY),)),
)
# The ground is drawn, so that a page's own ground does not matter.
STYLE = """<style>
text { fill: #24292f; } .faint { fill: #57606a; } .ground { fill: #ffffff; } .axis { stroke: #d0d7de; }
.all { stroke: #24292f; fill: #24292f; } .worker { stroke: #0969da; fill: #0969da; }
.kafka { stroke: #bc4c00; fill: #bc4c00; } .redis { stroke: #cf222e; fill: #cf222e; }
polyline { fill: none !important; stroke-width: 2; } circle { stroke: none !important; }
.mark { stroke: none !important; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .faint { fill: #9198a1; } .ground { fill: #0d1117; } .axis { stroke: #3d444d; }
.all { stroke: #e6edf3; fill: #e6edf3; } .worker { stroke: #58a6ff; fill: #58a6ff; }
.kafka { stroke: #f0883e; fill: #f0883e; } .redis { stroke: #ff7b72; fill: #ff7b72; }
}
</style>"""


def places(count: int) -> list[float]:
    """Where the steps stand in a panel: evenly, whatever their numbers, which rise by factors."""
    return [
        PLOT_LEFT + 10 + (PLOT_RIGHT - PLOT_LEFT - 20) * (number / (count - 1) if count > 1 else 0.5)
        for number in range(count)
    ]


def _panel(x: float, y: float, rows: Sequence[Row], lines: Sequence[tuple[str, Figure]]) -> list[str]:
    """One figure, or the same figure of several processes, over the steps."""
    known = [(place, row) for place, row in zip(places(len(rows)), rows, strict=True) if row.rounds]
    most = max((span(row, figure)[1] for _, row in known for _, figure in lines), default=0.0) or 1.0
    per = (PLOT_BOTTOM - PLOT_TOP - 8) / most
    form = lines[0][1].form
    parts = [
        f'<g transform="translate({x:.0f} {y:.0f})">',
        _axis(most * 0, PLOT_BOTTOM, form),
        _axis(most, PLOT_BOTTOM - most * per, form),
    ]
    for kind, figure in lines:
        points = [(place, PLOT_BOTTOM - (median(row, figure) or 0.0) * per, row) for place, row in known]
        parts.append(f'<polyline class="{kind}" points="{" ".join(f"{px:.1f},{py:.1f}" for px, py, _ in points)}"/>')
        for px, py, row in points:
            low, high = (PLOT_BOTTOM - number * per for number in span(row, figure))
            parts.append(f'<line class="{kind}" x1="{px:.1f}" y1="{low:.1f}" x2="{px:.1f}" y2="{high:.1f}"/>')
            parts.append(f'<circle class="{kind}" cx="{px:.1f}" cy="{py:.1f}" r="3"/>')
    for place, row in zip(places(len(rows)), rows, strict=True):
        parts.append(
            f'<text class="faint" x="{place:.1f}" y="{PLOT_BOTTOM + 15}" text-anchor="middle">{short(row.step)}</text>'
        )
    return [*parts, "</g>"]


def _axis(number: float, y: float, form: str) -> str:
    text = (
        f'<text class="faint" x="{PLOT_LEFT - 5}" y="{y + 4:.1f}" '
        f'text-anchor="end">{format(number, form) if number else 0}</text>'
    )
    return f'<line class="axis" x1="{PLOT_LEFT}" y1="{y:.1f}" x2="{PLOT_RIGHT}" y2="{y:.1f}"/>{text}'


def _head() -> list[str]:
    parts, x = [], float(LEFT)
    for kind in ("all", *PROCESSES):
        parts.append(f'<rect class="{kind} mark" x="{x + PLOT_LEFT:.0f}" y="12" width="12" height="12"/>')
        parts.append(f'<text x="{x + PLOT_LEFT + 17:.0f}" y="22">{kind}</text>')
        x += 80
    for number, (name, _) in enumerate(COLUMNS):
        parts.append(f'<text x="{LEFT + number * WIDE + PLOT_LEFT}" y="{TOP}" font-weight="bold">{escape(name)}</text>')
    return parts


def svg(results: Sequence[Result]) -> str:
    """The chart as text; the lowest and highest round are a thin line through each point."""
    parts, y = _head(), float(TOP)
    for result in results:
        for series in result.series:
            parts.append(f'<text x="{LEFT}" y="{y + 20:.0f}">{escape(series)}</text>')
            for number, (_, lines) in enumerate(COLUMNS):
                parts += _panel(LEFT + number * WIDE, y + 8, result.of(series), lines)
            y += HIGH
    width, height = LEFT * 2 + WIDE * len(COLUMNS), y + 12
    style = 'font-family="sans-serif" font-size="11"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" viewBox="0 0 '
        f'{width} {height:.0f}" {style}>'
    )
    ground = f'<rect class="ground" width="{width}" height="{height:.0f}"/>'
    return "\n".join([head, STYLE, ground, *parts, "</svg>", ""])
