"""Reports of runs as tables in Markdown, a row per kind of run and one per fault; exit status 1 = a
promise was broken.

python -m tests.judge.table REPORT.json ...
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import msgspec

HEAD = (
    "| run | runs | sends | per s | deliveries | letters | lives | lost | altered | redelivered per million "
    "| excused | breaches | recovery p50 / p99 s |"
)


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of the values do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _kind(report: dict[str, Any]) -> str:
    """A fault or mix of the fault harness; how busy the machine was made by the other."""
    return str(report.get("fault") or f"{report['workers']} workers, load {report['load']}")


def row(kind: str, reports: list[dict[str, Any]]) -> str:
    """The runs of one kind together."""

    def total(key: str) -> int:
        return sum(int(r[key]) for r in reports)

    deliveries = max(1, total("deliveries"))
    again = sum(r["duplicates_per_million"] * r["deliveries"] for r in reports) / deliveries
    broken: Counter[str] = Counter()
    for r in reports:
        broken.update(r["broken"])
    times = [seconds for r in reports for found in r["recovery_s"].values() for seconds in found]
    cells = [
        *(kind, str(len(reports)), f"{total('sends'):,}"),
        f"{total('sends') / max(1.0, sum(r['seconds'] for r in reports)):,.0f}",
        *(f"{total(key):,}" for key in ("deliveries", "letters", "lives", "lost", "altered")),
        *(f"{again:,.0f}", f"{total('excused'):,}"),
        ", ".join(f"{name} {count}" for name, count in broken.items()) or "0",
        f"{_times(times)} ({len(times)})",
    ]
    return f"| {' | '.join(cells)} |"


def _times(times: list[float]) -> str:
    return f"{percentile(times, 0.5):.1f} / {percentile(times, 0.99):.1f}"


def recovery_rows(reports: list[dict[str, Any]]) -> list[str]:
    """A row per fault that was done in any run: recovery from its heal, outage from its begin."""
    names = sorted({name for r in reports for name in r["recovery_s"]})
    rows = []
    for name in names:
        back, out = ([s for r in reports for s in r[key].get(name, [])] for key in ("recovery_s", "outage_s"))
        rows.append(f"| {name} | {len(back)} | {_times(back)} | {_times(out)} |")
    return rows


def tables(reports: list[dict[str, Any]]) -> str:
    """Both tables."""
    kinds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for report in reports:
        kinds[_kind(report)].append(report)
    again = ["| fault | times | back after its heal, p50 / p99 s | after its begin, p50 / p99 s |", "|---|---|---|---|"]
    ruled = [HEAD, "|" + "---|" * (HEAD.count("|") - 1), *(row(kind, kinds[kind]) for kind in sorted(kinds))]
    return "\n".join([*ruled, "", *again, *recovery_rows(reports)])


def main(names: list[str]) -> int:
    """0 when every promise held in every run."""
    reports = [msgspec.json.decode(Path(name).read_bytes()) for name in names]
    print(tables(reports))
    return 0 if reports and all(report["held"] for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
