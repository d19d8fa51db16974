"""Runs the tests in groups side by side: `python -m tests.tiers full` (all, as CI) or `change`
(what every change should pass, in minutes).

Most tests wait for something, so groups side by side take less time than one after the other; what
would feel the others runs before them. Each group is a process of its own with a Kafka and a Redis
of its own. What failed is printed once more at the end: several outputs in one are long. Options
for all: PYTEST_ADDOPTS.

A few tests that failed are run once more when all others have ended: most wait for something, and
eight processes on two cores may take longer than they allow. What passes then is printed, to be
looked at. What looks for broken promises is not repeated: a race that shows once is a defect.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A line of pytest's short summary; a log that it shows has more space behind the first word.
_FAILED = re.compile(r"(?:FAILED|ERROR) (\S.*?)(?: - |$)")
# As much of a failure as its line at the end has.
WIDTH = 400
# Where the clients of SQS speak its older protocol, or are programs that fetch and build for long.
SLOW_CLIENTS = ("query_client", "kombu", "celery", "watermill", "aws_cli", "consumer", "dramatiq")
BUT_SLOW = tuple(f"--ignore=tests/conformance/sqs/test_{client}.py" for client in SLOW_CLIENTS)
# What SQS promises, once more without the native front, which serves all others where it is built.
FRONT = (
    "-k",
    "not emq and not mns",  # the front passes them on as it comes to them
    "tests/conformance/cases",
    "tests/conformance/sqs",
    *BUT_SLOW,
)
# What measures runs before the groups: calls of a request, to which a busy machine adds, and times.
ALONE = (
    "tests/integration/test_budget.py",
    "tests/integration/test_queues.py::test_500_queues_are_made_within_60_s_and_deleted_without_a_trace",
)
# Not repeated; nor is anything when more tests than that have failed.
PROMISES = ("tests/acceptance", "tests/outside", "tests/faults", "tests/two_redis", "tests/property")
MOST_AGAIN = 5
WITHOUT = tuple(f"--deselect={place}" for place in ALONE)
VARIABLES = {"front": {"LEASEWAY_NATIVE": "off"}}
# The tests start hundreds of processes, most of them for seconds: what Python compiles is kept for
# the next one, and Java stops at its first compiler, with which Kafka starts and serves for half
# the CPU. With that one alone a JVM keeps 48 MB for compiled code, which the tests of Spark fill:
# it says so in the output and compiles nothing more.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
FOR_ALL = {"PYTHONPYCACHEPREFIX": str(ROOT / ".cache" / "pycache"), "JDK_JAVA_OPTIONS": QUICK_JVM}
INTEGRATION = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "integration").glob("test_*.py"))
# What needs no more than Redis.
HERE = ("tests/unit", "tests/judge", "tests/state", "tests/engine", "tests/property")
CLIENTS = tuple(f"tests/conformance/{name}" for name in ("emq", "mns", "rocketmq", "rights"))


def share(number: int, count: int) -> tuple[str, ...]:
    """One of so many shares of tests/integration; files by turns, for the slow ones of a part have
    names alike.
    """
    return *INTEGRATION[number - 1 :: count], *WITHOUT


# Groups begin in this order, each as soon as one of those that run has ended; long ones come first,
# so that no core is left without one at the end.
TIERS: dict[str, dict[str, tuple[str, ...]]] = {
    "full": {
        "acceptance": ("tests/acceptance",),
        "rest": (*HERE, "tests/conformance", *(f"--ignore={folder}" for folder in CLIENTS)),
        "integration 2": share(2, 2),
        "spark": ("tests/spark",),
        "integration 1": share(1, 2),
        "dialects": CLIENTS,
        "stack": ("tests/stack",),
        "front": FRONT,
        "faults": ("tests/faults", "tests/outside", "tests/two_redis"),
    },
    "change": {
        "unit": HERE,
        "conformance": (
            "tests/conformance/cases",
            "tests/conformance/sqs",
            "-k",
            "not query and not emq and not mns",
            *BUT_SLOW,
        ),
        **{f"integration {n}": share(n, 8) for n in range(1, 9)},
    },
}
# What tests of each tier have to be.
CHOSEN = {"full": (), "change": ("-m", "not long")}
# They wait more than they work, so several groups on two cores take less time.
BESIDE = {"full": 4, "change": 6}


class Group:
    """A pytest process whose lines are printed as they come, each with the name of its group."""

    def __init__(self, name: str, options: tuple[str, ...]) -> None:
        self._name = name
        self._options = options
        self.failures: list[str] = []
        self.failed: list[str] = []  # their names, as pytest takes them
        self.status = 0

    def again(self) -> Group | None:
        """What has failed, to be run by itself; None = that may not be repeated."""
        if self.status != 1 or not self.failed or any(name.startswith(PROMISES) for name in self.failed):
            return None
        return Group(self._name, tuple(self.failed))

    def run(self) -> None:
        """Returns when it has ended."""
        began = time.monotonic()
        # One cache of what has failed last can't have several writers.
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.costs", "--durations=30"]
        command += [f"--rootdir={ROOT}", *self._options]
        variables = {**os.environ, **FOR_ALL, **VARIABLES.get(self._name, {})}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        process = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._print(line)
        _, waited, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(waited)  # it was waited for here, for what it used
        self.status = abs(process.returncode)
        took = f"{time.monotonic() - began:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} s of CPU"
        print(f"{self._name}: exit status {self.status} after {took}", flush=True)

    def _print(self, line: str) -> None:
        print(f"{self._name}: {line}", end="", flush=True)
        found = _FAILED.match(line)
        if found:
            self.failures.append(f"{self._name}: {line.strip()[:WIDTH]}")
            self.failed.append(found[1])


def run_beside(groups: list[Group], beside: int) -> None:
    """Runs the groups in their order, so many at a time; returns when all have ended."""
    left = iter(groups)  # whose `next` is one step, so that threads may share it

    def run_next() -> None:
        for group in left:
            group.run()

    threads = [threading.Thread(target=run_next) for _ in range(beside)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt:  # it reaches the processes too: they end what they began
                for _ in left:
                    pass


def main() -> int:
    """0 when all groups of the tier have passed."""
    if sys.argv[1:] not in [[tier] for tier in TIERS]:
        print(f"usage: python -m tests.tiers {'|'.join(TIERS)}", file=sys.stderr)
        return 2
    tier = sys.argv[1]
    first = Group("alone", (*ALONE, *CHOSEN[tier]))
    run_beside([first], 1)
    others = [Group(name, (*options, *CHOSEN[tier])) for name, options in TIERS[tier].items()]
    run_beside(others, BESIDE[tier])
    groups = [first, *others]
    return told(groups, run_again(groups))


def told(groups: list[Group], statuses: list[int]) -> int:
    """Prints what has failed for good, last, so that who sees the end alone sees it; the worst
    status.
    """
    print(
        *(line for group, status in zip(groups, statuses, strict=True) if status for line in group.failures), sep="\n"
    )
    return max(statuses)


def run_again(groups: list[Group]) -> list[int]:
    """Runs what has failed and may be repeated, one group after the other; the status of each group
    then.
    """
    if sum(len(group.failed) for group in groups) > MOST_AGAIN:
        return [group.status for group in groups]
    statuses = []
    for group in groups:
        again = group.again() if group.status else None
        if again is not None:
            run_beside([again], 1)
            if not again.status:
                print("failed beside others and passed by themselves:", *group.failed, sep="\n  ", flush=True)
        statuses.append(group.status if again is None else again.status)
    return statuses


if __name__ == "__main__":
    sys.exit(main())
