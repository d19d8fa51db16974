"""Stops a process where it is."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

STOPPED_S = 30.0


def stand_still(pid: int) -> None:
    """SIGSTOP, until it has come: a process goes on until one of its threads has been given
    processor time to take the signal, and answers meanwhile.
    """
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + STOPPED_S
    while not _stands(pid):
        assert time.monotonic() < end, f"process {pid} does not stop"
        time.sleep(0.001)


def _stands(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.is_dir():  # Another system than Linux, which does not say it so.
        return True
    return all(_state(task) in "TtZX" for task in tasks.iterdir())


def _state(task: Path) -> str:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"  # The thread has ended.
