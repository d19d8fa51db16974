"""What the workflows run is there, and every platform's wheel is tried before one is published."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from native.wheels import lock

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]


def runs(file: Path) -> str:
    """All commands of a workflow."""
    jobs = yaml.safe_load(file.read_text())["jobs"].values()
    return "\n".join(step["run"] for job in jobs for step in job["steps"] if "run" in step)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_a_workflow_runs_is_there(file: Path) -> None:
    commands = runs(file)
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"\bmake ([a-z-]+)", commands)) <= targets
    for name in re.findall(r"(?:[\w.-]+/)*(?:requirements|\.ci)/[\w.-]+", commands):
        assert name == "requirements/probe.lock" or (ROOT / name).exists(), name  # which the workflow writes
    for module in re.findall(r"python -m ([\w.]+)", commands):
        place = ROOT / module.replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").is_file(), module


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_workflow_may_read_the_repository_and_waits_for_nothing_for_ever(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text())

    assert workflow["permissions"] == {"contents": "read"}
    assert {name for name, job in workflow["jobs"].items() if "permissions" in job} <= {"publish"}
    assert all(job.get("timeout-minutes", 360) <= 120 for job in workflow["jobs"].values())
    assert not re.findall(r"https?://|secrets\.", file.read_text())


def test_ci_is_what_a_laptop_runs() -> None:
    assert "bash .ci/run" in runs(ROOT / ".github" / "workflows" / "ci.yml")


def test_every_platform_is_tried_before_the_wheels_are_published() -> None:
    tried = {
        one["platform"]: job["name"] for job in RELEASE.values() for one in job.get("strategy", {}).get("matrix", {}).get("include", [])
    }

    assert set(tried) == set(lock.TARGETS)
    needed = set(RELEASE["publish"]["needs"])
    assert {name for name, job in RELEASE.items() if "strategy" in job} == needed
    assert all(RELEASE[name]["needs"] == "wheels" for name in needed)
    assert RELEASE["publish"]["if"] == "github.event_name == 'push'"


def test_wheels_that_the_lock_does_not_have_are_not_published() -> None:
    (step,) = (step for step in RELEASE["wheels"]["steps"] if "git diff" in step.get("run", ""))

    assert step["run"] == "git diff --exit-code requirements/front.lock"
    assert "continue-on-error" not in step
