"""Runs the tests in groups side by side: `python -m tests.tiers full` (all, as CI) or `change`
(what every change should pass, in minutes).

Most tests wait for something, so groups side by side take less time than one after the other; what
would feel the others runs before them. Each group is a process of its own with a Kafka and a Redis
of its own. What failed is printed once more at the end: several outputs in one are long. Options
for all: PYTEST_ADDOPTS.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
# As much of a failure as its line at the end has.
WIDTH = 400
# Where the clients of SQS speak its older protocol, or are programs that fetch and build for long.
SLOW_CLIENTS = ("query_client", "kombu", "celery", "watermill", "aws_cli", "consumer", "dramatiq")
# Whose own rules have a folder each; what each verb promises is in tests/conformance/cases for all.
OTHER_DIALECTS = ("emq", "mns", "rocketmq")
# What SQS promises, once more without the native front, which serves all others where it is built.
FRONT = (
    "-k",
    "not emq and not mns",  # the front passes them on as it comes to them
    "tests/conformance/cases",
    "tests/conformance/sqs",
    *(f"--ignore=tests/conformance/sqs/test_{client}.py" for client in SLOW_CLIENTS),
)
# What measures runs before the groups: calls of a request, to which a busy machine adds, and times.
ALONE = (
    "tests/integration/test_budget.py",
    "tests/integration/test_queues.py::test_500_queues_are_made_within_60_s_and_deleted_without_a_trace",
)
WITHOUT = tuple(f"--deselect={place}" for place in ALONE)
VARIABLES = {"front": {"LEASEWAY_FRONT": "python"}}
# The tests start hundreds of processes, most of them for seconds: what Python compiles is kept for
# the next one. (Java's first compiler alone costs less at a start, but Spark needs the second.)
FOR_ALL = {"PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "pycache")}
TIERS = {
    "full": {
        "front": FRONT,
        "slow": ("tests/acceptance", "tests/outside"),
        "integration": ("tests/integration", "tests/stack", *WITHOUT),
        # Spark comes last, when other groups have ended: beside them its reports take too long.
        "rest": ("tests/unit", "tests/state", "tests/property", "tests/conformance", "tests/faults", "tests/spark"),
    },
    "change": {
        "integration": ("tests/integration", "-m", "not long", *WITHOUT),
        "rest": (
            "tests/unit",
            "tests/state",
            "tests/property",
            "tests/conformance",
            *(f"--ignore=tests/conformance/{dialect}" for dialect in OTHER_DIALECTS),
            *(f"--ignore=tests/conformance/sqs/test_{client}.py" for client in SLOW_CLIENTS),
        ),
    },
}


class Group:
    """A pytest process whose lines are printed as they come, each with the name of its group."""

    def __init__(self, name: str, options: tuple[str, ...]) -> None:
        self._name = name
        self._began = time.monotonic()
        # One cache of what has failed last can't have three writers.
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.costs", "--durations=30", *options]
        variables = {**os.environ, **FOR_ALL, **VARIABLES.get(name, {})}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        self._process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.failures: list[str] = []
        self._printer = threading.Thread(target=self._print, name=name)
        self._printer.start()

    def _print(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            print(f"{self._name}: {line}", end="", flush=True)
            if line.startswith(("FAILED ", "ERROR ")):  # pytest's short summary
                self.failures.append(f"{self._name}: {line.strip()[:WIDTH]}")

    def end(self) -> int:
        """Waits for the process; its exit status. Ctrl-C reaches it too: it ends what it began."""
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                _, waited, usage = os.wait4(self._process.pid, 0)
                status = abs(os.waitstatus_to_exitcode(waited))
                self._printer.join()
                took = f"{time.monotonic() - self._began:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of CPU"
                print(f"{self._name}: exit status {status} after {took}", flush=True)
                return status


def main() -> int:
    """0 when all groups of the tier have passed."""
    if sys.argv[1:] not in [[tier] for tier in TIERS]:
        print(f"usage: python -m tests.tiers {'|'.join(TIERS)}", file=sys.stderr)
        return 2
    first = Group("alone", ALONE)
    statuses = [first.end()]
    groups = [Group(name, options) for name, options in TIERS[sys.argv[1]].items()]
    statuses += [group.end() for group in groups]
    print(*(failure for group in (first, *groups) for failure in group.failures), sep="\n", flush=True)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
