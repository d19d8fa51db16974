"""Fetches the pinned jars of Kafka, and of Spark's connectors, with Ivy.

Ivy is PySpark's where that is installed. Else jgo fetches it from Maven's public repository:
PySpark is 460 MB, and Ivy is all of it that `up` needs.

What was fetched must have the checksums of `jars.sha256`: a repository, a mirror or somebody on the
way can't give us other code.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.programs import find_java, jars_folder

IVY_FILE = Path(__file__).with_name("ivy.xml")
SUMS_FILE = Path(__file__).with_name("jars.sha256")
IVY_VERSION = "2.5.3"
IVY_SHA256 = "9502aa5aabf0b1484924a13ef4b5d24f121f7f91aab6768f11cc9d0906c0803b"
# What can be asked for: the configurations of ivy.xml.
SETS = {
    "broker": "the jars of Kafka (44 MB)",
    "spark": "the jars of Spark's connectors (80 MB)",
    "s3": "the jar with which Iceberg reads and writes S3 (70 MB)",
}
PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
TRIES = 2


def fetch(say: Callable[[str], None], sets: Sequence[str] = ("broker",), sums: Mapping[str, str] | None = None) -> Path:
    """Make the jars folder hold exactly the jars that ivy.xml has for these sets; nothing to do
    when it does already. `sums`: SHA-256 by `set/file`, None = those of SUMS_FILE.

    Idempotent; not safe for two processes at once. Raises StackError when Ivy fails twice, or a jar
    is not what it was.
    """
    folder = jars_folder()
    known = pinned_sums() if sums is None else sums
    for name in sets:
        stamp = folder / f".stamp-{name}-{hashlib.sha256(IVY_FILE.read_bytes()).hexdigest()[:16]}"
        if not stamp.is_file():
            (folder / name).mkdir(parents=True, exist_ok=True)
            _fetch(say, folder, name)
            check(folder, name, known)
            stamp.touch()
    return folder


def _fetch(say: Callable[[str], None], folder: Path, name: str) -> None:
    log = folder.parent / "ivy.log"
    command = _command(folder, name)
    for attempt in range(1, TRIES + 1):
        say(f"fetching {SETS[name]} into {folder / name}")
        with log.open("wb") as output:
            status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
        if status == 0:
            return
        say(f"try {attempt} of {TRIES} ended with status {status}")
    raise StackError(f"the jars could not be fetched; Ivy's words are in {log}")


def pin(say: Callable[[str], None]) -> None:
    """Fetches what ivy.xml has, unchecked, and writes its sums to SUMS_FILE; for `make lock`."""
    folder = jars_folder()
    lines: list[str] = []
    for name in SETS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        _fetch(say, folder, name)
        jars = sorted((folder / name).glob("*.jar"))
        lines += [f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {name}/{jar.name}\n" for jar in jars]
    SUMS_FILE.write_text("".join(lines))


def pinned_sums() -> dict[str, str]:
    """SHA-256 of each jar by `set/file`, as `sha256sum` prints them."""
    return {name: digest for digest, name in (line.split() for line in SUMS_FILE.read_text().splitlines())}


def archive_of(name: str, java: str, *folders: Path) -> Path:
    """Where the class archive of a JVM that has the jars of these folders is, or would be: each
    Java and each set of jars has one of its own.
    """
    real = Path(java).resolve()
    jars = [
        part for folder in folders for part in (folder.resolve(), *sorted(jar.name for jar in folder.glob("*.jar")))
    ]
    parts = [real, real.stat().st_size, *jars]
    return jars_folder() / f"{name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}.jsa"


def keep_archive(file: Path, what: str, size: str, make: Callable[[Path], None], say: Callable[[str], None]) -> None:
    """Has `make` write a class archive when there is none. A failure is said, and harms nobody: the
    JVM takes longer to start. `what`: whose archive it is.
    """
    if file.exists():
        return
    say(f"starting {what} once, to make its class archive ({size}): later starts take less time")
    try:
        # In the same folder, so that it comes to its place whole.
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            made = Path(folder) / "classes.jsa"
            make(made)
            made.replace(file)
    except (StackError, OSError, subprocess.SubprocessError) as error:
        say(f"the class archive of {what} is not made ({error}): it takes longer to start")


def check(folder: Path, name: str, sums: Mapping[str, str]) -> None:
    """Raises StackError unless the jars of a set are those of `sums`, no more and no fewer. A jar
    that is another one is deleted, so that nothing runs it.
    """
    jars = {f"{name}/{jar.name}": jar for jar in sorted((folder / name).glob("*.jar"))}
    for place, jar in jars.items():
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        if digest != sums.get(place):
            jar.unlink()
            raise StackError(
                f"{place} is not what it was: its SHA-256 is {digest}, expected {sums.get(place, 'no such jar')}"
            )
    if missing := [place for place in sums if place.startswith(f"{name}/") and place not in jars]:
        raise StackError(f"these jars were not fetched: {', '.join(missing)}")


def pinned_version(module: str) -> str:
    """The version of a module in ivy.xml. Raises KeyError when it is not there."""
    for dependency in ElementTree.parse(IVY_FILE).iter("dependency"):  # noqa: S314 - our own file
        if dependency.get("name") == module:
            return str(dependency.get("rev"))
    raise KeyError(module)


def _command(folder: Path, name: str) -> list[str]:
    # -sync removes jars of older pins: two versions of one class on a class path are a riddle.
    return [*fetch_command(IVY_FILE, folder.parent, name, folder / name / PATTERN), "-sync"]


def fetch_command(file: Path, cache: Path, name: str, places: Path) -> list[str]:
    """The command with which Ivy fetches the jars of a configuration of an ivy.xml to `places`, a
    pattern. Raises StackError: no Java, no Ivy.
    """
    command = [find_java(), "-jar", str(ivy(cache / "maven")), "-ivy", str(file), "-confs", name]
    command += ["-types", "jar", "bundle", "-cache", str(cache / "ivy")]
    if mirror := os.environ.get("LW_IVY_SETTINGS"):
        command += ["-settings", mirror]
    return [*command, "-retrieve", str(places)]


def ivy(cache: Path) -> Path:
    """Ivy's jar: the one in PySpark, else the one in `cache`, fetched when it is not there. Raises
    StackError.
    """
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = [jar for place in places for jar in sorted(Path(place, "jars").glob("ivy-*.jar"))]
    if found:
        return found[-1]
    from jgo.maven import MavenContext  # a tenth of a second, needed here only

    artifact = MavenContext(repo_cache=cache).project("org.apache.ivy", "ivy").at_version(IVY_VERSION).artifact()
    try:
        jar = Path(artifact.resolve())
    except Exception as error:
        raise StackError(f"Ivy {IVY_VERSION}, which fetches the jars, could not be fetched: {error}") from None
    digest = hashlib.sha256(jar.read_bytes()).hexdigest()
    if digest != IVY_SHA256:
        jar.unlink()
        raise StackError(
            f"Ivy {IVY_VERSION} is not what it was: its SHA-256 is {digest}, expected {IVY_SHA256}; try again"
        )
    return jar
