"""Prints which files of tests took the CPU: of the test process, and of all that it has started.

Groups of tests keep both cores full (see `tiers`), so what a file costs is not what it takes. To be
loaded by `-p tests.costs`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

SHOWN = 20
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def spent_s(pid: int) -> float:
    """CPU of a process and its descendants so far, also of those that have been waited for.
    Processes whose parent has ended before them are missing.
    """
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name in brackets may have anything in it.
            state = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        children.setdefault(int(state[1]), []).append(int(folder.name))
        used[int(folder.name)] = sum(map(int, state[11:15])) * _TICK_S
    found, left = 0.0, [pid]
    while left:
        one = left.pop()
        found += used.get(one, 0.0)
        left += children.get(one, ())
    return found


class Costs:
    """What was spent while the tests of each file ran; a service that they share counts where it
    works.
    """

    def __init__(self) -> None:
        self._by_file: defaultdict[str, float] = defaultdict(float)
        self._file = ""
        self._before = 0.0

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._turn_to(nodeid.partition("::")[0])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """All have ended."""
        self._turn_to("")
        terminalreporter.section(f"CPU of the {SHOWN} files that took most, and of all")
        most = sorted(self._by_file.items(), key=lambda one: -one[1])[:SHOWN]
        for file, seconds in [*most, ("in all", sum(self._by_file.values()))]:
            terminalreporter.write_line(f"{seconds:7.1f} s {file}")

    def _turn_to(self, file: str) -> None:
        if file != self._file:
            now = spent_s(os.getpid())
            if self._file:
                self._by_file[self._file] += now - self._before
            self._file, self._before = file, now


def pytest_configure(config: pytest.Config) -> None:
    """Registers what counts."""
    config.pluginmanager.register(Costs())
