"""What the workflows run is there, and the library is tried before a release is published."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
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
        assert (ROOT / name).exists(), name
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


def test_the_library_is_tried_before_a_release_is_published() -> None:
    assert RELEASE["publish"]["needs"] == "front"
    assert RELEASE["publish"]["if"] == "github.event_name == 'push'"
    assert len(RELEASE["front"]["strategy"]["matrix"]["runner"]) == 2
