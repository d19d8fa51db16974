"""redis-server as a child: its file, its command, is it there."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from facade.programs.stack.data.broken import redis_refuses
from facade.programs.stack.data.folder import full_disk
from facade.programs.stack.processes.child import Program
from facade.programs.stack.processes.programs import find_redis_server
from facade.programs.stack.processes.settings import REDIS_OPTIONS
from facade.programs.stack.reach import redis_at

# Of a start that gets on: a large append-only file takes minutes to load.
START_S = 600.0
# Without any sign that it gets on.
STALL_S = 60.0
# The system's bound of a socket's path, with its last byte.
SOCKET_PATH_BYTES = 107
STOP_S = 15.0


def options(folder: Path, socket: Path, port: int = 0) -> dict[str, str]:
    """All options of the embedded redis-server: the shared table and what depends on this
    folder.

    Others of this machine can't reach a socket within a folder that only its owner may enter; a
    port, for tests, they can.
    """
    return {
        "bind": "127.0.0.1",
        "port": str(port),
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder / "redis"),
        "daemonize": "no",
        "logfile": "",
        # A title is written over the environment, and the environment has the mark by which we know
        # our children.
        "set-proc-title": "no",
        **REDIS_OPTIONS,
    }


def socket_path(folder: Path) -> Path | None:
    """The unix socket of the embedded redis-server, a third of the system's work of TCP; None when
    the folder's path is too long: then it is to be elsewhere.
    """
    path = folder.absolute() / "redis" / "redis.sock"
    return path if len(os.fsencode(path)) <= SOCKET_PATH_BYTES else None


def url_of(socket: Path) -> str:
    """What a client takes."""
    return f"unix://{quote(str(socket))}?db=0"


def program(
    folder: Path, socket: Path, environment: dict[str, str], port: int = 0, start_s: float = START_S
) -> Program:
    """Write the file of redis-server and say how to run it. Raises StackError when there is no
    redis-server.
    """
    (folder / "redis").mkdir(exist_ok=True)
    file = folder / "redis.conf"
    lines = [f"{name} {_quoted(value)}" for name, value in options(folder, socket, port).items()]
    file.write_text("\n".join(["# Written at every start; changes are lost.", *lines, ""]))
    return Program(
        name="Redis",
        command=(find_redis_server(), str(file)),
        environment=environment,
        output=folder / "logs" / "redis.log",
        ready=lambda _pid: answers(socket),
        start_s=start_s,
        stall_s=STALL_S,
        stop_s=STOP_S,
        hindrance=lambda: full_disk(folder),
        explained=lambda words: redis_refuses(folder, words),
    )


async def answers(socket: Path) -> bool:
    """Whether a redis-server answers there; while it loads its file it doesn't."""
    return await redis_at(str(socket)) is None


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
