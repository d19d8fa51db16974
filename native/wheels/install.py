"""Has pip install the prebuilt library of this platform, as requirements/front.lock pins it.

From whatever index or folder pip is set up with. Whatever is in the way, workers then read sockets
in Python, and one line says so: this stops nobody.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from native.wheels import lock

# An index that does not answer must not stop a set-up for long: the library is only faster.
_PIP: Final = ("-q", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--retries", "1", "--timeout", "20")
_OTHER: Final = "DO NOT MATCH THE HASHES"


def install(say: Callable[[str], None], root: Path = lock.ROOT, options: Sequence[str] = ()) -> bool:
    """Whether the prebuilt library is installed now; says which, or why not, in one line. One of
    other sources is removed. `options` are for pip. Raises nothing.
    """
    if why := _missing(root, options):
        _remove()
        say(f"setup: no prebuilt native front ({why}); workers read sockets in Python")
        return False
    say("setup: the native front, prebuilt")
    return True


def _missing(root: Path, options: Sequence[str]) -> str:
    """Why there is none; empty when it is installed."""
    try:
        known = lock.read(root)
    except (OSError, ValueError) as error:
        return str(error)
    if not known.sums:
        return "none was built yet"
    if lock.is_stale(known, root):
        return "native/ has changed since they were built"
    done = _pip("install", *_PIP, *options, "-r", str(lock.path(root)))
    if done.returncode == 0:
        return ""
    if _OTHER in done.stderr:
        return "REFUSED: the one that pip found does not have the checksum of requirements/front.lock"
    errors = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
    return f"pip: {errors[-1] if errors else f'status {done.returncode}'}"


def _remove() -> None:
    """An older one must not be taken for that of these sources."""
    try:
        importlib.metadata.distribution(lock.NAME)
    except importlib.metadata.PackageNotFoundError:
        return
    _pip("uninstall", "-q", "-y", lock.NAME)


def _pip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
