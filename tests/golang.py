"""Programs of the Go world for the tests, from the Go module proxy and by hash: go.mod and go.sum
say which modules.

`python -m tests.golang FOLDER ...` builds the test program of each module (make setup does); a test
that finds none builds it too. Go itself is in no package registry, so a machine without it skips
these tests, in CI too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from tests.clients import ROOT, NotFetched

BUILD_S = 480  # two busy cores compile the SDK in a minute


class NoGo(Exception):
    """There is no Go here, or one that is too old for the module."""


def go(folder: Path) -> str:
    """The program `go`, new enough for a folder's module. Raises NoGo."""
    program = shutil.which("go")
    if program is None:
        raise NoGo("no Go toolchain here")
    wanted = re.search(r"^go (\S+)$", (folder / "go.mod").read_text(), re.MULTILINE)
    has = subprocess.run(
        [program, "env", "GOVERSION"], capture_output=True, text=True, check=True, env=_environment()
    ).stdout
    if wanted is None or _numbers(has) < _numbers(wanted[1]):
        raise NoGo(f"{has.strip()} is older than {folder.name}/go.mod asks for")
    return program


def built(folder: Path) -> Path:
    """The compiled tests of a folder's module. Raises NoGo, NotFetched."""
    parts = sorted(path for path in folder.iterdir() if path.is_file())
    total = zlib.crc32(b"".join(path.read_bytes() for path in parts))
    binary = ROOT / ".cache" / f"{folder.name}-{total:08x}"
    if binary.is_file():
        return binary
    program = go(folder)
    binary.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=binary.parent) as part:
        command = [program, "test", "-mod=readonly", "-c", "-o", f"{part}/built", "."]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=BUILD_S, check=False, env=_environment()
        )
        if done.returncode:
            raise NotFetched(f"go could not build {folder.name}: {done.stderr.strip()[-1000:]}")
        Path(part, "built").rename(binary)
    return binary


def _environment() -> dict[str, str]:
    # A toolchain that go would fetch for itself is none of the modules that go.sum names.
    return {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


if __name__ == "__main__":
    for one in sys.argv[1:]:
        try:
            built(ROOT / one)
        except NoGo as error:
            print(f"{one}: {error}")
