"""results.svg: the rates as bars, one group a cell, each group on a scale of its own.

Neighbours: `outcome` has the medians. It must not know how anything was run.
"""

from __future__ import annotations

from html import escape

from benchmarks.bench.outcome import OURS, Outcome

WIDTH, LABEL, BAR, GAP, HEAD = 900, 150, 16, 4, 26
_OURS, _THEIRS = "#0b6e99", "#b8bec6"


def svg(outcome: Outcome) -> str:
    """The chart as text; the low and high of the rounds are a thin line on each bar."""
    parts: list[str] = []
    y = 10
    for cell in (cell for cell in outcome.cells if not cell.rate):
        rows = [(peer, [sample.rate for sample in outcome.good(peer, cell)]) for peer in outcome.peers]
        rows = [(peer, rates) for peer, rates in rows if rates]
        if not rows:
            continue
        most = max(max(rates) for _, rates in rows)
        parts.append(f'<text x="6" y="{y + 14}" font-weight="bold">{escape(cell.name)}</text>')
        y += HEAD
        for peer, rates in rows:
            parts += _bar(y, peer, rates, outcome.median(peer, cell) or 0.0, most)
            y += BAR + GAP
        y += GAP * 2
    style = 'font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" {style}>'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{y}" fill="white"/>', *parts, "</svg>", ""])


def _bar(y: int, peer: str, rates: list[float], median: float, most: float) -> list[str]:
    per = (WIDTH - LABEL - 90) / most
    low, high = LABEL + min(rates) * per, LABEL + max(rates) * per
    middle = y + BAR // 2
    colour = _OURS if peer.startswith(OURS) else _THEIRS
    return [
        f'<text x="{LABEL - 6}" y="{y + 12}" text-anchor="end">{escape(peer)}</text>',
        f'<rect x="{LABEL}" y="{y}" width="{median * per:.1f}" height="{BAR}" fill="{colour}"/>',
        f'<line x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}" stroke="#333"/>',
        f'<text x="{high + 6:.1f}" y="{y + 12}">{median:,.0f}</text>',
    ]
