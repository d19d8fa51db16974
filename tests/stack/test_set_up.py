"""`make up` sets up what running needs and no more: by make's own plan, and by a service that has
nothing else to import.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from facade.programs.stack.processes import jars
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.ports import free_port
from tests.conftest import absent

ROOT = Path(__file__).resolve().parents[2]
PLANNED = ["Makefile", "pyproject.toml", "requirements", "facade/programs/stack/processes/ivy.xml"]
PLANNED += ["tests/node.lock", "tests/browser/fetch.py", "tests/browser/axe.py", "tests/conformance"]
PLANNED += ["native/Cargo.toml", "native/Cargo.lock"]
SECONDS = 90


def plan(folder: Path, target: str) -> str:
    """What make would do for a target in a checkout where nothing was set up yet."""
    for name in PLANNED:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, place)
    environment = {**os.environ, "LW_JARS": str(folder / "jars")}
    return subprocess.run(
        ["make", "-n", target], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


def installed(text: str) -> set[str]:
    """Which locks of requirements/ a plan installs."""
    return set(re.findall(r"install .*-r requirements/(\w+)\.lock", text))


def test_up_installs_and_fetches_what_running_needs_alone(tmp_path: Path) -> None:
    found = plan(tmp_path, "up")

    assert installed(found) == {"run"}
    assert re.findall(r"leaseway jars (\w+)", found) == ["broker"]
    assert "tests." not in found


@pytest.mark.parametrize(
    ("target", "locks", "sets"), [("demo", {"run", "demo"}, ["broker"]), ("spark", {"run", "spark"}, ["spark"])]
)
def test_the_demo_and_spark_jobs_add_their_own(tmp_path: Path, target: str, locks: set[str], sets: list[str]) -> None:
    found = plan(tmp_path, target)

    assert installed(found) == locks
    assert re.findall(r"leaseway jars (\w+)", found) == sets
    assert "tests." not in found


@pytest.mark.parametrize("target", ["test", "lint", "types", "faults", "bench-quick"])
def test_what_developers_run_sets_up_all(tmp_path: Path, target: str) -> None:
    found = plan(tmp_path, target)

    assert installed(found) == {"run", "spark", "demo", "test"}
    assert set(re.findall(r"leaseway jars (\w+)", found)) == {"broker", "spark", "s3"}
    assert (
        "tests.clients" in found
        and "tests.node" in found
        and "tests.golang" in found
        and "tests.browser.fetch" in found
        and "tests.browser.axe" in found
    )


@pytest.fixture
def lean(tmp_path: Path) -> Path:
    """A Python that can import the packages of requirements/run.lock and no other: a virtual
    environment of links.
    """
    names = set(re.findall(r"^([a-z0-9.\-]+)==", (ROOT / "requirements" / "run.lock").read_text(), re.MULTILINE))
    folder = tmp_path / "lean"
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for distribution in importlib.metadata.distributions():
        if re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower() in names:
            for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
                if not (packages / top).exists():
                    (packages / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder / "bin" / "python"


def answered(endpoint: str, path: str, body: Any) -> Any:
    request = urllib.request.Request(
        f"{endpoint}/v1/queues{path}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


@pytest.fixture
def lean_up(programs: None, lean: Path, tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """The endpoint of `leaseway up` run by that Python, and the command that runs others of its
    subcommands.
    """
    command = [str(lean), "-m", "facade"]
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    up = [*command, "up", "--data", str(tmp_path / "data"), "--port", str(port)]
    with subprocess.Popen(up, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        said = []
        try:
            for line in process.stdout:
                said.append(line)
                if "ready after" in line:
                    break
            assert "ready after" in said[-1], said
            yield f"http://127.0.0.1:{port}", command
        finally:
            process.terminate()
            process.stdout.read()


def test_the_service_runs_with_the_packages_of_its_own_lock(lean_up: tuple[str, list[str]]) -> None:
    endpoint, command = lean_up
    answered(endpoint, "", {"name": "orders"})
    answered(endpoint, "/orders/messages", {"messages": [{"body": "hello"}]})
    (message,) = answered(endpoint, "/orders/receive", {"max": 1, "wait_seconds": 5})["messages"]

    assert answered(endpoint, "/orders/ack", {"handles": [message["handle"]]})["results"][0]["status"] == "ok"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for words, said in (
        (["sql", "SELECT 1"], "run `make spark`"),
        (["spark", "shell"], "run `make spark`"),
        (["demo", "--endpoint", endpoint], "run `make demo`"),
    ):
        done = subprocess.run(
            [*command, *words], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode != 0
        assert said in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.fixture
def without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark, which has an Ivy too, is not there."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "pyspark" else find(name, *rest)
    )


def test_ivy_is_fetched_once_when_there_is_no_pyspark(
    without_pyspark: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        jar = jars.ivy(tmp_path)
    except StackError as error:
        absent(str(error))
    monkeypatch.setattr("jgo.util.http.request", None)

    assert hashlib.sha256(jar.read_bytes()).hexdigest() == jars.IVY_SHA256
    assert jars.ivy(tmp_path) == jar


def test_an_ivy_that_is_not_the_pinned_one_is_refused_and_goes(without_pyspark: None, tmp_path: Path) -> None:
    jar = tmp_path / "org" / "apache" / "ivy" / "ivy" / jars.IVY_VERSION / f"ivy-{jars.IVY_VERSION}.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"something else")

    with pytest.raises(StackError, match="is not what it was: its SHA-256 is"):
        jars.ivy(tmp_path)
    assert not jar.exists()
