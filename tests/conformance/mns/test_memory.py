"""A flood of bodies that expand, nest and are too large leaves the worker's memory as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.conftest import Running
from tests.conformance.mns.raw import Raw
from tests.services import Up
from tests.unit.mns.test_hostile import BAD, body_of

ROUNDS = 4
GROWTH_MB = 60


def resident_mb(pid: int, field: str = "VmRSS") -> float:
    """Memory of a process, or the most that it has had (VmHWM)."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def test_hostile_bodies_leave_memory_flat(up: Up | Running, raw: Raw, queue: str) -> None:
    if not isinstance(up, Up) or not Path("/proc/self/status").exists():
        pytest.skip("the memory of a service that somebody else has started is not known")
    (worker,) = up.run["facades"]
    raw.send(queue, "x")
    before = resident_mb(worker["pid"])
    answers = [
        raw.ask("POST", f"/queues/{queue}/messages", body_of(name)).status for _ in range(ROUNDS) for name in BAD
    ]
    after, most = resident_mb(worker["pid"]), resident_mb(worker["pid"], "VmHWM")
    print(f"{before:.0f} MB before, {after:.0f} MB after, {most:.0f} MB at most, {len(answers)} bodies")

    assert set(answers) == {400}
    assert raw.done("GET", f"/queues/{queue}").text("ActiveMessages") == "1"
    assert after - before < GROWTH_MB
    assert most - before < 2 * GROWTH_MB
