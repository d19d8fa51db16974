"""RabbitMQ of Debian: a quorum queue, persistent messages, publisher confirms, acks by message."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench.fetch import Absent, debian_of, load_generator
from benchmarks.bench.sides import Server, Side, process
from facade.programs.stack.processes.ports import free_port

CONFIG = """listeners.tcp.1 = 127.0.0.1:{port}
log.console = true
log.file = false
"""


def rabbitmq(name: str) -> Side:
    """Returns RabbitMQ with its own settings, from packages that are only unpacked."""
    return Side(name, lambda folder: _start(name, folder), lambda cell: cell.kind in ("sqs", "many"))


@contextlib.contextmanager
def _start(name: str, folder: Path) -> Iterator[Server]:
    root = debian_of("rabbitmq")
    erlang = root / "usr" / "lib" / "erlang"
    homes = list((root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
    if len(homes) != 1:
        raise Absent(f"{name}: {len(homes)} versions in Debian's package")
    script = erlang / "bin" / "erl"
    script.write_text(re.sub(r"ROOTDIR=/\S+", f"ROOTDIR={erlang}", script.read_text()))
    port, epmd = free_port(), free_port()
    (folder / "rabbitmq.conf").write_text(CONFIG.format(port=port))
    environment = {
        "PATH": f"{erlang}/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "RABBITMQ_HOME": str(homes[0]),
        "SYS_PREFIX": str(folder),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    names = subprocess.Popen(
        [next(erlang.glob("erts-*/bin/epmd")), "-address", "127.0.0.1", "-port", str(epmd)], stdout=subprocess.DEVNULL
    )
    try:
        command = ["sh", str(homes[0] / "sbin" / "rabbitmq-server")]
        with process(name, command, folder, lambda: _listens(port), environment) as (pid, _):
            endpoint = f"amqp://guest:guest@127.0.0.1:{port}/"
            yield Server(
                name, endpoint, (("server", pid), ("server", names.pid)), (str(load_generator("amqp")),), api="amqp"
            )
    finally:
        names.terminate()
        names.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
