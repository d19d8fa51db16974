"""The tables of docs from reports: `python -m tests.outside.table r1.json r2.json ...`. Exit status
1 = a promise was broken.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

Report = dict[str, Any]
SUMS = ("sends", "deliveries", "settled", "letters", "lives")
HEAD = (
    "workers",
    "load",
    "load average",
    "seeds",
    "seconds",
    *SUMS,
    "faults",
    "breaches",
    "excused",
    "back p50 / max s",
)


def table(reports: list[Report]) -> str:
    """One row for each number of workers and load, and one for each fault."""
    kinds: dict[tuple[int, int], list[Report]] = defaultdict(list)
    for report in reports:
        kinds[report["workers"], report["load"]].append(report)
    lines = [
        f"| {' | '.join(HEAD)} |",
        "|---" * len(HEAD) + "|",
        *(_row(kind, kinds[kind]) for kind in sorted(kinds)),
        "",
        "| fault | times | back p50 / max s |",
        "|---|---|---|",
        *_faults(reports),
    ]
    return "\n".join(lines)


def _row(kind: tuple[int, int], rows: list[Report]) -> str:
    def total(name: str) -> str:
        return f"{sum(row[name] for row in rows):,}"

    broken: dict[str, int] = defaultdict(int)
    for row in rows:
        for name, verdict in row["verdicts"].items():
            broken[name] += verdict["breaches"]
    said = ", ".join(f"{name} {n}" for name, n in broken.items() if n) or "0"
    excused = sum(verdict["excused"] for row in rows for verdict in row["verdicts"].values())
    averages = [value for row in rows for value in row["load_average"]]
    seeds = ", ".join(str(seed) for seed in sorted(row["seed"] for row in rows))
    faults = sum(sum(row["faults"].values()) for row in rows)
    cells = [
        *map(str, kind),
        f"{statistics.median(averages):.0f}",
        seeds,
        str(rows[0]["seconds"]),
        *(total(name) for name in SUMS),
        str(faults),
        said,
        f"{excused:,}",
        _back([one["back"] for row in rows for one in row["recovery"]]),
    ]
    return f"| {' | '.join(cells)} |"


def _faults(reports: list[Report]) -> list[str]:
    times: dict[str, list[float | None]] = defaultdict(list)
    for report in reports:
        for row in report["recovery"]:
            times[row["fault"]].append(row["back"])
    return [f"| {name} | {len(rows)} | {_back(rows)} |" for name, rows in sorted(times.items())]


def _back(times: list[float | None]) -> str:
    known = [time for time in times if time is not None]
    never = len(times) - len(known)
    text = f"{statistics.median(known):.1f} / {max(known):.1f}" if known else "-"
    return f"{text}, {never} never" if never else text


if __name__ == "__main__":
    read = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    print(table(read))
    sys.exit(0 if read and all(report["held"] for report in read) else 1)
