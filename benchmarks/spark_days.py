"""What a day costs when many are there: days of a log are written, each is copied into tables, and
the reports of the second and of the last day are made of these.

    python -m benchmarks.spark_days [--days 30] [--messages 2500]

Starts a Kafka of its own in a temporary folder. Talks to 127.0.0.1 only; ends by itself. Works in
one session of two threads, so Java's start is in no figure. Prints of each copy and report the wall
and CPU time of Python and Java, the most files that a day of each table has, and the ratios of the
last day's report to that of the second day's, each made three times in turn after one to warm up.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.spark_log import DAY_MS, fill_days
from facade.programs.stack.processes.spark_submit import ONE_COMPILER, submit_arguments
from spark.lake.places.warehouse import Warehouse
from tests.costs import spent_s
from tests.services import running_services

ROUNDS = 3


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Does some work; its wall and CPU seconds."""
    before, began = spent_s(os.getpid()), time.monotonic()
    work()
    return round(time.monotonic() - began, 1), round(spent_s(os.getpid()) - before, 1)


def files_of(warehouse: Warehouse) -> dict[str, int]:
    """The most files of rows that a day of each table has."""
    most = {}
    for data in sorted((warehouse.folder or Path()).glob("**/data")):
        days = [sum(1 for _ in day.glob("*.parquet")) for day in data.iterdir() if day.is_dir()]
        most[data.parent.name] = max(days, default=0)
    return most


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--messages", type=int, default=2_500)
    given = parser.parse_args()
    os.environ["PYSPARK_SUBMIT_ARGS"] = submit_arguments(*ONE_COMPILER, master="local[2]")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from spark.frames.log import Log
    from spark.frames.session import session
    from spark.lake.answers.stored import Stored
    from spark.lake.commits import Wish
    from spark.lake.lake import Lake
    from spark.reports.report import report
    from spark.reports.sources.tables import TablesSource

    first_ms = (int(time.time() * 1000) // DAY_MS - given.days) * DAY_MS
    begins = [first_ms + day * DAY_MS for day in range(given.days)]
    with tempfile.TemporaryDirectory() as name, running_services(Path(name) / "services") as services:
        made, warehouse = session("days", "local[2]"), Warehouse(Path(name) / "lake")
        for day, _ in enumerate(fill_days(services.bootstrap, "days", given.messages, 256, begins), 1):
            copy = Lake(made, Log(services.bootstrap, "days"), warehouse, Wish())
            print(json.dumps({"day": day, "copy": spent(copy.round)}), flush=True)
        print(json.dumps({"files of a day": files_of(warehouse)}))

        def report_of(day: int) -> None:
            begin, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (begins[day - 1], begins[day - 1] + DAY_MS))
            report(TablesSource(Stored(made, warehouse, None), begin, end), begin, end, Path(name) / "out" / str(day))

        report_of(2)
        ratios = []
        for _ in range(ROUNDS):
            took = {day: spent(lambda day=day: report_of(day)) for day in (2, given.days)}  # type: ignore[misc]
            print(json.dumps({"reports of day": took}), flush=True)
            ratios.append([last / second for second, last in zip(took[2], took[given.days], strict=True)])
        wall, cpu = (round(statistics.median(column), 2) for column in zip(*ratios, strict=True))
        print(json.dumps({"the last day's / day 2's": {"wall": wall, "CPU": cpu}}))
        made.stop()


if __name__ == "__main__":
    main()
