"""The bench protocol in seconds: one cell, one round, real parts. The rate is nobody's concern."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="the load generator is a Go program")


def test_the_book_of_the_generator_finds_what_is_lost_doubled_and_out_of_order() -> None:
    done = subprocess.run(
        ["go", "test", "."],
        cwd=ROOT / "benchmarks" / "loadgen",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cell_is_measured_with_a_book_and_cpu_by_process(tmp_path: Path) -> None:
    page, runs = tmp_path / "page.md", tmp_path / "runs.json"
    command = [sys.executable, "-m", "benchmarks.bench", "--sides", "leaseway", "--cells", "10x8", "--rounds", "1"]
    command += ["--seconds", "0.5", "--warm-ups", "0", "--out", str(page), "--json", str(runs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (*_, run) = json.loads(runs.read_text())
    assert (run["side"], run["cell"], run["lost"], run["fault"]) == ("leaseway", "10x8", 0, "")
    assert run["rate"] > 0 and run["generator_us"] > 0
    assert {"kafka", "redis", "worker"} <= {name for name, spent in run["cpu_us"].items() if spent > 0}
    assert "| 10x8 | leaseway |" in page.read_text()
