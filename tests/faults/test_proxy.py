"""Each mode of the proxy does what it says, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest

from facade.programs.stack.processes.ports import free_port
from tests.faults.proxy import PASS, Mode, Proxy


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy before a server that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1000):
                writer.write(data)
        writer.close()

    target = free_port()
    server = await asyncio.start_server(echo, "127.0.0.1", target)
    made = Proxy(free_port(target), target)
    await made.start()
    yield made
    while Peer.opened:
        Peer.opened.pop().writer.close()
    await made.stop()
    server.close()
    await asyncio.sleep(0.05)  # closed sockets are let go by the loop


class Peer:
    """A client of the proxy."""

    opened: ClassVar[list[Peer]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, proxy: Proxy) -> Peer:
        peer = cls(*await asyncio.open_connection("127.0.0.1", proxy.port))
        cls.opened.append(peer)
        return peer

    async def ask(self, data: bytes, within_s: float = 2.0) -> bytes:
        """What comes back; b'' = cut. Raises TimeoutError."""
        try:
            self.writer.write(data)
            return await asyncio.wait_for(self.reader.readexactly(len(data)), within_s)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""


async def test_it_passes_bytes_both_ways(proxy: Proxy) -> None:
    peer = await Peer.to(proxy)
    assert await peer.ask(b"x" * 5000) == b"x" * 5000


async def test_a_cut_ends_open_connections_and_new_ones_pass(proxy: Proxy) -> None:
    peer = await Peer.to(proxy)
    await peer.ask(b"one")
    proxy.cut()
    assert await peer.ask(b"two") == b""
    assert await (await Peer.to(proxy)).ask(b"three") == b"three"


async def test_refused_until_it_passes_again(proxy: Proxy) -> None:
    peer = await Peer.to(proxy)
    await peer.ask(b"one")
    await proxy.set(Mode(refuse=True))
    assert await peer.ask(b"two") == b""
    with pytest.raises(ConnectionRefusedError):
        await Peer.to(proxy)
    await proxy.set(PASS)
    assert await (await Peer.to(proxy)).ask(b"three") == b"three"


async def test_frozen_bytes_come_when_it_thaws(proxy: Proxy) -> None:
    peer = await Peer.to(proxy)
    await peer.ask(b"one")
    await proxy.set(Mode(frozen=True))
    with pytest.raises(TimeoutError):
        await peer.ask(b"two", within_s=0.2)
    await proxy.set(PASS)
    assert await asyncio.wait_for(peer.reader.readexactly(3), 2) == b"two"


@pytest.mark.parametrize("mode", [Mode(delay_s=0.2), Mode(bytes_per_s=5000)], ids=["delay", "throttle"])
async def test_slow_modes_take_their_time(proxy: Proxy, mode: Mode) -> None:
    peer = await Peer.to(proxy)
    await peer.ask(b"one")
    await proxy.set(mode)
    began = time.monotonic()
    assert await peer.ask(b"x" * 1000) == b"x" * 1000
    assert time.monotonic() - began >= 0.4


async def test_it_cuts_after_so_many_bytes(proxy: Proxy) -> None:
    peer = await Peer.to(proxy)
    await peer.ask(b"one")
    await proxy.set(Mode(cut_after=4))
    peer.writer.write(b"123")
    assert await peer.reader.read(100) == b"1"
    assert await peer.ask(b"x") == b""
    assert await (await Peer.to(proxy)).ask(b"x" * 50) == b"x" * 50


async def test_another_target_serves_new_connections(proxy: Proxy) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"other")
        writer.close()

    port = free_port()
    server = await asyncio.start_server(other, "127.0.0.1", port)
    peer = await Peer.to(proxy)
    await peer.ask(b"one")
    await proxy.switch(port)
    assert await peer.ask(b"two") == b""
    assert await (await Peer.to(proxy)).reader.readexactly(5) == b"other"
    server.close()
