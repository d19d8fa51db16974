"""far.svg: how late messages were over the day and in all, and what Redis had in memory; a line for
each run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from benchmarks.far.outcome import MOST_LATE_MS, MOST_MIB, Outcome, percentile

WIDE, HIGH = 980, 560
# Left, top, right, bottom of each plot.
Box = tuple[float, float, float, float]
OVER_DAY: Box = (76, 96, 640, 280)
IN_ALL: Box = (722, 96, 960, 280)
MEMORY: Box = (76, 364, 640, 518)
FIGURES = (676, 364)
# So wide is the time in which messages are sent, before the day.
SENDING = 56
LATE_MS = (1, 10, 100, 1_000, 10_000)
KINDS = ("plain", "wiped")
NAMES = {"plain": "nothing fails", "wiped": "Redis is emptied half way"}
# The ground is drawn, so that a page's own ground does not matter.
STYLE = """<style>
text { fill: #24292f; } .faint { fill: #57606a; } .ground { fill: #ffffff; } .axis { stroke: #d0d7de; }
.plain { stroke: #0969da; fill: #0969da; } .wiped { stroke: #bc4c00; fill: #bc4c00; }
.bar { stroke: #cf222e; fill: #cf222e; }
polyline { fill: none !important; stroke-width: 1.8; } .wide { stroke-width: 2.4; }
.thin { stroke-width: 1; opacity: 0.65; }
.dash { stroke-dasharray: 5 4; } .mark, circle { stroke: none !important; }
text.plain, text.wiped, text.bar { stroke: none; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .faint { fill: #9198a1; } .ground { fill: #0d1117; } .axis { stroke: #3d444d; }
.plain { stroke: #58a6ff; fill: #58a6ff; } .wiped { stroke: #f0883e; fill: #f0883e; }
.bar { stroke: #ff7b72; fill: #ff7b72; }
}
</style>"""


def kind(run: Outcome) -> str:
    return "plain" if run.wiped_at is None else "wiped"


def _text(x: float, y: float, text: str, of: str = "", anchor: str = "start", more: str = "") -> str:
    return f'<text class="{of}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _line(of: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{of}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _path(of: str, points: Iterable[tuple[float, float]]) -> str:
    return f'<polyline class="{of}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _title(box: Box, text: str) -> str:
    return _text(16 if box[0] < 100 else box[0] - 46, box[1] - 16, text, more=' font-weight="bold"')


def _log(low: float, high: float) -> Callable[[float], float]:
    """Where a number of ms lies between two places, on a scale of LATE_MS."""
    per = (high - low) / math.log10(LATE_MS[-1] / LATE_MS[0])
    return lambda ms: low + per * math.log10(min(max(ms, LATE_MS[0]), LATE_MS[-1]) / LATE_MS[0])


def _hours(box: Box, runs: Sequence[Outcome]) -> Callable[[float], float]:
    """Where an hour lies; the hours below 0, of sending, in a stretch of their own."""
    first = min((hour for run in runs for hour, _ in run.memory), default=-1.0)
    last_before = max((hour for run in runs for hour, _ in run.memory if hour < 0), default=0.0)
    day = max((run.hours for run in runs), default=24.0)

    def place(hour: float) -> float:
        if hour < 0:
            return box[0] + SENDING * (hour - first) / max(last_before - first, 1e-9)
        return box[0] + SENDING + (box[2] - box[0] - SENDING) * min(hour / day, 1.0)

    return place


def _day_axis(box: Box, x: Callable[[float], float], runs: Sequence[Outcome]) -> list[str]:
    parts = [_line("axis", box[0], box[3], box[2], box[3]), _line("axis", x(0), box[1], x(0), box[3])]
    hours = range(0, int(max(run.hours for run in runs)) + 1, 4)
    parts += [_text(x(hour), box[3] + 16, f"{hour} h", "faint", "middle") for hour in hours]
    parts.append(_text(box[0] + SENDING / 2 - 4, box[3] + 16, "sending", "faint", "middle"))
    for run in runs:
        if run.wiped_at is not None:
            parts.append(_line("wiped dash", x(run.wiped_at), box[1] - 6, x(run.wiped_at), box[3]))
            parts.append(_text(x(run.wiped_at) + 5, box[1] + 4, "Redis emptied", "wiped"))
    return parts


def _over_day(runs: Sequence[Outcome]) -> list[str]:
    box, y, x = OVER_DAY, _log(OVER_DAY[3], OVER_DAY[1]), _hours(MEMORY, runs)
    parts = [_title(box, "How late messages were, by the hour: p50 (thick), p99 and the latest (thin)")]
    for ms in LATE_MS:
        parts += [
            _line("axis", box[0], y(ms), box[2], y(ms)),
            _text(box[0] - 6, y(ms) + 4, f"{ms:,} ms", "faint", "end"),
        ]
    parts += [_line("bar dash", box[0], y(MOST_LATE_MS), box[2], y(MOST_LATE_MS))]
    parts += [_text(box[2] - 4, y(MOST_LATE_MS) - 5, "bar for p99", "bar", "end"), *_day_axis(box, x, runs)]
    for run in runs:
        looks = [look for look in run.looks if look.late_ms]
        for part, weight in ((50, "wide"), (99, ""), (100, "thin")):
            parts.append(
                _path(f"{kind(run)} {weight}", [(x(look.hour), y(percentile(look.late_ms, part))) for look in looks])
            )
    return parts


def _in_all(runs: Sequence[Outcome]) -> list[str]:
    """Of all messages that were measured: how many in a hundred were later than so much."""
    box, x = IN_ALL, _log(IN_ALL[0], IN_ALL[2])
    shares = (100, 10, 1, 0.1)
    per = (box[3] - box[1]) / math.log10(shares[0] / shares[-1])

    def y(share: float) -> float:
        return box[1] + per * math.log10(shares[0] / max(share, shares[-1]))

    parts = [_title(box, "Share of messages later than")]
    for share in shares:
        parts += [
            _line("axis", box[0], y(share), box[2], y(share)),
            _text(box[0] - 6, y(share) + 4, f"{share:g}%", "faint", "end"),
        ]
    for ms in LATE_MS[:-1]:
        parts.append(_text(x(ms), box[3] + 16, f"{ms:,} ms", "faint", "middle"))
    parts.append(_line("bar dash", x(MOST_LATE_MS), box[1], x(MOST_LATE_MS), y(1)))
    parts += [
        _line("bar dash", box[0], y(1), x(MOST_LATE_MS), y(1)),
        _text(x(MOST_LATE_MS) + 4, y(1) - 4, "bar", "bar"),
    ]
    for run in runs:
        late = run.late_ms()
        points = [(late[n], 100 * (len(late) - n) / len(late)) for n in range(len(late))]
        parts.append(_path(f"{kind(run)} wide", [(x(ms), y(share)) for ms, share in _thinned(points)]))
    return parts


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """One point for each ms is enough."""
    kept = dict[float, float]()
    for ms, share in points:
        kept.setdefault(ms, share)
    return list(kept.items())


def _memory(runs: Sequence[Outcome]) -> list[str]:
    box, x = MEMORY, _hours(MEMORY, runs)
    most = max(1.0, math.ceil(max((run.most_bytes() for run in runs), default=0) / 2**20))

    def y(mib: float) -> float:
        return box[3] - (box[3] - box[1]) * mib / most

    parts = [_title(box, f"Memory of Redis in MiB (the bar is {MOST_MIB})")]
    for mib in sorted({0, round(most / 2, 1), most}):
        parts += [
            _line("axis", box[0], y(mib), box[2], y(mib)),
            _text(box[0] - 6, y(mib) + 4, f"{mib:g}", "faint", "end"),
        ]
    parts += _day_axis(box, x, runs)
    for run in runs:
        for before in (True, False):
            rows = [(hour, used) for hour, used in run.memory if (hour < 0) == before]
            parts.append(_path(kind(run), [(x(hour), y(used / 2**20)) for hour, used in rows]))
    return parts


def _figures(runs: Sequence[Outcome]) -> list[str]:
    x, y = FIGURES
    parts = [_text(x, y - 16, "In all", more=' font-weight="bold"')]
    rows: list[tuple[str, Callable[[Outcome], str]]] = [
        ("sent", lambda run: f"{run.messages:,}"),
        ("came once", lambda run: f"{run.came - run.twice:,}"),
        ("early, twice", lambda run: f"{run.early}, {run.twice}"),
        ("p50 / p99 late", lambda run: f"{percentile(run.late_ms(), 50)} / {percentile(run.late_ms(), 99)} ms"),
        ("the latest", lambda run: f"{percentile(run.late_ms(), 100):,} ms"),
        ("Redis at most", lambda run: f"{run.most_bytes() / 2**20:.1f} MiB"),
        ("load average", lambda run: f"{run.load[0]:g} to {run.load[1]:g}"),
    ]
    for number, run in enumerate(runs):
        parts.append(
            _text(x + 106 + number * 100, y + 4, "no failure" if run.wiped_at is None else "emptied", kind(run))
        )
    for line, (name, told) in enumerate(rows):
        parts.append(_text(x, y + 26 + line * 20, name, "faint"))
        parts += [_text(x + 106 + number * 100, y + 26 + line * 20, told(run)) for number, run in enumerate(runs)]
    return parts


def svg(runs: Sequence[Outcome]) -> str:
    """The picture as text."""
    messages, hours = max(run.messages for run in runs), max(run.hours for run in runs)
    parts = [
        _text(
            16,
            26,
            f"{messages:,} messages, delayed at random over {hours:g} hours",
            more=' font-size="15" font-weight="bold"',
        )
    ]
    for number, run in enumerate(runs):
        parts.append(f'<rect class="{kind(run)} mark" x="{16 + number * 130}" y="38" width="12" height="12"/>')
        parts.append(_text(34 + number * 130, 48, NAMES[kind(run)]))
    parts += [*_over_day(runs), *_in_all(runs), *_memory(runs), *_figures(runs)]
    style = 'font-family="sans-serif" font-size="11.5"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}" {style}>'
    )
    return "\n".join([head, STYLE, f'<rect class="ground" width="{WIDE}" height="{HIGH}"/>', *parts, "</svg>", ""])
