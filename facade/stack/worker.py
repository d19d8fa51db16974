"""The process of one facade worker: uvicorn on a socket of its own.

Neighbours: `workers` starts it; `facade.app` makes the app. It must not know the supervisor beyond the ready file.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
from pathlib import Path
from typing import Any

import uvicorn

from engine.config import Settings
from facade.stack.ports import reuse_port_socket
from facade.stack.protocol import Protocol
from facade.stack.safety import refuse_unsafe

APP = "facade.app:create_app"
# Requests in hand get this long at a stop; a long poll that is cut leaves a lease that lapses.
GRACE_S = 5
KEEP_ALIVE_S = 75


class Server(uvicorn.Server):
    """A server that tells when it accepts connections, by writing its pid to `ready_file`."""

    def __init__(self, config: uvicorn.Config, ready_file: Path | None) -> None:
        super().__init__(config)
        self._ready_file = ready_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's: start the app, then listen."""
        await super().startup(sockets)
        if self.started and self._ready_file:
            self._ready_file.write_text(str(os.getpid()))


def run(settings: Settings, ready_file: Path | None) -> int:
    """Serve until SIGTERM; returns the exit status, 3 when the app did not start.

    Raises StackError for an unsafe or unusable address. The workers' sockets share the port by SO_REUSEPORT: behind one
    socket, two workers shared 16 connections 97 to 3.
    """
    refuse_unsafe(settings)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    bound = reuse_port_socket(settings.host, settings.port)
    config = uvicorn.Config(
        _app(settings),
        loop="uvloop",
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = Server(config, ready_file)
    with bound:
        server.run(sockets=[bound])
    return 0 if server.started else 3


def _app(settings: Settings) -> Any:
    # LW_APP is for the stack's own tests, which need a facade that can't fail.
    module, _, function = os.environ.get("LW_APP", APP).partition(":")
    return getattr(importlib.import_module(module), function)(settings)
