"""A `leaseway up` of the demo's own: in a temporary folder, on a free port, gone when the demo
ends.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from facade.programs.demo.client import Client
from facade.programs.demo.errors import DemoError

# `leaseway up` has bounds of its own.
READY_S = 900.0
STOP_S = 60.0


@contextlib.contextmanager
def own_stack() -> Iterator[str]:
    """Starts it and gives its endpoint; stops it at the end. Raises DemoError when it doesn't get
    ready.
    """
    with tempfile.TemporaryDirectory(prefix="leaseway-demo-", ignore_cleanup_errors=True) as folder:
        data, log = Path(folder) / "data", Path(folder) / "up.log"
        command = [
            sys.executable,
            "-m",
            "facade",
            "up",
            "--data",
            str(data),
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--auth",
            "open",
        ]
        command += ["--no-console"]
        with log.open("wb") as output:
            # A group of its own: Ctrl-C is for the demo, which then stops the stack, once.
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0)
        try:
            yield _endpoint_when_ready(process, data / "run.json", log)
        finally:
            try:
                _stop(process)
            except BaseException:
                _stop(process)  # a signal came meanwhile; from now on they are ignored
                raise


def _endpoint_when_ready(process: subprocess.Popen[bytes], running: Path, log: Path) -> str:
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise DemoError(f"`leaseway up` ended with status {process.returncode}: {_last_line(log)}")
        with contextlib.suppress(OSError, ValueError, KeyError):
            endpoint = str(json.loads(running.read_text())["endpoint"])
            with contextlib.closing(Client(endpoint)) as client:
                if client.status("/ready") == 200:
                    return endpoint
        time.sleep(0.1)
    raise DemoError(f"`leaseway up` is not ready after {READY_S:.0f} s: {_last_line(log)}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()  # its children end with it
        process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
