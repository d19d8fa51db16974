"""The service over real sockets, in the process of a test: its HTTP server on an engine of the
test's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn

from engine.engine import Engine
from facade.app import create_app
from facade.config import Settings
from facade.programs.stack.worker import Server
from schemas.records.settings import QueueSettings
from tests.integration.drive import BY, eventually, knows


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
        app,
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        interface="asgi3",
        proxy_headers=False,
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


@contextlib.asynccontextmanager
async def served_by_plane(engine: Engine) -> AsyncIterator[int]:
    """The port at which the native front serves an engine, and its plane the hot requests of
    SQS.
    """
    own = engine.settings
    settings = Settings(topic_prefix=own.topic_prefix, auth=own.auth, plane="auto", native="require")
    app = create_app(settings, Running(engine))  # type: ignore[arg-type]
    config = uvicorn.Config(
        app, http="httptools", ws="none", lifespan="on", log_config=None, access_log=False, interface="asgi3"
    )
    server = Server(config, None, native=True, routes=getattr(app, "routes", None))
    bound = socket.create_server(("127.0.0.1", 0))
    port: int = bound.getsockname()[1]
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup([bound])
    assert engine.plane.is_on, engine.plane.why
    try:
        yield port
    finally:
        await engine.plane.stop()  # as the worker's engine does, before its front ends
        server.should_exit = True
        await server.shutdown([bound])
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def served_queue(engine: Engine, queue: str, partitions: int) -> AsyncIterator[int]:
    """The port at which the plane of an engine serves a new queue, and Python what is not the
    plane's.
    """
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=partitions))
    async with served_by_plane(engine) as port, SqsConnection(port) as client:
        await knows(engine, alone=True)  # until then it may be closed again
        await engine.messages.receive(
            BY, queue, None, 1, 0, None
        )  # Python's wait list is there before Redis tells of the queue

        async def is_served() -> bool:
            await client.call("ReceiveMessage", queue, WaitTimeSeconds=0)
            return any(engine.plane.is_open(number) for number in range(1, 10))

        await eventually(is_served)
        yield port


class SqsConnection:
    """A connection that asks in the JSON of SQS, as the plane reads it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._host = f"127.0.0.1:{port}"

    async def __aenter__(self) -> SqsConnection:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    def ask(self, action: str, queue: str, **fields: Any) -> None:
        """Sends a request."""
        body = json.dumps({"QueueUrl": f"http://{self._host}/000000000000/{queue}", **fields}).encode()
        lines = [
            "POST / HTTP/1.1",
            f"Host: {self._host}",
            f"X-Amz-Target: AmazonSQS.{action}",
            f"Content-Length: {len(body)}",
        ]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    async def hear(self) -> Any:
        """Returns the JSON of the answer. Raises OSError, or EOFError when the connection ends
        first.
        """
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        fields = dict(line.split(": ", 1) for line in head[1:-2])
        body = json.loads(await self.reader.readexactly(int(fields["content-length"])))
        assert head[0].split()[1] == "200", body
        return body

    async def call(self, action: str, queue: str, **fields: Any) -> Any:
        self.ask(action, queue, **fields)
        return await self.hear()
