"""Servers of the Java world for the tests: what a folder's ivy.xml names comes as the jars of the
service do, and must have the checksums of the folder's jars.sha256.

A test that finds none fetches them. `python -m tests.jars FOLDER` writes the checksums of what is
fetched now.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.jars import PATTERN, fetch_command
from tests.clients import FETCH_S, ROOT, NotFetched
from tests.java import sums_of


def fetched(folder: Path) -> Path:
    """The folder with the jars. Raises NotFetched."""
    sums = (folder / "jars.sha256").read_text()
    jars = ROOT / ".cache" / f"{folder.name}-{zlib.crc32((folder / 'ivy.xml').read_bytes() + sums.encode()):08x}"
    if not jars.is_dir():
        jars.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jars.parent) as part:
            got = _got(folder, Path(part))
            if sums_of(got) != sums:
                raise NotFetched(f"the jars of {folder.name} are not those of its jars.sha256")
            got.rename(jars)
    return jars


def _got(folder: Path, into: Path) -> Path:
    """Fetches, twice when it fails. Raises NotFetched."""
    said = ""
    for _ in range(2):
        try:
            command = fetch_command(folder / "ivy.xml", ROOT / ".cache", folder.name, into / "got" / PATTERN)
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
        except (StackError, subprocess.TimeoutExpired) as error:
            said = str(error)
            continue
        if done.returncode == 0:
            return into / "got"
        said = done.stdout.strip()[-300:]
    raise NotFetched(f"Ivy: {said}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory(dir=ROOT / ".cache") as part:
            (ROOT / name / "jars.sha256").write_text(sums_of(_got(ROOT / name, Path(part))))
