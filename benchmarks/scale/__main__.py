"""`make bench-scale`: what a message costs as the state grows; writes benchmarks/scale.md and
scale.svg.

    .venv/bin/python -m benchmarks.scale [--only backlog,tags] [--steps small] [--page]

Each dimension has its own `leaseway up` in a temporary folder. Talks to 127.0.0.1 only and ends by
itself. The page has the newest result of every dimension that was ever measured in full
(benchmarks/scale/results), so one can be measured again without the others. `--page` measures
nothing and writes the page again. `--steps small`: two tiny steps of each, which try the program
and say nothing about the service; writes no files.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path

from benchmarks.scale import store
from benchmarks.scale.chart import svg
from benchmarks.scale.dimensions import DIMENSIONS
from benchmarks.scale.measure import FULL, SMALL, measured
from benchmarks.scale.page import page, table, verdict
from benchmarks.scale.readings import Result
from benchmarks.scale.why import WHY


def _names(text: str) -> tuple[str, ...]:
    words = tuple(text.split(","))
    if unknown := set(words) - set(DIMENSIONS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(DIMENSIONS)}")
    return words


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=_names, default=tuple(DIMENSIONS), help=f"of {','.join(DIMENSIONS)}")
    parser.add_argument("--steps", choices=(SMALL, FULL), default=FULL, help="small tries the program (default full)")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent.parent, help="folder of scale.md and scale.svg (benchmarks/)"
    )
    return parser.parse_args()


def _setting(dimension: str) -> str:
    """Command, machine and date as a sentence."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, Python {platform.python_version()}"
    day, load = time.strftime("%Y-%m-%d"), os.getloadavg()[2]
    return f"`python -m benchmarks.scale --only {dimension}`: {machine}; {day}, load average {load:.1f} at the end."


def _write_page(folder: Path) -> None:
    results = store.read(DIMENSIONS)
    (folder / "scale.md").write_text(page(results, WHY))
    (folder / "scale.svg").write_text(svg(results))
    print(f"written: {folder / 'scale.md'}, {folder / 'scale.svg'}")


def main() -> int:
    options = _options()
    if options.page:
        _write_page(options.out)
        return 0
    for name in options.only:
        rows = measured(DIMENSIONS[name], options.steps)
        result = Result(name, _setting(name), rows)
        for series in result.series:
            print("\n".join([series, *table(result.of(series)), *verdict(series, result.of(series), WHY)]), flush=True)
        if options.steps == FULL:
            store.write(result)
            _write_page(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
