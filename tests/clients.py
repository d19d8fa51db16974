"""Clients of other services that the tests run as they come from their registry, each in a folder
of its own.

They can't live in .venv: they need other versions of what is there. A lock file with hashes says
what a folder holds, and the folder's name has the lock's check sum. `python -m tests.clients LOCK
...` fetches (make setup does), and LOCK:PACKAGE the source of a package of a lock, with the tests
that its authors wrote; a test that finds a folder missing fetches it too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
FETCH_S = 240


class NotFetched(Exception):
    """The registry did not give what the lock names."""


def fetched(lock: Path) -> Path:
    """The folder with what `lock` names, for PYTHONPATH; fetched when it is not there. Raises
    NotFetched.
    """
    folder = ROOT / ".cache" / f"{lock.stem}-{zlib.crc32(lock.read_bytes()):08x}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as part:
        _pip("install", "--no-deps", "--require-hashes", "-t", f"{part}/got", "-r", str(lock))
        Path(part, "got").rename(folder)
    return folder


def source(lock: Path, package: str) -> Path:
    """The folder with the source of a package, at the version and hash that `lock` has for it.
    Raises NotFetched.
    """
    found = re.search(rf"^{package}==(?:.*\\\n)*.*\n", lock.read_text(), re.MULTILINE)
    assert found is not None, f"{lock} does not name {package}"
    folder = ROOT / ".cache" / f"{package}-source-{zlib.crc32(found[0].encode()):08x}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as part:
        only = Path(part, "lock")
        only.write_text(found[0])
        # pip asks the source for its name before it keeps it; setuptools is in .venv.
        build = ("--no-binary", ":all:", "--no-build-isolation")
        _pip("download", "--no-deps", *build, "--require-hashes", "-d", part, "-r", str(only))
        (archive,) = Path(part).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extraction_filter = getattr(
                tarfile, "data_filter", None
            )  # in Python 3.11 since 3.11.4; the hash is right
            packed.extractall(part)
        (unpacked,) = Path(part).glob(f"{package}-*/")
        unpacked.rename(folder)
    return folder


def _pip(verb: str, *words: str) -> None:
    """Runs pip, twice when it fails. Raises NotFetched."""
    command = [sys.executable, "-m", "pip", verb, "-q", "--disable-pip-version-check", *words]
    for _ in range(2):
        said = _failure(command)
        if said is None:
            return
    raise NotFetched(f"pip could not {verb} {words[-1]}: {said}")


def _failure(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
    except subprocess.TimeoutExpired as error:
        return str(error)
    return done.stderr.strip()[-300:] if done.returncode else None


def environment(folder: Path) -> dict[str, str]:
    """Variables under which Python finds the folder's packages before those of .venv."""
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        lock, _, package = name.partition(":")
        if package:
            source(ROOT / lock, package)
        else:
            fetched(ROOT / lock)
