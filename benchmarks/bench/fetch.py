"""Gets what the peers need: Python packages into venvs of their own, ElasticMQ's jars through Ivy,
the load generator by `go build`.

Everything goes under .cache and is pinned: locks with hashes, an ivy.xml. Neighbours: `servers`
starts what is here, `generator` runs the load generator. It must not know how anything is measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zlib
from pathlib import Path

from facade.stack.processes import jars
from facade.stack.processes.programs import find_java

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".cache" / "bench"
PATIENCE_S = 900


class Absent(Exception):
    """Something can't be had here; the text says what and why."""


def _run(what: str, *command: str, folder: Path | None = None, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=folder, env=environment)
    if done.returncode != 0:
        raise Absent(f"{what}: {(done.stderr or done.stdout).strip()[-300:]}")


def load_generator() -> Path:
    """The built load generator. Raises Absent when there is no Go."""
    go = shutil.which("go")
    if go is None:
        raise Absent("the load generator is a Go program (benchmarks/loadgen), and there is no `go` in PATH: install Go 1.22 or newer")
    CACHE.mkdir(parents=True, exist_ok=True)
    target = CACHE / "loadgen"
    # No toolchain is downloaded: what is here builds it, or says why not.
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    _run("go build", go, "build", "-o", str(target), ".", folder=HERE.parent / "loadgen", environment=environment)
    return target


def python_of(peer: str) -> Path:
    """The interpreter of a venv that holds what peers/<peer>.lock names; made when missing. Raises
    Absent.
    """
    lock = HERE / "peers" / f"{peer}.lock"
    folder = CACHE / f"{peer}-{zlib.crc32(lock.read_bytes()):08x}"
    python, stamp = folder / "bin" / "python", folder / ".complete"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        options = ("-q", "--disable-pip-version-check", "--no-deps", "--require-hashes")
        _run(f"pip install {peer}", str(python), "-m", "pip", "install", *options, "-r", str(lock))
        stamp.touch()
    return python


def elasticmq_class_path() -> str:
    """The class path of ElasticMQ; fetched when missing. Raises Absent."""
    ivy = HERE / "peers" / "ivy.xml"
    folder = CACHE / f"elasticmq-{zlib.crc32(ivy.read_bytes()):08x}"
    if not (folder / ".complete").exists():
        pattern = str(folder / "[artifact]-[revision](-[classifier]).[ext]")
        command = [find_java(), "-jar", str(jars.ivy(CACHE / "maven")), "-ivy", str(ivy), "-confs", "elasticmq"]
        command += ["-types", "jar", "bundle", "-cache", str(CACHE / "ivy"), "-retrieve", pattern, "-sync"]
        if mirror := os.environ.get("LW_IVY_SETTINGS"):
            command += ["-settings", mirror]
        _run("ElasticMQ's jars", *command)
        (folder / ".complete").touch()
    return f"{folder}/*"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(python_of(name))
