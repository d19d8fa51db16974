"""Reads from /proc what CPU the processes of a round used; times how fast the machine is now."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
LOOP = 100_000
LOOPS = 7

Roots = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Mark:
    """What was used until a moment, in CPU seconds: by the whole machine (with what a hypervisor
    took from it), by each name with its descendants, and by threads of the processes themselves.
    """

    at: float
    machine: float
    by_name: Mapping[str, float]
    by_thread: Mapping[str, Mapping[str, float]]

    def since(self, earlier: Mark) -> Mark:
        """Returns what was used between two marks; `at` is then the seconds between them."""
        return Mark(
            self.at - earlier.at,
            self.machine - earlier.machine,
            {name: spent - earlier.by_name.get(name, 0.0) for name, spent in self.by_name.items()},
            {
                name: {
                    thread: spent - earlier.by_thread.get(name, {}).get(thread, 0.0)
                    for thread, spent in threads.items()
                }
                for name, threads in self.by_thread.items()
            },
        )

    def foreign(self) -> float:
        """Returns the share of all processors that went to none of the named processes."""
        cores = os.cpu_count() or 1
        return max(0.0, self.machine - sum(self.by_name.values())) / (self.at * cores)


def mark(roots: Roots) -> Mark:
    """Reads all counters. A descendant counts under the nearest root; a process that is gone counts
    nowhere, but its parent has what it used.
    """
    owners = _owners(roots)
    by_name = dict.fromkeys(roots, 0.0)
    for pid, name in owners.items():
        if stat := _stat(pid):
            by_name[name] += sum(int(field) for field in stat[11:15]) / TICKS
    threads = {name: _threads(pids) for name, pids in roots.items()}
    return Mark(time.monotonic(), _machine(), by_name, threads)


def peak_mib(roots: Roots) -> float:
    """Returns the sum of the largest resident sizes that the processes ever had."""
    found = 0
    for pid in _owners(roots):
        try:
            status = (PROC / str(pid) / "status").read_text()
        except OSError:
            continue
        if peak := re.search(r"VmHWM:\s+(\d+)", status):
            found += int(peak[1])
    return found / 1024


def loop_ms() -> float:
    """Times a fixed loop of pure CPU: how fast a processor is now. Returns the shortest of several,
    which nothing has interrupted.
    """
    best = float("inf")
    for _ in range(LOOPS):
        began, total = time.perf_counter(), 0
        for number in range(LOOP):
            total += number * number % 7
        best = min(best, time.perf_counter() - began)
    return best * 1000


def _machine() -> float:
    """Everything but idling and waiting for a disk; stolen time is in it."""
    fields = (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]
    return sum(int(field) for number, field in enumerate(fields) if number not in (3, 4)) / TICKS


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold anything."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _owners(roots: Roots) -> dict[int, str]:
    parents = {
        int(entry.name): stat[1]
        for entry in PROC.iterdir()
        if entry.name.isdigit() and (stat := _stat(int(entry.name)))
    }
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(int(parent), []).append(pid)
    owners = {pid: name for name, pids in roots.items() for pid in pids}
    waiting = list(owners)
    while waiting:
        pid = waiting.pop()
        for child in children.get(pid, ()):
            if child not in owners:
                owners[child] = owners[pid]
                waiting.append(child)
    return owners


def _threads(pids: Sequence[int]) -> dict[str, float]:
    """CPU seconds by name of thread, numbers at its end aside."""
    found: dict[str, float] = {}
    for pid in pids:
        for task in (PROC / str(pid) / "task").glob("*"):
            try:
                name, spent = (task / "comm").read_text().strip(), (task / "schedstat").read_text().split()[0]
            except (OSError, IndexError):
                continue
            name = re.sub(r"[\d:_#-]+$", "", name) or name
            found[name] = found.get(name, 0.0) + int(spent) / 1e9
    return found
