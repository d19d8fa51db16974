"""Fetches the pinned jars with the Ivy that pyspark ships.

Neighbours: `ivy.xml` beside it pins the versions; `programs` says where they go. It must not know what the jars are for, and
names no registry: Ivy's own public resolver is used, or the settings file in LW_IVY_SETTINGS (for a mirror).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from facade.stack.errors import StackError
from facade.stack.programs import find_java, jars_folder

IVY_FILE = Path(__file__).with_name("ivy.xml")
PATTERN = "[conf]/[artifact]-[revision](-[classifier]).[ext]"
TRIES = 2


def fetch(say: Callable[[str], None]) -> Path:
    """Make the jars folder hold exactly the jars of ivy.xml; nothing to do when it does already.

    Idempotent; not safe for two processes at once. Raises StackError when Ivy fails twice.
    """
    folder = jars_folder()
    stamp = folder / f".stamp-{hashlib.sha256(IVY_FILE.read_bytes()).hexdigest()[:16]}"
    if stamp.is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    log = folder.parent / "ivy.log"
    command = _command(folder)
    for attempt in range(1, TRIES + 1):
        say(f"fetching the jars of Kafka and Spark's connectors (about 63 MB) into {folder}")
        with log.open("wb") as output:
            status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
        if status == 0:
            stamp.touch()
            return folder
        say(f"try {attempt} of {TRIES} ended with status {status}")
    raise StackError(f"the jars could not be fetched; Ivy's words are in {log}")


def pinned_version(module: str) -> str:
    """The version of a module in ivy.xml. Raises KeyError when it is not there."""
    for dependency in ElementTree.parse(IVY_FILE).iter("dependency"):  # noqa: S314 - our own file
        if dependency.get("name") == module:
            return str(dependency.get("rev"))
    raise KeyError(module)


def _command(folder: Path) -> list[str]:
    command = [find_java(), "-jar", str(_ivy()), "-ivy", str(IVY_FILE), "-confs", "broker", "spark"]
    command += ["-types", "jar", "bundle", "-cache", str(folder.parent / "ivy")]
    if mirror := os.environ.get("LW_IVY_SETTINGS"):
        command += ["-settings", mirror]
    # -sync removes jars of older pins: two versions of one class on a class path are a riddle.
    return [*command, "-retrieve", str(folder / PATTERN), "-sync"]


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = [jar for place in places for jar in sorted(Path(place, "jars").glob("ivy-*.jar"))]
    if not found:
        raise StackError("Ivy is missing: no jars/ivy-*.jar in the pyspark package; install the locked requirements (`make setup`)")
    return found[-1]
