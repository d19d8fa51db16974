"""Finds and ends what an earlier supervisor of the same data folder left running.

It must not trust pids that were written down: they may be somebody else's by now.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

# Every child has it in its environment, so a child is known for certain, whatever became of
# run.json.
MARK = "LW_STACK_FOLDER"
GRACE_S = 10.0


def leftovers(folder: Path, processes: Path = Path("/proc")) -> list[int]:
    """Pids of living processes that a supervisor of `folder` started; none where there is no
    /proc.
    """
    wanted = f"{MARK}={folder}".encode()
    found = []
    for entry in processes.glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0") and not _is_zombie(entry):
                found.append(int(entry.name))
        except OSError:
            continue  # ended meanwhile, or another user's
    return [pid for pid in found if pid != os.getpid()]


def end_leftovers(folder: Path, say: Callable[[str], None]) -> None:
    """End them by SIGTERM, after 10 s by SIGKILL, and return when they are gone."""
    pids = leftovers(folder)
    if not pids:
        return
    say(f"ending {len(pids)} process(es) of an earlier run of this folder: {', '.join(map(str, sorted(pids)))}")
    _send(pids, signal.SIGTERM)
    killed = False
    end = time.monotonic() + GRACE_S
    while pids := leftovers(folder):
        if not killed and time.monotonic() > end:
            _send(pids, signal.SIGKILL)
            killed = True
        time.sleep(0.05)


def _send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _is_zombie(entry: Path) -> bool:
    # The state is the word after the name, and the name may hold anything, even brackets.
    return (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
