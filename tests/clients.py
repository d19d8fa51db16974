"""Clients of other services that the tests run as they come from their registry, each in a folder of its own.

They can't live in .venv: they need other versions of what is there. A lock file with hashes says what a folder holds, and the
folder's name has the lock's check sum. `python -m tests.clients LOCK ...` fetches (make setup does); a test that finds a folder
missing fetches it too. Neighbours: `conftest.absent` says what becomes of a test whose client can't be had.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).parent.parent
FETCH_S = 240


class NotFetched(Exception):
    """The registry did not give what the lock names."""


def fetched(lock: Path) -> Path:
    """The folder with what `lock` names, for PYTHONPATH; fetched when it is not there. Raises NotFetched."""
    folder = ROOT / ".cache" / f"{lock.stem}-{zlib.crc32(lock.read_bytes()):08x}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as part:
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
        for last in (False, True):
            done = subprocess.run(
                [*command, "-t", f"{part}/got", "-r", str(lock)], capture_output=True, text=True, timeout=FETCH_S, check=False
            )
            if done.returncode == 0:
                Path(part, "got").rename(folder)
                return folder
            if last:
                raise NotFetched(f"pip could not fetch {lock.name}: {done.stderr.strip()[-300:]}")
    raise AssertionError


def environment(folder: Path) -> dict[str, str]:
    """Variables under which Python finds the folder's packages before those of .venv."""
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        fetched(ROOT / name)
