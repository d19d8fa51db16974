"""Charts as SVG: lines over time, stacked columns over time, stacked bars by name, columns of a
histogram.

Colours are classes k0..k5, which the style sheet gives for light, dark and paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from spark.page.labels import clock, short

WIDTH, WIDE, HEIGHT = 480, 760, 220
LEFT, RIGHT, TOP, BOTTOM = 54, 16, 8, 24
BAR, ROOM = 44, 84  # The height of a name with its bar; room behind the longest bar for its number.
MOST_NAME = 36  # Characters that a chart of the usual width has room for.
COLOURS = 6
_TIME_STEPS = [
    60_000 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080, 43_200)
]
_DURATIONS = (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 86_400_000, 864_000_000, 8_640_000_000)
Form = Callable[[float], str]


@dataclass(frozen=True)
class Series:
    """Points (epoch ms, value) in order of time; a None breaks the line. Value 0 is drawn."""

    name: str
    points: Sequence[tuple[int, float | None]]


@dataclass(frozen=True)
class Frame:
    """The plot: times across, values up; `log` for values over several powers of ten."""

    begin_ms: int
    end_ms: int
    most: float
    log: bool = False
    width: int = WIDTH

    @property
    def left(self) -> int:
        """Where the plot begins, right of the names of its levels."""
        return LEFT if self.width == WIDTH else LEFT * WIDE // WIDTH

    def x(self, ms: float) -> float:
        return self.left + (self.width - self.left - RIGHT) * (ms - self.begin_ms) / max(1, self.end_ms - self.begin_ms)

    def y(self, value: float) -> float:
        share = math.log10(max(1.0, value)) / math.log10(max(10.0, self.most)) if self.log else value / (self.most or 1)
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(1.0, share)


def lines(
    series: Sequence[Series],
    begin_ms: int,
    end_ms: int,
    form: Form = short,
    *,
    log: bool = False,
    steps: bool = False,
    width: int = WIDTH,
) -> str:
    """One line per series; with `steps` a value holds until the next."""
    most = max((value for one in series for _, value in one.points if value is not None), default=0)
    ticks = _powers(most) if log else nice(most)
    frame = Frame(begin_ms, end_ms, ticks[-1], log, width)
    drawn = "".join(_line(frame, one, place, form, steps=steps) for place, one in reversed(list(enumerate(series))))
    return _svg(_axes(frame, ticks, form) + drawn, ", ".join(one.name for one in series), width)


def _line(frame: Frame, series: Series, place: int, form: Form, *, steps: bool) -> str:
    runs: list[list[tuple[float, float]]] = [[]]
    marks = []
    for ms, value in series.points:
        if value is None:
            runs.append([])
            continue
        x, y = frame.x(ms), frame.y(value)
        if steps and runs[-1]:
            runs[-1].append((x, runs[-1][-1][1]))
        runs[-1].append((x, y))
        tip = f"{series.name}, {clock(ms, frame.end_ms - frame.begin_ms)}: {form(value)}"
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6"><title>{escape(tip)}</title></circle>')
    if steps and runs[-1]:
        runs[-1].append((frame.x(frame.end_ms), runs[-1][-1][1]))
    paths = "".join(_path(run, place) for run in runs if run)
    return f'<g class="k{place}">{paths}<g class="tips">{"".join(marks)}</g></g>'


def _path(run: Sequence[tuple[float, float]], place: int) -> str:
    if len(run) == 1:
        return f'<circle class="dot" cx="{run[0][0]:.1f}" cy="{run[0][1]:.1f}" r="3"/>'
    joined = "L".join(f"{x:.1f} {y:.1f}" for x, y in run)
    return f'<path class="line d{place}" d="M{joined}"/>'


def columns(series: Sequence[Series], step_ms: int, begin_ms: int, end_ms: int, form: Form = short) -> str:
    """Stacked columns over time; all series have a point at each of the same times, `step_ms`
    apart.
    """
    times = [ms for ms, _ in series[0].points] if series else []
    values = [[one.points[n][1] or 0 for one in series] for n in range(len(times))]
    ticks = nice(max((sum(stack) for stack in values), default=0))
    frame = Frame(begin_ms, end_ms, ticks[-1])
    width = max(1.0, frame.x(begin_ms + step_ms) - frame.x(begin_ms) - 1)
    drawn = []
    for ms, stack in zip(times, values, strict=True):
        below = 0.0
        for place, value in enumerate(stack):
            if value:
                low, high = frame.y(below), frame.y(below + value)
                tip = f"{series[place].name}, {clock(ms, end_ms - begin_ms)}: {form(value)}"
                box = f'x="{frame.x(ms):.1f}" y="{high:.1f}" width="{width:.1f}" height="{max(0.5, low - high):.1f}"'
                drawn.append(f'<rect class="k{place} area" {box}><title>{escape(tip)}</title></rect>')
            below += value
    return _svg(_axes(frame, ticks, form) + "".join(drawn), ", ".join(one.name for one in series), WIDTH)


def bars(
    rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], form: Form = short, width: int = WIDTH
) -> str:
    """Stacked bars, one per name, longest possible = the largest sum; the sum stands behind the
    bar.
    """
    most = max((sum(parts) for _, parts in rows), default=0) or 1
    room = width - ROOM
    drawn = []
    for n, (name, parts) in enumerate(rows):
        y, x = n * BAR, 0.0
        drawn.append(f'<text x="0" y="{y + 14}"><title>{escape(name)}</title>{escape(_cut(name, width))}</text>')
        for place, value in enumerate(parts):
            long = room * value / most
            if value:
                tip = f"<title>{escape(name)}, {escape(names[place])}: {escape(form(value))}</title>"
                drawn.append(
                    f'<rect class="k{place} area" x="{x:.1f}" y="{y + 20}" width="{max(0.5, long):.1f}" '
                    f'height="16">{tip}</rect>'
                )
            x += long
        drawn.append(f'<text x="{x + 6:.1f}" y="{y + 33}">{escape(form(sum(parts)))}</text>')
    return _svg("".join(drawn), ", ".join(names), width, len(rows) * BAR + 4)


def histogram(buckets: Sequence[tuple[str, float]], form: Form = short) -> str:
    """Columns side by side with their names below."""
    ticks = nice(max((value for _, value in buckets), default=0))
    frame = Frame(0, max(1, len(buckets)), ticks[-1])
    width = frame.x(1) - frame.x(0)
    every = max(1, math.ceil(len(buckets) / 7))
    drawn = []
    for n, (name, value) in enumerate(buckets):
        low, high = frame.y(0), frame.y(value)
        box = f'x="{frame.x(n) + 1:.1f}" y="{high:.1f}" width="{max(1.0, width - 2):.1f}" height="{low - high:.1f}"'
        drawn.append(f'<rect class="k0 area" {box}><title>{escape(name)}: {escape(form(value))}</title></rect>')
        if n % every == 0:
            drawn.append(f'<text x="{frame.x(n) + width / 2:.1f}" y="{HEIGHT - 8}" class="mid">{escape(name)}</text>')
    return _svg(_levels(frame, ticks, form) + "".join(drawn), "histogram", WIDTH)


def nice(most: float) -> list[float]:
    """Ticks from 0 to a round number that is at least `most`."""
    if most <= 0:
        return [0, 1]
    power = 10 ** math.floor(math.log10(most))
    step = next(power * part for part in (0.2, 0.25, 0.5, 1, 2, 2.5) if most / (power * part) <= 5)
    # Half a message is none.
    step = max(1.0, step) if most >= 1 else step
    return [n * step for n in range(math.ceil(most / step) + 1)]


def _powers(most: float) -> list[float]:
    """About tenfold steps that durations in ms have short names for, up to one that is at least
    `most`.
    """
    last = next((n for n, tick in enumerate(_DURATIONS) if tick >= most), len(_DURATIONS) - 1)
    return [float(tick) for tick in _DURATIONS[: max(1, last) + 1]]


def _axes(frame: Frame, ticks: Sequence[float], form: Form) -> str:
    span = frame.end_ms - frame.begin_ms
    step = next((step for step in _TIME_STEPS if span / step <= frame.width / 90), _TIME_STEPS[-1])
    places = range(frame.begin_ms + -frame.begin_ms % step, frame.end_ms + 1, step)
    words = (_time(frame, ms, clock(ms, span)) for ms in places)
    return _levels(frame, ticks, form) + "".join(words)


def _time(frame: Frame, ms: int, word: str) -> str:
    """The name of a time below it; near the right edge it ends there instead of being cut."""
    x = frame.x(ms)
    place, end = (x, "mid") if x < frame.width - 4 * RIGHT else (min(x + RIGHT, frame.width), "end")
    return f'<text x="{place:.1f}" y="{HEIGHT - 8}" class="{end}">{word}</text>'


def _levels(frame: Frame, ticks: Sequence[float], form: Form) -> str:
    drawn = []
    for tick in ticks:
        y = frame.y(tick)
        drawn.append(f'<line class="level" x1="{frame.left}" x2="{frame.width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{frame.left - 6}" y="{y + 4:.1f}" class="end">{escape(form(tick))}</text>')
    return "".join(drawn)


def _svg(content: str, about: str, width: int, height: int = HEIGHT) -> str:
    wide = ' class="wider"' if width == WIDE else ""
    return f'<svg{wide} viewBox="0 0 {width} {height}" role="img" aria-label="{escape(about)}">{content}</svg>'


def _cut(name: str, width: int) -> str:
    most = MOST_NAME * width // WIDTH
    return name if len(name) <= most else name[: most - 1] + "…"
