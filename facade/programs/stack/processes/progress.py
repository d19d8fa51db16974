"""Whether a program that is not ready yet still gets on: it uses the CPU, or writes to its logs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

# A program that starts on a machine with twenty times as much to do as it can gets more; one that
# only waits for what never comes, less.
LEAST_CPU = 1 / 60
LOOK_S = 0.5


class Progress:
    """What a process does from now on. `logs` are files that grow while it gets on."""

    def __init__(self, pid: int, logs: Sequence[Path], stall_s: float) -> None:
        self._pid = pid
        self._logs = logs
        self._stall_s = stall_s
        self._since = self._looked_at = time.monotonic()
        self._cpu_s = cpu_s(pid)
        self._sizes = self._logged()

    def is_stalled(self) -> bool:
        """Whether it has neither written anything nor used LEAST_CPU of a processor for `stall_s`
        seconds. Where the system does not tell of processors: never.
        """
        now = time.monotonic()
        if now - self._looked_at < min(LOOK_S, self._stall_s / 4):
            return False
        self._looked_at = now
        used, sizes = cpu_s(self._pid), self._logged()
        if (
            used is None
            or self._cpu_s is None
            or used - self._cpu_s >= LEAST_CPU * self._stall_s
            or sizes != self._sizes
        ):
            self._since, self._cpu_s, self._sizes = now, used, sizes
        return now - self._since > self._stall_s

    def _logged(self) -> list[int]:
        return [_size(file) for file in self._logs]


def cpu_s(pid: int) -> float | None:
    """Seconds of CPU that a process has used, None where the system does not say."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # Of the whole line these are fields 14 and 15.
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
