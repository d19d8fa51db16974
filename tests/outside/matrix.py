"""Runs the harness for every seed, number of workers and load, one run after the other, and prints
the table: `python -m tests.outside.matrix`.

A run whose report is there already is not repeated, so that a matrix can be ended and gone on with;
a run of an idle machine waits until the machine is.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.outside import load as busy

QUIET = 2.0
QUIET_WITHIN_S = 300.0


def numbers(text: str) -> list[int]:
    """1-3,7 is 1, 2, 3 and 7. Raises ValueError."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def wait_quiet(within_s: float = QUIET_WITHIN_S) -> None:
    """Until the load average is low; an honest run beside something else is better than none."""
    end = time.monotonic() + within_s
    while busy.average() > QUIET and time.monotonic() < end:
        time.sleep(2)


def one(folder: Path, seed: int, workers: int, load: int, seconds: int) -> int:
    """One run, unless its report is there; its exit status."""
    name = f"seed-{seed}-workers-{workers}-load-{load}"
    report = folder / f"{name}.json"
    if report.exists():
        return 0
    if not load:
        wait_quiet()
    order = {"seed": seed, "workers": workers, "load": load, "seconds": seconds, "report": report}
    command = [sys.executable, "-m", "tests.outside.run", *(f"--{key}={value}" for key, value in order.items())]
    with (folder / f"{name}.txt").open("w") as said:
        status = subprocess.run(command, stdout=said, stderr=subprocess.STDOUT, check=False).returncode
    print(f"{name}: {'held' if status == 0 else f'status {status}, see {name}.txt'}", flush=True)
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every promise held in every run."""
    parser = argparse.ArgumentParser(prog="python -m tests.outside.matrix", description=__doc__)
    parser.add_argument("--seeds", type=numbers, default="1-10")
    parser.add_argument("--workers", type=numbers, default="1,2")
    parser.add_argument("--load", type=numbers, default="0,15")
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--folder", type=Path, default=Path(".cache/outside"))
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    runs = itertools.product(given.load, given.seeds, given.workers)
    worst = max(one(given.folder, seed, workers, load, given.seconds) for load, seed, workers in runs)
    reports = map(str, sorted(given.folder.glob("*.json")))
    return max(worst, subprocess.run([sys.executable, "-m", "tests.judge.table", *reports], check=False).returncode)


if __name__ == "__main__":
    sys.exit(main())
