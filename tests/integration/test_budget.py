"""`make bench-quick` as a test: counts per hot verb stay within benchmarks/budget.json, and what is
over it is named.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.quick import budget
from tests.services import Services

ROOT = Path(__file__).parent.parent.parent


def test_hot_verbs_stay_within_the_budget(stack: Services) -> None:
    # A process of its own: other tests' threads and caches would be counted too.
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "benchmarks.quick",
        "--kafka",
        stack.bootstrap,
        "--redis",
        stack.redis_url,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.count("send 1,") == 2, done.stdout


def test_what_is_over_is_named_with_verb_budget_and_found() -> None:
    allowed = {"send": {"redis_commands": 1.0, "python_calls": 100.0}}
    assert budget.over(allowed, {"send": {"redis_commands": 2.0, "python_calls": 104.0}}) == [
        "send: redis_commands budget 1 (+0), found 2"
    ]
    assert budget.over(allowed, {"send": {"redis_commands": 1.0, "python_calls": 104.5}}) == [
        "send: python_calls budget 100 (+4), found 104.5"
    ]


def test_a_verb_that_is_not_measured_any_more_is_not_within_its_budget() -> None:
    assert budget.over({"send": {}, "ack": {}}, {"send": {}}) == ["ack: in the budget, but not measured"]
    assert budget.over({"send": {}}, {"send": {"loop_turns": 1.0}, "ack": {}}) == [
        "send: loop_turns is not in the budget, found 1",
        "ack: measured, but not in the budget",
    ]


def test_what_is_far_below_its_budget_is_told() -> None:
    assert budget.under({"send": {"python_calls": 100.0}}, {"send": {"python_calls": 95.0}}) == [
        "send: python_calls budget 100, found 95"
    ]
    assert budget.under({"send": {"python_calls": 100.0}}, {"send": {"python_calls": 97.0}}) == []
