"""The services that are measured: how each is started, which processes are its cost, what in its
log spoils a round.

Neighbours: `fetch` has their programs, `generator` loads them, `__main__` starts them once for all
rounds. It must not know cells.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench.fetch import Absent, elasticmq_class_path, python_of
from facade.stack.processes.ports import free_port
from facade.stack.processes.programs import find_java
from tests.services import Up

START_S = 120.0
STOP_S = 20.0


@dataclass(frozen=True)
class Server:
    """A running service. `pids`: name -> process, all that it costs; `trouble`: what its log says
    since the last call, "" = nothing.

    `data`: the folder of a Leaseway, None of others. `key`: the id and secret with which requests
    are to be signed, None = they only look signed.
    """

    name: str
    endpoint: str
    pids: tuple[tuple[str, int], ...]
    trouble: Callable[[], str] = lambda: ""
    data: Path | None = None
    key: tuple[str, str] | None = None


@dataclass(frozen=True)
class Peer:
    """How to run one service. `guess`: messages a second singly and in tens, for the size of the
    first run.
    """

    name: str
    start: Callable[[Path], contextlib.AbstractContextManager[Server]]
    guess: tuple[int, int]
    native: bool = False


def _answers(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(endpoint, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return False


@contextlib.contextmanager
def _process(name: str, command: list[str], port: int, folder: Path, environment: dict[str, str] | None = None) -> Iterator[Server]:
    log = folder / f"{name}.log"
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env={**variables, **(environment or {})}, stdout=output, stderr=output, cwd=folder)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + START_S
        while not _answers(endpoint):
            if process.poll() is not None or time.monotonic() > end:
                raise Absent(f"{name} did not start: {log.read_text(errors='replace')[-300:].strip()}")
            time.sleep(0.2)
        yield Server(name, endpoint, (("server", process.pid),), _trouble(log))
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _trouble(log: Path) -> Callable[[], str]:
    """Errors that a log has got since the last call."""
    at = log.stat().st_size

    def since() -> str:
        nonlocal at
        with log.open("rb") as file:
            file.seek(at)
            text = file.read().decode(errors="replace")
            at = file.tell()
        return next((line[:200] for line in text.splitlines() if "ERROR" in line or "Exception" in line), "")

    return since


def leaseway(
    workers: int, checkout: Path | None = None, environment: dict[str, str] | None = None
) -> Callable[[Path], contextlib.AbstractContextManager[Server]]:
    """Starts `leaseway up` with so many workers in a folder; `checkout` None = this one."""

    @contextlib.contextmanager
    def start(folder: Path) -> Iterator[Server]:
        up = Up(folder / "data", "--workers", str(workers), checkout=checkout, environment=environment)
        try:
            up.wait_line("ready after", START_S)
            run = up.run
            pids = [("supervisor", up.process.pid), ("kafka", run["kafka"]["pid"]), ("redis", run["redis"]["pid"])]
            workers_of = [("worker", one["pid"]) for one in run["facades"]]
            guarded = (environment or {}).get("LEASEWAY_AUTH") == "required"
            key = ("admin", (up.data / "admin_secret").read_text().strip()) if guarded else None
            yield Server(f"leaseway-{workers}", run["endpoint"], (*pids, *workers_of), data=up.data, key=key)
        finally:
            up.close()

    return start


def _elasticmq(durable: bool) -> Callable[[Path], contextlib.AbstractContextManager[Server]]:
    def start(folder: Path) -> contextlib.AbstractContextManager[Server]:
        port = free_port()
        lines = [
            'include classpath("application.conf")',
            f'node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}',
            f'rest-sqs {{ enabled = true, bind-port = {port}, bind-hostname = "127.0.0.1", sqs-limits = relaxed }}',
            "rest-stats { enabled = false }",
        ]
        if durable:
            lines.append(f'messages-storage {{ enabled = true, uri = "jdbc:h2:{folder}/messages" }}')
        (folder / "elasticmq.conf").write_text("\n".join(lines) + "\n")
        command = [find_java(), f"-Dconfig.file={folder}/elasticmq.conf", "-cp", elasticmq_class_path(), "org.elasticmq.server.Main"]
        return _process("elasticmq-h2" if durable else "elasticmq", command, port, folder)

    return start


def _moto(folder: Path) -> contextlib.AbstractContextManager[Server]:
    port = free_port()
    return _process("moto", [str(python_of("moto").parent / "moto_server"), "-H", "127.0.0.1", "-p", str(port)], port, folder)


def _ministack(folder: Path) -> contextlib.AbstractContextManager[Server]:
    port = free_port()
    variables = {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "SERVICES": "sqs"}
    return _process("ministack", [str(python_of("ministack").parent / "ministack")], port, folder, variables)


def _localstack(folder: Path) -> contextlib.AbstractContextManager[Server]:
    port = free_port()
    variables = {"GATEWAY_LISTEN": f"127.0.0.1:{port}", "SERVICES": "sqs", "EAGER_SERVICE_LOADING": "1", "DISABLE_EVENTS": "1"}
    variables |= {"LOCALSTACK_VOLUME_DIR": str(folder), "SKIP_SSL_CERT_DOWNLOAD": "1"}
    return _process("localstack", [str(python_of("localstack")), "-m", "localstack.runtime.main"], port, folder, variables)


def _goaws(folder: Path) -> contextlib.AbstractContextManager[Server]:
    binary = os.environ.get("GOAWS") or shutil.which("goaws")
    if not binary:
        raise Absent("goaws: name its binary in GOAWS, or --goaws")
    port = free_port()
    (folder / "goaws.yaml").write_text(f'Local:\n  Host: 127.0.0.1\n  Port: {port}\n  Region: us-east-1\n  AccountId: "000000000000"\n')
    return _process("goaws", [binary, "-config", str(folder / "goaws.yaml"), "Local"], port, folder)


def _bare(folder: Path) -> contextlib.AbstractContextManager[Server]:
    """An ASGI app that does next to nothing, served as Leaseway is: what is left is HTTP in
    Python.
    """
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.bench.bare_asgi", str(port)]
    return _process("bare-asgi", command, port, folder, {"PYTHONPATH": str(Path(__file__).parents[2])})


PEERS = {
    peer.name: peer
    for peer in (
        Peer("leaseway-1", leaseway(1), (1000, 5000), native=True),
        Peer("leaseway-2", leaseway(2), (1000, 5000), native=True),
        Peer("elasticmq", _elasticmq(durable=False), (2000, 8000)),
        Peer("elasticmq-h2", _elasticmq(durable=True), (1000, 3000)),
        Peer("moto", _moto, (40, 30)),
        Peer("ministack", _ministack, (400, 1500)),
        Peer("localstack", _localstack, (200, 1500)),
        Peer("goaws", _goaws, (2000, 5000)),
        Peer("bare-asgi", _bare, (4000, 15000)),
    )
}
