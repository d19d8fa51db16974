"""Sets the wall clock of single processes while they run, by a small library that is preloaded into
them (`set_clock.c`). It needs a C compiler, which not every machine has.
"""

from __future__ import annotations

import importlib.util
import mmap
import shutil
import struct
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


class NoCompilerError(Exception):
    """There is nothing that makes the library; the text says what was looked for."""


def compiler() -> tuple[str, ...]:
    """Returns the command of a C compiler. Raises NoCompilerError."""
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise NoCompilerError("no cc, gcc, clang or ziglang: the clock of a process can't be set")


def built(folder: Path) -> Path:
    """Builds the library into a folder. Raises NoCompilerError."""
    if sys.platform != "linux":
        raise NoCompilerError("LD_PRELOAD is Linux'")
    library = folder / "set_clock.so"
    command = (*compiler(), "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoCompilerError(f"{command[0]} has failed: {done.stderr[-500:]}")
    return library


class SetClock:
    """The wall clock of the processes that get its `environment`."""

    def __init__(self, library: Path, file: Path) -> None:
        file.write_bytes(bytes(8))
        self.environment = {"LD_PRELOAD": str(library), "LEASEWAY_TEST_CLOCK": str(file)}
        with file.open("r+b") as opened:
            self._ahead = mmap.mmap(opened.fileno(), 8)

    def step(self, seconds: float) -> None:
        """Sets it, to so much ahead of that of the machine."""
        struct.pack_into("=q", self._ahead, 0, int(seconds * 1e9))
