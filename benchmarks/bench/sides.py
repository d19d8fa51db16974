"""The sides of a bench: what is started and measured. `peers/` has those of other makers; a peer is
one function that starts a server and yields a `Server`, or raises Absent.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.bench.fetch import Absent, load_generator
from benchmarks.bench.plan import PLAIN, Cell
from benchmarks.bench.ways import Ways, ways_of
from tests.certificates import Certificates
from tests.services import Up

START_S = 120.0
STOP_S = 20.0


@dataclass(frozen=True)
class Server:
    """A running side. `generator`: the command that loads it; `api`: how it is spoken to, "" = as
    the cell says; `pids`: name -> process, all that it costs; `trouble`: what its log says since
    the last call, "" = nothing; `key`: id and secret with which requests are signed, None = they
    only look signed; `ways`: who has served its requests so far.
    """

    name: str
    endpoint: str
    pids: tuple[tuple[str, int], ...]
    generator: tuple[str, ...]
    api: str = ""
    trouble: Callable[[], str] = lambda: ""
    key: tuple[str, str] | None = None
    ways: Callable[[], Ways] = Ways


Start = Callable[[Path], contextlib.AbstractContextManager[Server]]


@dataclass(frozen=True)
class Side:
    """How to start one side in a folder, and which cells it can run."""

    name: str
    start: Start
    runs: Callable[[Cell], bool]


def leaseway(
    name: str,
    *,
    workers: int = 1,
    tls: bool = False,
    checkout: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Side:
    """Returns `leaseway up` of this checkout, or of another with the packages of this one."""

    @contextlib.contextmanager
    def start(folder: Path) -> Iterator[Server]:
        # A library of an older build is refused by its interface, and the service runs without it.
        # Another checkout may have no such setting, and refuses what it does not know.
        variables = {**({} if checkout else {"LEASEWAY_NATIVE": "require"}), **(environment or {})}
        if tls:
            certificate = str(Certificates(folder).server)
            variables |= {"LEASEWAY_TLS_CERT": certificate, "LEASEWAY_TLS_KEY": certificate}
        up = Up(folder / "data", "--workers", str(workers), checkout=checkout, environment=variables)
        try:
            up.wait_line("ready after", START_S)
            run = up.run
            pids = [("supervisor", up.process.pid), ("kafka", run["kafka"]["pid"]), ("redis", run["redis"]["pid"])]
            pids += [("worker", one["pid"]) for one in run["facades"]]
            guarded = variables.get("LEASEWAY_AUTH") == "required"
            key = ("admin", (up.data / "admin_secret").read_text().strip()) if guarded else None
            # Of several workers one answers, and not always the same.
            ways = partial(ways_of, run["endpoint"]) if workers == 1 else Ways
            yield Server(name, run["endpoint"], tuple(pids), (str(load_generator()),), key=key, ways=ways)
        finally:
            up.close()

    return Side(name, start, lambda cell: cell.name in PLAIN if tls else True)


@contextlib.contextmanager
def process(
    name: str,
    command: Sequence[str],
    folder: Path,
    ready: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, Callable[[], str]]]:
    """Runs a program until the end; yields its pid and what says what its log has got since. Raises
    Absent when it does not come up.
    """
    log = folder / f"{name}.log"
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, env={**variables, **(environment or {})}, stdout=output, stderr=output, cwd=folder
        )
    try:
        end = time.monotonic() + START_S
        while not ready():
            if child.poll() is not None or time.monotonic() > end:
                raise Absent(f"{name} did not start: {log.read_text(errors='replace')[-300:].strip()}")
            time.sleep(0.2)
        yield child.pid, _trouble(log)
    finally:
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def answers(endpoint: str) -> bool:
    """Whether somebody speaks HTTP there."""
    try:
        with urllib.request.urlopen(endpoint, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return False


def _trouble(log: Path) -> Callable[[], str]:
    """Returns what tells errors that a log has got since the last call."""
    at = log.stat().st_size

    def since() -> str:
        nonlocal at
        with log.open("rb") as file:
            file.seek(at)
            text = file.read().decode(errors="replace")
            at = file.tell()
        return next((line[:200] for line in text.splitlines() if "ERROR" in line or "Exception" in line), "")

    return since
