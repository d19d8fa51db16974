"""The service on uvicorn's own HTTP, as a worker without the library has it: the same answers, and
what may be read in two ways is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from engine.engine import Engine
from facade.app import create_app
from facade.config import Settings
from facade.programs.stack.data.certificate import certificate_of
from facade.programs.stack.worker import Server, uvicorn_config
from tests.certificates import Certificates
from tests.unit.facade.double import RecordingEngine, delivery

RECEIVE = b"POST /v1/queues/orders/receive HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@contextlib.asynccontextmanager
async def serving(engine: RecordingEngine, settings: Settings) -> AsyncIterator[Any]:
    """The address at which a worker of these settings serves."""
    app = create_app(settings, cast(Engine, engine))
    config = uvicorn_config(app, settings, certificate_of(settings.tls_cert, settings.tls_key))
    config.load()
    server = Server(config, None)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        await server.startup([bound])
        try:
            yield bound.getsockname()
        finally:
            server.should_exit = True
            await server.shutdown([bound])


async def heard(address: Any, said: bytes, **more: Any) -> bytes:
    """All that is answered until the server closes."""
    reader, writer = await asyncio.open_connection(*address, **more)
    with contextlib.closing(writer):
        writer.write(said)
        async with asyncio.timeout(10):
            return await reader.read()


@pytest.fixture
def engine() -> RecordingEngine:
    found = RecordingEngine()
    found.answers["receive"] = [delivery(), delivery()]
    return found


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 2\r\n\r\n{}", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"],
    ids=["whole", "chunked"],
)
async def test_a_request_is_answered(engine: RecordingEngine, body: bytes) -> None:
    async with serving(engine, Settings()) as address:
        head, _, said = (await heard(address, RECEIVE + b"Connection: close\r\n" + body)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and len(json.loads(said)["messages"]) == 2


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: -2\r\n\r\n{}",
        b"Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"A: b\r\n c: d\r\nContent-Length: 2\r\n\r\n{}",
        b"A: b\nContent-Length: 2\n\n{}",
    ],
)
async def test_what_may_be_read_in_two_ways_is_refused(engine: RecordingEngine, lines: bytes) -> None:
    async with serving(engine, Settings()) as address:
        assert (await heard(address, RECEIVE + lines)).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert [call[0] for call in engine.calls] == ["start", "stop"]


async def test_messages_go_back_when_the_loop_knows_that_their_client_left(
    engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facade.http.asgi.WATCH_AFTER_S", 60)  # nobody looks sooner
    async with serving(engine, Settings()) as address:
        engine.hold = asyncio.Event()
        _, writer = await asyncio.open_connection(*address)
        writer.write(RECEIVE + b"Content-Length: 2\r\n\r\n{}")
        async with asyncio.timeout(10):
            while len(engine.calls) < 2:
                await asyncio.sleep(0.01)
            writer.transport.abort()
            await asyncio.sleep(0.1)
            engine.hold.set()
            while not engine.undelivered_:
                await asyncio.sleep(0.01)
    assert engine.undelivered_ == [engine.answers["receive"]]


async def test_a_connection_too_many_gets_a_503(engine: RecordingEngine) -> None:
    async with serving(engine, Settings(max_connections=16)) as address:
        others = [await asyncio.open_connection(*address) for _ in range(16)]
        await asyncio.sleep(0.05)
        assert (await heard(address, RECEIVE + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")).startswith(
            b"HTTP/1.1 503 "
        )
        for _, writer in others:
            writer.close()


async def test_tls_is_spoken_with_the_certificate_of_the_settings(engine: RecordingEngine, tmp_path: Any) -> None:
    import ssl

    authority = Certificates(tmp_path)
    context = ssl.create_default_context(cafile=str(authority.ca))
    settings = Settings(tls_cert=str(authority.server), tls_key=str(authority.server), native="off")
    async with serving(engine, settings) as address:
        said = await heard(address, RECEIVE + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}", ssl=context)
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
