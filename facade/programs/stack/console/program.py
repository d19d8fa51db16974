"""The console as a child: how to run it, and where browsers find it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from engine.settings import PREFIX
from facade.config import Settings
from facade.programs.stack import workers
from facade.programs.stack.processes.child import Program
from facade.programs.stack.processes.environment import without
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.ports import free_port, is_free
from facade.programs.stack.welcome import endpoint_of

HOST = "127.0.0.1"
# How far its port is from that of the service, unless something has that.
APART = 80
START_S = 60.0
STOP_S = 5.0
KEY = "console_key"
REPORTS = "reports"


def url_of(port: int) -> str:
    """Where a browser of this machine finds it."""
    return f"http://{HOST}:{port}"


def port_of(settings: Settings, asked: int | None, say: Callable[[str], None]) -> int:
    """The port of the console of a service, 0 = there is none. `asked`: None = none is wanted, 0 =
    one beside that of the service, the same each time while it is free. Raises StackError.
    """
    if asked is None:
        return 0
    if settings.tls_cert:
        # The certificate is of a name that only who runs the service knows.
        say(f"no console beside HTTPS: `leaseway console --endpoint https://NAME:{settings.port}` starts one")
        return 0
    if asked and not is_free(HOST, asked):
        raise StackError(f"port {asked} of {HOST} is in use or not permitted; give --console-port another number")
    near = asked or settings.port + APART
    return near if near <= 65_535 and is_free(HOST, near) else free_port(settings.port)


def program(settings: Settings, port: int, folder: Path, logs: Path, environment: dict[str, str]) -> Program:
    """The console of a service that this machine has. In the data folder are the file with what
    seals its sessions, so that they outlive it, and REPORTS, for Spark's.
    """

    async def ready(pid: int) -> bool:
        return await workers.http_status(HOST, port, "/live") == 200

    options = {
        "--endpoint": endpoint_of(settings),
        "--port": port,
        "--key-file": folder / KEY,
        "--reports": folder / REPORTS,
    }
    words = ("-m", "facade", "console", *(str(part) for option in options.items() for part in option))
    return Program(
        name="console",
        command=(sys.executable, *words),
        environment=without(environment, PREFIX),
        output=logs / "console.log",
        ready=ready,
        start_s=START_S + settings.start_wait_s,
        stop_s=STOP_S,
    )
