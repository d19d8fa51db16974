"""Who opens connections and does not speak TLS takes no place for long."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from facade.http.bounds import handshakes
from facade.http.bounds.connections import Connections
from facade.http.bounds.handshakes import Handshakes
from facade.programs.stack.data.certificate import Certificate
from tests.certificates import Certificates

MOST = 3


class Greeting(asyncio.Protocol):
    """Says one word."""

    def __init__(self, there: set[asyncio.Protocol]) -> None:
        self._there = there

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._there.add(self)
        transport.write(b"hello")

    def connection_lost(self, error: Exception | None) -> None:
        self._there.discard(self)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@contextlib.asynccontextmanager
async def accepting(authority: Certificates, connections: Connections) -> AsyncIterator[int]:
    there: set[asyncio.Protocol] = set()
    path: Path = authority.server
    with socket.create_server(("127.0.0.1", 0)) as bound:
        found = Handshakes(
            bound, Certificate(str(path), str(path)).context, lambda: Greeting(there), connections, there
        )
        found.open(100)
        try:
            yield bound.getsockname()[1]
        finally:
            await found.stop()


async def greeted(port: int, authority: Certificates) -> bytes:
    context = ssl.create_default_context(cafile=str(authority.ca))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        return await asyncio.wait_for(reader.readexactly(5), 5)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), 0.3) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def test_the_oldest_silent_ones_make_room(authority: Certificates) -> None:
    connections = Connections(MOST)
    async with accepting(authority, connections) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST + 2)]
        assert [await ended(one[0]) for one in silent] == [True, True, False, False, False]
        for _ in range(2):
            assert await greeted(port, authority) == b"hello"
        assert connections.refused >= 3
        for _, writer in silent:
            writer.close()


async def test_a_silent_one_is_cut_off_and_leaves_no_descriptor(
    authority: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKE_S", 0.2)
    async with accepting(authority, Connections(100)) as port:
        assert await greeted(port, authority) == b"hello"
        await asyncio.sleep(0.1)
        before = descriptors()
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        silent[0][1].write(b"GET / HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0.6)
        assert all([await ended(one[0]) for one in silent[1:]])
        for _, writer in silent:
            writer.close()
        await asyncio.sleep(0.1)
        assert descriptors() <= before
        assert await greeted(port, authority) == b"hello"
