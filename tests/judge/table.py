"""Reports of runs as a table in Markdown, a row per fault.

python -m tests.judge.table REPORT.json ...
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

HEAD = (
    "| fault | runs | sends | per s | lost | altered | redelivered per million | overlaps (excused) | DLQ "
    "imbalance | FIFO breaches"
    " | other breaches | recovery p50 / p99 s |"
)
COUNTED = {
    "no acked send lost",
    "no phantom, no altered body",
    "lease exclusivity",
    "DLQ conservation",
    "FIFO order within a group",
}


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of the values do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def row(fault: str, reports: list[dict[str, Any]]) -> str:
    """The runs of one fault (or mix) together."""

    def total(key: str) -> int:
        return sum(int(r[key]) for r in reports)

    deliveries = max(1, total("deliveries"))
    again = sum(r["duplicates_per_million"] * r["deliveries"] for r in reports) / deliveries
    others = sum(count for r in reports for name, count in r["broken"].items() if name not in COUNTED)
    times = [seconds for r in reports for found in r["recovery_s"].values() for seconds in found]
    rate = total("sends") / max(1.0, sum(r["seconds"] for r in reports))
    return (
        f"| {fault} | {len(reports)} | {total('sends'):,} | {rate:,.0f} | {total('lost')} | {total('altered')} "
        f"| {again:,.0f}"
        f" | {total('overlaps')} ({total('overlaps_excused')}) | {total('dlq_imbalance')} | "
        f"{total('fifo_breaches')} | {others}"
        f" | {percentile(times, 0.5):.1f} / {percentile(times, 0.99):.1f} ({len(times)}) |"
    )


def recovery_rows(reports: list[dict[str, Any]]) -> list[str]:
    """A row per fault that was done in any run: recovery from its heal, outage from its begin."""
    names = sorted({name for r in reports for name in r["recovery_s"]})
    rows = []
    for name in names:
        back, out = ([s for r in reports for s in r[key].get(name, [])] for key in ("recovery_s", "outage_s"))
        shown = " | ".join(f"{percentile(t, 0.5):.1f} / {percentile(t, 0.99):.1f}" for t in (back, out))
        rows.append(f"| {name} | {len(back)} | {shown} |")
    return rows


def tables(reports: list[dict[str, Any]]) -> str:
    """Both tables."""
    faults = sorted({r["fault"] for r in reports})
    rows = [row(fault, [r for r in reports if r["fault"] == fault]) for fault in faults]
    ruled = [HEAD, "|" + "---|" * (HEAD.count("|") - 1), *rows]
    again = [
        "| fault | times | back after its heal, p50 / p99 s | after its begin, p50 / p99 s |",
        "|---|---|---|---|",
        *recovery_rows(reports),
    ]
    return "\n".join([*ruled, "", *again])


if __name__ == "__main__":
    print(tables([msgspec.json.decode(Path(name).read_bytes()) for name in sys.argv[1:]]))
