"""A prebuilt library of the native front: real pip takes a real wheel for a checkout without cargo,
or does not, and the set-up goes on.

The wheel is made of the library that is here, so that no other toolchain is needed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from facade.http.sockets.library import BUILT
from native.wheels import lock
from native.wheels.lock import Lock
from native.wheels.wheel import pack

NEEDED = ("pip", "msgspec", "setuptools")
COPIED = [
    "facade/__init__.py",
    "facade/http/__init__.py",
    *(f"facade/http/sockets/{name}.py" for name in ("__init__", "answers", "library")),
]
PLATFORM = sysconfig.get_platform().replace("-", "_")
PYTHON_READS = "workers read sockets in Python"


@dataclass
class Checkout:
    """One without cargo and without a built library, with a Python of its own."""

    root: Path
    python: Path
    wheels: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.root}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(self.root), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=120, check=False)

    def set_up(self, cargo: str = "") -> list[str]:
        """The lines of make's rule for the native front, which must not fail."""
        done = self.run("make", f"CARGO={cargo}", f"BIN={self.python.parent}", "RUN_STAMP=requirements/run.lock", "native")
        assert done.returncode == 0, done.stderr
        return [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("setup: ")]

    def probe(self) -> str:
        """What serves a request here, or why nothing does."""
        return self.run(str(self.python), "-m", "native.wheels.probe").stdout

    def pin(self, wheel: bytes) -> None:
        """Have the lock name this wheel of these sources."""
        name = lock.wheel_name(lock.version(), PLATFORM)
        known = Lock(lock.version(), lock.sources(self.root), {name: hashlib.sha256(wheel).hexdigest()})
        lock.path(self.root).write_text(lock.render(known))

    def offer(self, wheel: bytes) -> None:
        """Lay it where pip looks."""
        (self.wheels / lock.wheel_name(lock.version(), PLATFORM)).write_bytes(wheel)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "checkout"
    (root / "requirements").mkdir(parents=True)
    shutil.copy(lock.ROOT / "Makefile", root)
    shutil.copytree(lock.ROOT / "native", root / "native", ignore=shutil.ignore_patterns("target", "__pycache__"))
    for name in COPIED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(lock.ROOT / name, root / name)
    (root / "requirements" / "run.lock").touch()
    lock.path(root).write_text(lock.render(Lock("", lock.sources(root), {})))
    folder = tmp_path / "python"
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name in NEEDED:
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            (packages / top).symlink_to(Path(str(distribution.locate_file(top))))
    (tmp_path / "wheels").mkdir()
    return Checkout(root, folder / "bin" / "python", tmp_path / "wheels")


@pytest.fixture(scope="module")
def wheel(library: None) -> bytes:
    if not BUILT.exists():
        pytest.skip("the library here was not built here")
    return pack(BUILT.read_bytes(), lock.version(), PLATFORM, {})


def test_the_wheel_that_the_lock_names_is_installed_and_serves(checkout: Checkout, wheel: bytes) -> None:
    assert "libleaseway_front.so is not there" in checkout.probe()
    checkout.pin(wheel)
    checkout.offer(wheel)

    assert checkout.set_up() == ["setup: the native front, prebuilt"]
    assert checkout.probe() == f"probe: prebuilt {lock.version()}: a request was served\n"
    assert checkout.set_up() == [], "there is nothing left to do"


def test_another_wheel_of_its_name_is_refused(checkout: Checkout, wheel: bytes) -> None:
    checkout.pin(wheel)
    checkout.offer(pack(b"not the library", lock.version(), PLATFORM, {}))

    (line,) = checkout.set_up()
    assert "REFUSED" in line and "checksum" in line and PYTHON_READS in line
    assert "is not there" in checkout.probe()


def test_without_a_wheel_one_line_says_that_python_reads(checkout: Checkout, wheel: bytes) -> None:
    checkout.pin(wheel)

    (line,) = checkout.set_up()
    assert "No matching distribution" in line and PYTHON_READS in line
    checkout.offer(wheel)
    assert checkout.set_up() == ["setup: the native front, prebuilt"], "the next set-up tries again"


def test_a_wheel_of_other_sources_is_not_taken_and_an_old_one_goes(checkout: Checkout, wheel: bytes) -> None:
    checkout.pin(wheel)
    checkout.offer(wheel)
    assert checkout.set_up() == ["setup: the native front, prebuilt"]
    with (checkout.root / "native" / "src" / "lib.rs").open("a") as source:
        source.write("// other\n")

    (line,) = checkout.set_up()
    assert "native/ has changed since they were built" in line and PYTHON_READS in line
    assert "is not there" in checkout.probe()


def test_a_cargo_that_cannot_build_it_leaves_the_wheel(checkout: Checkout, wheel: bytes) -> None:
    checkout.pin(wheel)
    checkout.offer(wheel)
    cargo = checkout.root / "cargo"
    cargo.write_text('#!/bin/sh\n[ "$1" != build ]\n')
    cargo.chmod(0o755)

    assert checkout.set_up(cargo="cargo") == ["setup: the native front", "setup: the native front, prebuilt"]
    assert "prebuilt" in checkout.probe()


def test_a_lock_without_wheels_asks_no_index(checkout: Checkout) -> None:
    (line,) = checkout.set_up()
    assert "none was built yet" in line and PYTHON_READS in line


def test_what_was_built_here_comes_first_and_one_that_cannot_be_loaded_last(checkout: Checkout, wheel: bytes) -> None:
    checkout.pin(wheel)
    checkout.offer(wheel)
    checkout.set_up()
    built = checkout.root / BUILT.relative_to(lock.ROOT)
    built.parent.mkdir(parents=True)

    built.write_bytes(b"of another machine")
    assert "prebuilt" in checkout.probe()
    shutil.copy(BUILT, built)
    assert checkout.probe() == "probe: built here: a request was served\n"
