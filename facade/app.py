"""The composition root of a facade worker: settings in, ASGI app out. Only here things are
constructed and joined.

Neighbours: the CLI's worker process serves the app; tests call `create_app` with an engine of
theirs. This module must not know what an operation does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.types import ASGIApp

from engine.settings import Settings
from facade.http import health, metrics
from facade.http.asgi import Intake
from facade.http.handler import Handler
from facade.http.metrics import Metrics
from facade.http.schema_registry import Registry
from facade.native import operations as native
from facade.native.fast_path import HotPath
from facade.native.openapi import document_of
from facade.native.page import documents
from facade.native.routes import fastapi_app
from facade.sqs.dialect import SqsDialect

if TYPE_CHECKING:
    from engine.engine import Engine


def _engine(settings: Settings) -> Engine:
    # Imported late: a process that is given its engine needs neither Kafka's client nor Redis'.
    from engine.engine import Engine

    return Engine(settings)


def create_app(settings: Settings, engine: Engine | None = None) -> ASGIApp:
    """The ASGI app of one worker. Its lifespan starts and stops the engine, which is made from
    `settings` if not given.
    """
    verbs = engine if engine is not None else _engine(settings)
    counts = Metrics(verbs.counts, verbs.alarms)
    intake = Intake()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await verbs.start()
        try:
            yield
        finally:
            await verbs.stop()

    described = (
        *native.OPERATIONS,
        *health.OPERATIONS,
        *metrics.operations(counts),
        *Registry(settings.topic_prefix).operations(),
    )
    document = document_of(described)
    operations = (*described, *documents(document))
    handlers = {operation.name: Handler(operation, verbs, intake, counts) for operation in operations}
    # A hot path ends in one word, which need not be the verb's name: send is POST .../messages.
    hot = {operation.path.rpartition("/")[2]: handlers[operation.name] for operation in operations if operation.hot}
    native_path = HotPath(hot, fastapi_app(operations, handlers, counts, document, lifespan))
    return SqsDialect(verbs, intake, counts, settings, rest=native_path)
