"""The process of one facade worker: uvicorn's server, with the native front or uvicorn's own HTTP
on a socket of its own.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from facade.config import Settings
from facade.http.bounds.connections import most_connections, raise_descriptors
from facade.http.log.lines import write_log
from facade.http.sockets.listener import Routes
from facade.http.sockets.serve import listen
from facade.programs.stack.data.certificate import HTTP2, Certificate, certificate_of
from facade.programs.stack.processes.ports import reuse_port_socket
from facade.programs.stack.safety import choice_of, refuse_unsafe

APP = "facade.app:create_app"
# Requests in hand get this long at a stop; what a long poll has that is cut then is given back.
GRACE_S = 5
KEEP_ALIVE_S = 75
# Objects made and not yet freed between two looks for cycles.
GARBAGE_AFTER = 20_000
TICKS_A_SECOND = 10  # of uvicorn's server
# A thread asks for the interpreter's lock when it has waited in vain for this interval (Python's
# own is 5 ms), and begins to wait anew whenever the lock was free for a moment. A loop under load
# frees it for some microseconds in each turn, so Kafka's threads waited for it for 200 ms
# (docs/lab/harness.md). A shorter one costs more than it gives (docs/lab/performance.md).
SWITCH_INTERVAL_S = 50e-6

log = logging.getLogger("leaseway.worker")


class Server(uvicorn.Server):
    """A server that tells when it accepts connections, by writing its pid to `ready_file`.
    Certificates are renewed when their files change. `native`: the native front accepts
    connections, not uvicorn, and `routes` knows what the plane may serve.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        ready_file: Path | None,
        certificate: Certificate | None = None,
        *,
        rocketmq: Certificate | None = None,
        native: bool = False,
        routes: Routes | None = None,
    ) -> None:
        super().__init__(config)
        self._ready_file = ready_file
        self._certificate = certificate
        self._certificates = [one for one in (certificate, rocketmq) if one is not None]
        self._native = native
        self._routes = routes
        self._ended: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's: start the app, then listen."""
        await super().startup([] if self._native else sockets)
        if self._native and self.started and sockets:
            self._ended = listen(
                sockets[0], self.config, self.server_state, self.lifespan.state, self._routes, self._certificate
            )
        # What was imported and set up lives as long as the process: the collector need not look at
        # it again and again. Requests leave no cycles behind, so it need not look often either:
        # with Python's own 700 it took 5% of the CPU under load.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_AFTER)
        self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's."""
        await super().shutdown(sockets)
        if self._ended is not None:
            self._ended()

    async def on_tick(self, counter: int) -> bool:
        """As uvicorn's, which calls it ten times a second."""
        if counter % TICKS_A_SECOND == 0:
            self._tell()
            for one in self._certificates:
                one.renew()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """As uvicorn's; a worker that still waits for Kafka or Redis has nothing to finish."""
        if not self.started:
            os._exit(0)
        super().handle_exit(sig, frame)

    def _tell(self) -> None:
        """A full disk is no reason not to serve: then it is told when there is room."""
        if self.started and self._ready_file:
            try:
                self._ready_file.write_text(str(os.getpid()))
            except OSError as error:
                log.warning("action=tell_ready file=%s error=%s", self._ready_file, error)
            else:
                self._ready_file = None


def run(settings: Settings, ready_file: Path | None) -> int:
    """Serve until SIGTERM; returns the exit status, 3 when the app did not start.

    Raises StackError for an unsafe or unusable address. The workers' sockets share the port by
    SO_REUSEPORT: behind one socket, two workers shared 16 connections 97 to 3.
    """
    refuse_unsafe(settings)
    write_log(settings)
    logging.getLogger("uvicorn.error").addFilter(_reason_alone)
    raise_descriptors()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    certificate = certificate_of(settings.tls_cert, settings.tls_key)
    native, why, _ = choice_of(settings)
    log.info("action=choose_native native=%s reason=%s", "on" if native else "off", why)
    bound = reuse_port_socket(settings.host, settings.port)
    rocketmq = certificate_of(settings.tls_cert, settings.tls_key, HTTP2) if settings.rocketmq_port else None
    app = _app(settings, rocketmq)
    config = uvicorn_config(app, settings, certificate)
    routes = getattr(app, "routes", None)
    server = Server(config, ready_file, certificate, rocketmq=rocketmq, native=native, routes=routes)
    with bound:
        server.run(sockets=[bound])
    return 0 if server.started else 3


def uvicorn_config(app: Any, settings: Settings, certificate: Certificate | None) -> uvicorn.Config:
    """Returns how uvicorn serves an app, by its own HTTP where the native front does not."""
    return uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # nothing here asks who the client is or by which scheme it came
        server_header=False,
        interface="asgi3",
        limit_concurrency=most_connections(settings.max_connections),
        ssl_context_factory=None if certificate is None else lambda config, default: certificate.context,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )


def _reason_alone(record: logging.LogRecord) -> bool:
    """Of a start that failed because Kafka or Redis did, the line that says so: who runs the
    service can't use the rest.
    """
    text = record.getMessage().rstrip()
    name, colon, reason = text.rpartition("\n")[2].partition(": ")
    if text.startswith("Traceback") and colon and name.startswith(("engine.errors.", "state.errors.")):
        record.msg, record.args = f"the facade can't start: {reason}", ()
    return True


def _app(settings: Settings, rocketmq: Certificate | None) -> Any:
    # LW_APP is for the stack's own tests, which need a facade that can't fail.
    module, _, function = os.environ.get("LW_APP", APP).partition(":")
    make = getattr(importlib.import_module(module), function)
    return make(settings) if rocketmq is None else make(settings, tls=rocketmq.context)
