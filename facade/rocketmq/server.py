"""The gRPC server of one worker, on the worker's own event loop.

Neighbours: `facade.app` starts and stops it when the port is on; `exchange` answers. This module
must not know any method.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import Any, Final

import grpc

from engine.engine import Engine
from facade.config import Settings
from facade.http.metrics import Metrics
from facade.rocketmq.actions import ACTIONS, RECEIVE, TELEMETRY, Action
from facade.rocketmq.exchange import Context, Exchange
from facade.rocketmq.queues.call import Common
from facade.rocketmq.wire import rocketmq_pb2 as pb
from facade.rocketmq.wire.rocketmq_pb2 import AddressScheme
from state.background import Background

SERVICE: Final = "apache.rocketmq.v2.MessagingService"
STOP_S: Final = 2.0
MOST_CALLS: Final = 40_000  # at once, of a worker; those above are refused with RESOURCE_EXHAUSTED
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
OPTIONS: Final = (
    ("grpc.so_reuseport", 1),  # the workers share the port
    ("grpc.max_receive_message_length", 5_000_000),  # a batch of the engine is 4,000,000 bytes at most
    ("grpc.max_send_message_length", 5_000_000),
    ("grpc.max_metadata_size", 16_384),
    ("grpc.absolute_max_metadata_size", 32_768),
    ("grpc.max_concurrent_streams", 1000),  # of a connection
    # A client that is gone without a word is found after two minutes, so that its long poll ends.
    ("grpc.keepalive_time_ms", 90_000),
    ("grpc.keepalive_timeout_ms", 30_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
)


class RocketmqServer:
    """Serves one engine. `start` and `stop` are called once each, in the same event loop."""

    def __init__(self, engine: Engine, settings: Settings, metrics: Metrics) -> None:
        self._address = _address(settings.host, settings.rocketmq_port)
        self._exchange = Exchange(Common(engine, settings, _own(settings)), metrics)
        self._server: Any = None
        self._background = Background()

    async def start(self) -> None:
        """Listens. Raises RuntimeError when the port can't be had."""
        self._server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, self._handlers()),))
        self._server.add_insecure_port(self._address)
        await self._server.start()
        self._background.keep(self._exchange.clients.renewals.run, "renew leases")

    async def stop(self) -> None:
        """Takes no more requests, ends those that wait, and gives the others 2 s."""
        await self._background.stop()
        if self._server is not None:
            stopped = asyncio.ensure_future(self._server.stop(STOP_S))
            await asyncio.sleep(0)
            self._exchange.stop()
            await stopped

    def _handlers(self) -> dict[str, Any]:
        """Requests and answers are bytes here: the exchange reads them, and says what is wrong."""
        handlers = {name: grpc.unary_unary_rpc_method_handler(self._unary(name, action)) for name, action in ACTIONS.items()}
        handlers[RECEIVE] = grpc.unary_stream_rpc_method_handler(self._exchange.receive)
        handlers[TELEMETRY] = grpc.stream_stream_rpc_method_handler(self._telemetry)
        return handlers

    def _unary(self, name: str, action: Action) -> Any:
        async def answer(body: bytes, context: Context) -> bytes:
            return await self._exchange.unary(name, action, body, context)

        return answer

    async def _telemetry(self, requests: Any, context: Context) -> None:
        await self._exchange.telemetry(context)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _own(settings: Settings) -> pb.Endpoints:
    """Where clients reach us that do not say how they did."""
    host = _EVERYWHERE.get(settings.host, settings.host)
    try:
        scheme = AddressScheme.IPv6 if ipaddress.ip_address(host).version == 6 else AddressScheme.IPv4
    except ValueError:
        scheme = AddressScheme.DOMAIN_NAME
    return pb.Endpoints(scheme=scheme, addresses=[pb.Address(host=host, port=settings.rocketmq_port)])
