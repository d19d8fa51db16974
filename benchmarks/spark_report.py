"""How long the full report takes: 2,000,000 messages of 1 KiB with 5,000,000 journal transitions,
and a half and a quarter of that.

    python -m benchmarks.spark_report [--messages 500000 1000000 2000000] [--bytes 1024]

Starts a Kafka of its own in a temporary folder, fills one log per size, and runs `leaseway report`
on each with 2 threads and a driver of 2 GiB. Talks to 127.0.0.1 only; ends by itself. Prints per
size: the wall and CPU time with the start of the JVM, the time of each part, the most memory that
the process and its JVM had, and from Spark's event log: bytes spilled, and the stages whose slowest
task took far longer than their median (skew).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.spark_log import DAY_MS, fill
from tests.services import running_services

SKEW = 3.0  # A stage is named when its slowest task took so many times its median,
SKEW_MS = 2_000  # and so much longer.
BEGIN_MS = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000)


def report(bootstrap: str, prefix: str, folder: Path) -> dict[str, Any]:
    """Runs the report; what it took."""
    events, out = folder / "events", folder / "out"
    events.mkdir(parents=True)
    (folder / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.compress false\nspark.eventLog.dir file://{events}\n"
    )
    span = ["--from", str(BEGIN_MS), "--to", str(BEGIN_MS + DAY_MS + 3_600_000)]
    command = [
        sys.executable,
        "-m",
        "facade",
        "report",
        "--bootstrap",
        bootstrap,
        "--prefix",
        prefix,
        "--out",
        str(out),
        *span,
    ]
    began = time.monotonic()
    most_mib, cpu_s = 0, 0.0
    with subprocess.Popen(command, env={**os.environ, "SPARK_CONF_DIR": str(folder)}) as job:
        while job.poll() is None:
            resident, used = tree(job.pid)
            most_mib, cpu_s = max(most_mib, resident), max(cpu_s, used)
            time.sleep(0.5)
    if job.returncode:
        raise SystemExit(f"the report ended with {job.returncode}")
    spent = {"wall_s": round(time.monotonic() - began, 1), "cpu_s": round(cpu_s, 1), "most_mib": most_mib}
    [written] = out.glob("*/summary.json")
    summary = json.loads(written.read_text())
    counted = {row["measure"]: row["messages"] for row in summary["totals"]}
    return {**spent, "seconds": summary["seconds"], "counted": counted, **_stages(events)}


def tree(pid: int) -> tuple[int, float]:
    """Resident MiB and CPU seconds of a process and its children: on a shared machine CPU time
    tells more than the wall clock.
    """
    resident, ticks, asked = 0, 0, [pid]
    while asked:
        one = asked.pop()
        try:
            asked += [int(child) for child in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
            status = Path(f"/proc/{one}/status").read_text()
            # After the name in brackets, which may hold anything, user and system time are the 12th
            # and 13th field.
            ticks += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:13]))
        except OSError:
            continue
        resident += next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")), 0)
    return resident // 1024, ticks / os.sysconf("SC_CLK_TCK")


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open(encoding="utf-8") as lines:
                yield from (json.loads(line) for line in lines if line.startswith("{"))


def _stages(folder: Path) -> dict[str, Any]:
    """Bytes spilled, and the skewed stages, of a run."""
    tasks: dict[int, list[int]] = defaultdict(list)
    names: dict[int, str] = {}
    spilled: dict[int, int] = defaultdict(int)
    for event in _events(folder):
        if event["Event"] == "SparkListenerTaskEnd" and (metrics := event.get("Task Metrics")):
            tasks[event["Stage ID"]].append(metrics["Executor Run Time"])
            spilled[event["Stage ID"]] += metrics["Disk Bytes Spilled"]
        elif event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            names[info["Stage ID"]] = f"{info['Stage ID']} {info['Stage Name'][:60]}"
    skewed = {}
    for write_staging, times in tasks.items():
        middle = statistics.median(times)
        if max(times) > SKEW * middle and max(times) - middle > SKEW_MS:
            skewed[names.get(write_staging, str(write_staging))] = {
                "tasks": len(times),
                "median_ms": middle,
                "slowest_ms": max(times),
            }
    slow = sorted(tasks, key=lambda write_staging: -sum(tasks[write_staging]))[:8]
    longest = {
        names.get(write_staging, str(write_staging)): [
            len(tasks[write_staging]),
            sum(tasks[write_staging]),
            max(tasks[write_staging]),
        ]
        for write_staging in slow
    }
    return {
        "spilled_mib": {
            names.get(write_staging, str(write_staging)): size >> 20 for write_staging, size in spilled.items() if size
        },
        "skewed": skewed,
        "tasks_sum_ms_slowest_ms": longest,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[500_000, 1_000_000, 2_000_000])
    parser.add_argument("--bytes", type=int, default=1_024)
    parser.add_argument("--keep", type=Path, help="folder that keeps the reports (default: a temporary one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running_services(Path(name, "services")) as services:
        for number, messages in enumerate(options.messages):
            began = time.monotonic()
            written = fill(services.bootstrap, f"b{number}", messages, options.bytes, BEGIN_MS)
            filled = round(time.monotonic() - began, 1)
            folder = (options.keep or Path(name)) / f"run-{messages}"
            found = report(services.bootstrap, f"b{number}", folder)
            line = {"load_average": os.getloadavg()[0], "filled_s": filled, "written": vars(written), **found}
            print(json.dumps(line, indent=1), flush=True)


if __name__ == "__main__":
    main()
