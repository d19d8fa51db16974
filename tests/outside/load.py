"""Busy processes beside a run. They end by their own clock, and when their parent is gone."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

_BUSY = """
import os, sys, time
parent, end = os.getppid(), time.monotonic() + float(sys.argv[1])
os.nice(int(sys.argv[2]))
while time.monotonic() < end and os.getppid() == parent:
    sum(i * i for i in range(20000))
"""


@contextlib.contextmanager
def load(processes: int, seconds: float, nice: int) -> Iterator[None]:
    """`processes` busy ones, for `seconds` at most."""
    command = [sys.executable, "-c", _BUSY, str(seconds), str(nice)]
    busy = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
        for one in busy:
            one.wait()


def average() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 1)
