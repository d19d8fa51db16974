"""The RocketMQ port of one worker, on the worker's own event loop: it listens, hands calls to the
exchange, and looks after connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from typing import Final

from engine.engine import Engine
from facade.config import Settings
from facade.dialect import Spans
from facade.dialects.rocketmq.actions import ACTIONS, RECEIVE, TELEMETRY
from facade.dialects.rocketmq.exchange import Exchange
from facade.dialects.rocketmq.http2.connection import Connection
from facade.dialects.rocketmq.http2.framing import GrpcStatus, end
from facade.dialects.rocketmq.http2.port import Port
from facade.dialects.rocketmq.http2.rpc import Rpc
from facade.dialects.rocketmq.queues.call import Common
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.rocketmq_pb2 import AddressScheme
from facade.http.bounds.handshakes import Handshakes
from facade.http.metrics import Metrics
from runtime.background import Background

SERVICE: Final = "apache.rocketmq.v2.MessagingService"
STOP_S: Final = 2.0
LOOK_S: Final = 1.0
BACKLOG: Final = 2048
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class RocketmqServer:
    """Serves one engine. `start` and `stop` are called once each, in the same event loop. `tls` has
    the certificate, None = the port has no TLS.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        metrics: Metrics,
        port: Port,
        tls: ssl.SSLContext | None,
        spans: Spans | None = None,
    ) -> None:
        self._host, self._number = settings.host, settings.rocketmq_port
        self._exchange = Exchange(Common(engine, settings, _own(settings)), metrics, spans)
        self._port = port
        self._tls = tls
        self._listener: Handshakes | asyncio.Server | None = None
        self._bound: socket.socket | None = None
        self._background = Background()

    async def start(self) -> None:
        """Listens. Raises OSError when the port can't be had."""
        self._bound = bound = _bound(self._host, self._number)
        if self._tls is None:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connection, sock=bound, backlog=BACKLOG
            )
        else:
            self._listener = Handshakes(bound, self._tls, self._connection, self._port.connections, self._port.there)
            self._listener.open(BACKLOG)
        self._background.keep(self._exchange.clients.renewals.run, "renew leases")
        self._background.keep(self._look, "look after RocketMQ connections")

    async def stop(self) -> None:
        """Takes no more requests, ends those that wait, and gives the others 2 s."""
        await self._background.stop()
        if isinstance(self._listener, Handshakes):
            await self._listener.stop()
        elif self._listener is not None:
            self._listener.close()
        if self._bound is not None:
            self._bound.close()
        for connection in self._connections():
            connection.drain()
        self._exchange.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._port.all_answered()
        for connection in self._connections():
            connection.close()
        await asyncio.sleep(0)

    def _connection(self) -> Connection:
        return Connection(self._port, self._serve)

    def _connections(self) -> list[Connection]:
        return [one for one in self._port.there if isinstance(one, Connection)]

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now = asyncio.get_running_loop().time()
            for connection in self._connections():
                connection.look(now)

    async def _serve(self, rpc: Rpc) -> None:
        service, _, name = rpc.path.removeprefix("/").partition("/")
        if service == SERVICE:
            if (action := ACTIONS.get(name)) is not None:
                await rpc.write(await self._exchange.unary(name, action, rpc))
                return
            if name == RECEIVE:
                await self._exchange.receive(rpc)
                return
            if name == TELEMETRY:
                await self._exchange.telemetry(rpc)
                return
        end(GrpcStatus.UNIMPLEMENTED, f"there is no method {rpc.path[:200]!r}")


def _bound(host: str, port: int) -> socket.socket:
    """A socket that shares its port with the other workers' sockets. Raises OSError."""
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _own(settings: Settings) -> pb.Endpoints:
    """Where clients reach us that do not say how they did."""
    host = _EVERYWHERE.get(settings.host, settings.host)
    try:
        scheme = AddressScheme.IPv6 if ipaddress.ip_address(host).version == 6 else AddressScheme.IPv4
    except ValueError:
        scheme = AddressScheme.DOMAIN_NAME
    return pb.Endpoints(scheme=scheme, addresses=[pb.Address(host=host, port=settings.rocketmq_port)])
