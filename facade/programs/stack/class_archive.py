"""The class archive of Kafka: its classes as the JVM has them once they are loaded and verified, so
that a start maps a file in place of doing that work again (the JDK calls it AppCDS).

`leaseway jars` makes it beside the jars; the broker uses it where it is. It saves a quarter of the
processor time of a start, and changes nothing else: without it, or with one of another Java or of
other jars, Kafka starts as before.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from facade.programs.stack import broker
from facade.programs.stack.data.folder import DataFolder
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.jars import keep_archive
from facade.programs.stack.processes.programs import find_java

# A machine that has far more to do than it can needs minutes.
READY_S = 600.0
STOP_S = 600.0


def make(say: Callable[[str], None]) -> None:
    """Makes the archive when it is not there: starts a broker in a folder of its own and stops it.
    A failure is said, and harms nobody. Raises StackError when Java is missing.
    """
    keep_archive(broker.class_archive(find_java()), "Kafka", "50 MB", _start_and_stop, say)


def _start_and_stop(archive: Path) -> None:
    """Raises StackError, OSError, TimeoutExpired."""
    path = archive.with_name("data")
    path.mkdir()
    folder = DataFolder.open(path)
    try:
        program = broker.program(folder, dict(os.environ))
        java, *rest = program.command
        process = subprocess.Popen(
            [java, f"-XX:ArchiveClassesAtExit={archive}", *rest], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            end = time.monotonic() + READY_S
            while not asyncio.run(broker.answers(folder.identity.service_port)):
                if process.poll() is not None or time.monotonic() > end:
                    raise StackError("Kafka did not start")
                time.sleep(0.1)
            process.terminate()
            process.wait(STOP_S)
        finally:
            process.kill()
            process.wait()
    finally:
        folder.close()
