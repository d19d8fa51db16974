"""How many connections the native front has at once, and which end for new ones."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from facade.http.sockets.listener import Listener, Served

pytestmark = pytest.mark.usefixtures("library")

MOST = 3
IDLE_S = 1.0  # native/src/net/door.rs


async def deaf(scope: Any, receive: Any, send: Any) -> None:
    """Answers nothing: who has asked it waits."""
    await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        listener = Listener(bound, None, Served(deaf), 60.0, MOST)
        try:
            yield bound.getsockname()
        finally:
            listener.close()


async def is_open(reader: asyncio.StreamReader, within_s: float = 0.3) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await reader.read(1) != b""
    except TimeoutError:
        return True
    except ConnectionError:
        return False


async def test_a_connection_too_many_is_closed_until_another_was_idle_for_a_while() -> None:
    async with listening() as (host, port):
        busy, *idle = [await asyncio.open_connection(host, port) for _ in range(MOST)]
        busy[1].write(b"GET /waits HTTP/1.1\r\n")
        await busy[1].drain()
        early = await asyncio.open_connection(host, port)
        assert not await is_open(early[0])
        assert [await is_open(one[0]) for one in (busy, *idle)] == [True] * MOST
        await asyncio.sleep(IDLE_S)
        later = [await asyncio.open_connection(host, port) for _ in range(2)]
        assert [await is_open(one[0]) for one in later] == [True, True]
        assert [await is_open(one[0]) for one in idle] == [False, False]
        assert await is_open(busy[0])
        last = await asyncio.open_connection(host, port)
        assert not await is_open(last[0])
        for _, writer in (busy, *idle, early, *later, last):
            writer.close()


async def test_those_of_the_peer_with_the_most_end_first() -> None:
    """Many that one host has just opened take no room from a client that is idle for longer."""
    async with listening() as (host, port):
        good = await asyncio.open_connection(host, port, local_addr=("127.0.0.2", 0))
        await asyncio.sleep(0.2)
        many = [await asyncio.open_connection(host, port) for _ in range(MOST - 1)]
        await asyncio.sleep(IDLE_S)
        late = [await asyncio.open_connection(host, port) for _ in range(MOST - 1)]
        assert [await is_open(one[0]) for one in (good, *late)] == [True] * MOST
        assert [await is_open(one[0]) for one in many] == [False] * (MOST - 1)
        for _, writer in (good, *many, *late):
            writer.close()
