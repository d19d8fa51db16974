"""The composition root of a facade worker: settings in, ASGI app out. Only here things are
constructed and joined.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from starlette.types import ASGIApp

from engine.plane.whys import of_settings
from facade.config import Settings
from facade.dialect import Dialect, Spans
from facade.dialects.emq.dialect import EmqDialect
from facade.dialects.mns.dialect import MnsDialect
from facade.dialects.native import operations as native
from facade.dialects.native.dialect import NativeDialect
from facade.dialects.native.reference.openapi import document_of
from facade.dialects.native.reference.page import documents
from facade.dialects.native.routes import fastapi_app
from facade.dialects.sqs.dialect import SqsDialect
from facade.http import health, metrics
from facade.http.bounds.bounds import BOUNDS, Bounds
from facade.http.bounds.connections import Connections, most_connections
from facade.http.bounds.intake import Intake
from facade.http.bounds.peers import peers_of
from facade.http.front import Front, Hosts, Serve
from facade.http.log.access_log import AccessLog
from facade.http.metrics import Metrics
from facade.http.schema_registry import Registry
from facade.http.sockets.library import chosen
from facade.http.sockets.routes import EMQ, NATIVE, SQS, AllLanes, Lanes

if TYPE_CHECKING:
    from ssl import SSLContext

    from engine.engine import Engine
    from facade.http.tracing.tracing import Tracing

# The first that claims a request answers it.
DIALECTS: Final[tuple[Callable[[Engine, Settings], Dialect], ...]] = (SqsDialect, EmqDialect, NativeDialect, MnsDialect)
# Of those whose requests the native library reads.
LANES: Final[dict[type[Dialect], int]] = {SqsDialect: SQS, NativeDialect: NATIVE, EmqDialect: EMQ}

# Of the connections of a worker, while the RocketMQ port is on.
ROCKETMQ_PART: Final = 4


def _tracing(settings: Settings) -> Tracing | None:
    """What makes spans, while they are on. Raises BadSetting without its packages."""
    if settings.traces == "off":
        return None
    # Who does not use it does not pay for its imports.
    from facade.http.tracing.export import opened

    return opened()


def _engine(settings: Settings, traces: Tracing | None) -> Engine:
    # Imported late: a process that is given its engine needs neither Kafka's client nor Redis'.
    from engine.engine import Engine

    return Engine(settings, traces)


@asynccontextmanager
async def _rocketmq(
    settings: Settings, engine: Engine, metrics: Metrics, connections: int, tls: SSLContext | None, spans: Spans | None
) -> AsyncIterator[None]:
    """The RocketMQ endpoint, while its port is on."""
    if not settings.rocketmq_port:
        yield
        return
    # Who does not use it does not pay for its imports.
    from facade.dialects.rocketmq.http2.port import Port
    from facade.dialects.rocketmq.server import RocketmqServer

    server = RocketmqServer(engine, settings, metrics, Port(connections), tls, spans)
    await server.start()
    try:
        yield
    finally:
        await server.stop()


def _metrics(settings: Settings, engine: Engine, bounds: Bounds) -> Metrics:
    return Metrics(
        lambda: {**engine.counts(), **bounds.counts()},
        engine.alerts.alarms,
        settings.worker_label,
        engine.times,
        engine.requests,
    )


def _lanes(dialects: Sequence[Dialect], counts: Metrics, hosts: Hosts | None) -> dict[int, Lanes]:
    """What knows the requests that the native library has read, by dialect."""
    return {
        LANES[type(one)]: one.lanes(counts, hosts)
        for one in dialects
        if isinstance(one, SqsDialect | EmqDialect | NativeDialect)
    }


def create_app(settings: Settings, engine: Engine | None = None, tls: SSLContext | None = None) -> ASGIApp:
    """The ASGI app of one worker. Its lifespan starts and stops the engine, which is made from
    `settings` if not given. `tls` is for the RocketMQ port.
    """
    tracing = _tracing(settings)
    verbs = engine if engine is not None else _engine(settings, tracing)
    most = most_connections(settings.max_connections)
    rocketmq = most // ROCKETMQ_PART if settings.rocketmq_port else 0
    bounds = Bounds(connections=Connections(most - rocketmq))
    intake = Intake(shares=bounds.shares)
    counts = _metrics(settings, verbs, bounds)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Bounds]]:
        await verbs.start()
        try:
            async with _rocketmq(settings, verbs, counts, rocketmq, tls, tracing):
                yield {BOUNDS: bounds}
        finally:
            await verbs.stop()
            if tracing is not None:
                await tracing.stop()

    uses = chosen(settings.native, settings.audit, settings.tls_cert, settings.tls_key).state

    def rest(serve: Serve) -> ASGIApp:
        served = (*health.operations(uses, lambda: intake.state), *metrics.operations(counts))
        described = (*native.OPERATIONS, *served, *Registry(settings.topic_prefix).operations())
        document = document_of(described)
        peers = peers_of(settings.auth, settings.trust_proxy)
        operations = (*described, *documents(document, settings.console_url))
        return fastapi_app(verbs, operations, serve, peers, document, lifespan)

    hosts = Hosts(settings.hosts) if settings.auth == "open" else None
    dialects = [make(verbs, settings) for make in DIALECTS]
    lanes = _lanes(dialects, counts, hosts)
    routes, trusts, access = None, settings.trust_proxy == "yes", AccessLog(settings.access_log_every)
    if not of_settings(settings):
        signed, traced = settings.auth != "open", tracing is not None
        routes = AllLanes(verbs, counts, access, lanes, signed=signed, trusts_proxy=trusts, is_traced=traced)
    return Front(
        dialects, intake, counts, rest, hosts, verbs.audit, routes, access=access, spans=tracing, trusts_proxy=trusts
    )
