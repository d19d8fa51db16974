"""The service over real sockets, in the process of a test: its HTTP server on an engine of the
test's.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn

from engine.engine import Engine
from facade.app import create_app
from facade.config import Settings


class Running:
    """An engine whose life is the test's, and not the server's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start(self) -> None:
        """It runs."""

    async def stop(self) -> None:
        """The test stops it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@contextlib.asynccontextmanager
async def served(engine: Engine, **settings: Any) -> AsyncIterator[int]:
    """The port at which the engine is served."""
    app = create_app(Settings(topic_prefix=engine.settings.topic_prefix, **settings), Running(engine))  # type: ignore[arg-type]
    config = uvicorn.Config(
        app, http="httptools", ws="none", lifespan="on", log_config=None, access_log=False, interface="asgi3", proxy_headers=False
    )
    server = uvicorn.Server(config)
    bound = socket.create_server(("127.0.0.1", 0))
    port: int = bound.getsockname()[1]
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup([bound])
    try:
        yield port
    finally:
        server.should_exit = True
        await server.shutdown([bound])
        await asyncio.sleep(0)
