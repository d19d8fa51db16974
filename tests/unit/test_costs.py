"""The CPU of a process counts that of what it has started, while it runs and when it has ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.costs import spent_s

BURN_S = 0.3
BURN = f"""
import sys, time
while time.process_time() < {BURN_S}: pass
print(flush=True)
sys.stdin.read()
"""


def test_a_child_counts_while_it_runs_and_when_it_has_ended() -> None:
    before = spent_s(os.getpid())
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = spent_s(os.getpid())
        child.communicate()
    ended = spent_s(os.getpid())
    assert running - before >= BURN_S - 0.05
    assert ended >= running


def test_waiting_costs_nothing() -> None:
    before = spent_s(os.getpid())
    time.sleep(0.5)
    assert spent_s(os.getpid()) - before < 0.25
