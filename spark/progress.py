"""What a job says while it works: one line on stderr at the beginning of each stage. Results go to
stdout.
"""

from __future__ import annotations

import contextlib
import sys
import time


def tell(job: str, text: str) -> None:
    """Writes a line; nobody need read it."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"leaseway {job}: {text}\n")
        sys.stderr.flush()


class Stages:
    """The stages of a job, one after the other, and how long each took."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._began = self._at = time.monotonic()
        self._name = ""
        self._seconds: dict[str, float] = {}

    def begin(self, name: str, about: str = "") -> None:
        """The stage before, if any, is over, and this one begins."""
        self._end()
        self._name = name
        tell(self._job, f"{about or name}, {self._at - self._began:.0f} s so far")

    def _end(self) -> None:
        now = time.monotonic()
        if self._name:
            self._seconds[self._name] = round(now - self._at, 1)
        self._at = now

    def seconds(self) -> dict[str, float]:
        """All stages, the last of which is over now, and `all`."""
        self._end()
        self._name = ""
        return {**self._seconds, "all": round(self._at - self._began, 1)}
