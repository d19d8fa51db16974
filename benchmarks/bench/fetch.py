"""Gets what the peers need: ElasticMQ's jars through Ivy, RabbitMQ from Debian's packages, the load
generator by `go build`. Everything goes under .cache/bench and has its hash in this folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zlib
from pathlib import Path

from facade.programs.stack.processes import jars
from facade.programs.stack.processes.programs import find_java

HERE = Path(__file__).parent
PEERS = HERE / "peers"
CACHE = HERE.parent.parent / ".cache" / "bench"
PATIENCE_S = 900


class Absent(Exception):
    """Something can't be had here; the text says what and why."""


def _run(what: str, *command: str, folder: Path | None = None, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=folder, env=environment
    )
    if done.returncode != 0:
        raise Absent(f"{what}: {(done.stderr or done.stdout).strip()[-300:]}")


def load_generator(tag: str = "") -> Path:
    """Returns the built load generator; `tag` "amqp" is the one that speaks to RabbitMQ. Raises
    Absent when there is no Go.
    """
    go = shutil.which("go")
    if go is None:
        raise Absent("the load generator is a Go program (benchmarks/loadgen), and there is no `go` in PATH")
    CACHE.mkdir(parents=True, exist_ok=True)
    target = CACHE / f"loadgen{tag and '-' + tag}"
    # No toolchain is downloaded: what is here builds it, or says why not.
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    options = ("-tags", tag) if tag else ()
    _run(
        "go build",
        go,
        "build",
        *options,
        "-o",
        str(target),
        ".",
        folder=HERE.parent / "loadgen",
        environment=environment,
    )
    return target


def jars_of(peer: str) -> Path:
    """Returns the folder with the jars of peers/<peer>.xml; fetched when missing. Raises Absent."""
    ivy, sums = PEERS / f"{peer}.xml", PEERS / f"{peer}.sha256"
    folder = CACHE / f"{peer}-{zlib.crc32(ivy.read_bytes()):08x}"
    if not (folder / ".complete").exists():
        pattern = str(folder / "[artifact]-[revision](-[classifier]).[ext]")
        command = [find_java(), "-jar", str(jars.ivy(CACHE / "maven")), "-ivy", str(ivy), "-confs", peer]
        command += ["-types", "jar", "bundle", "-cache", str(CACHE / "ivy"), "-retrieve", pattern, "-sync"]
        if mirror := os.environ.get("LW_IVY_SETTINGS"):
            command += ["-settings", mirror]
        _run(f"{peer}'s jars", *command)
        _check(folder, sums)
        (folder / ".complete").touch()
    return folder


def debian_of(peer: str) -> Path:
    """Returns a folder into which Debian's packages of peers/<peer>.sha256 are unpacked, nothing of
    the machine changed; fetched when missing. Raises Absent.
    """
    sums = PEERS / f"{peer}.sha256"
    folder = CACHE / f"{peer}-{zlib.crc32(sums.read_bytes()):08x}"
    if not (folder / ".complete").exists():
        packages = folder / "packages"
        shutil.rmtree(folder, ignore_errors=True)
        packages.mkdir(parents=True)
        if shutil.which("apt-get") is None:
            raise Absent(f"{peer} is fetched by apt-get, and there is none")
        names = [line.split()[1].split("_")[0] for line in sums.read_text().splitlines()]
        _run(f"{peer}'s packages", "apt-get", "download", "-q", *names, folder=packages)
        _check(packages, sums)
        for package in sorted(packages.iterdir()):
            _run(package.name, "dpkg-deb", "-x", str(package), str(folder))
        (folder / ".complete").touch()
    return folder


def _check(folder: Path, sums: Path) -> None:
    """Raises Absent unless the files of a folder are those of `sums`, no more and no fewer."""
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.is_file()}
    wanted = {name: digest for digest, name in (line.split() for line in sums.read_text().splitlines())}
    if found != wanted:
        other = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        raise Absent(f"{', '.join(other)}: not what {sums.name} says; was it replaced by a newer version?")
