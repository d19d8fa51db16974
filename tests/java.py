"""Programs of the Java world for the tests: the jars that a folder's pom.xml names come from
Maven's public repository, and must have the checksums of its jars.sha256.

A test that finds none fetches them. Maven is in no package registry, so a machine without it skips
these tests, in CI too.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import zlib
from pathlib import Path

from tests.clients import FETCH_S, ROOT, NotFetched

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.11.0:copy-dependencies"


class NoMaven(Exception):
    """There is no Maven here, or no Java compiler."""


def classpath(folder: Path) -> str:
    """The class path of what a folder's pom.xml names. Raises NoMaven, NotFetched."""
    if shutil.which("javac") is None:
        raise NoMaven("no Java compiler here")
    sums = (folder / "jars.sha256").read_text()
    jars = (
        ROOT / ".cache" / f"jars-of-{folder.name}-{zlib.crc32((folder / 'pom.xml').read_bytes() + sums.encode()):08x}"
    )
    if not jars.is_dir():
        jars.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=jars.parent) as part:
            _fetch(folder, Path(part, "got"))
            if sums_of(Path(part, "got")) != sums:
                raise NotFetched(f"the jars of {folder.name} are not those of its jars.sha256")
            Path(part, "got").rename(jars)
    return f"{jars}/*"


def sums_of(jars: Path) -> str:
    """What jars.sha256 has of jars that were fetched."""
    return "".join(f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n" for jar in sorted(jars.iterdir()))


def _fetch(folder: Path, into: Path) -> None:
    program = shutil.which("mvn")
    if program is None:
        raise NoMaven("no Maven here")
    command = [program, "-q", "-B", "-f", str(folder / "pom.xml"), PLUGIN, f"-DoutputDirectory={into}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
    if done.returncode:
        raise NotFetched(f"mvn: {done.stdout.strip()[-500:]}")
