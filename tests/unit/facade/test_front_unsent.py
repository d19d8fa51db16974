"""A reply of the native front that Python was told to be written is written, though its client
leaves before the turn of the event loop is over.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from facade.http.asgi import direct_of
from facade.http.sockets.listener import Listener, Served

pytestmark = pytest.mark.usefixtures("library")


@pytest.mark.parametrize("leaves", ["before the reply", "after the reply"])
async def test_a_reply_is_written_or_refused_and_nothing_between(leaves: str) -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(bound.getsockname())
    replied: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        direct = direct_of(scope)
        assert direct is not None
        if leaves == "before the reply":
            client.shutdown(socket.SHUT_WR)
        replied.append(direct.reply(200, [(b"content-length", b"1")], b"x", look=True))
        client.shutdown(socket.SHUT_WR)
        # The front hears of it before the answers of this turn are given to it.
        listener._look()

    listener = Listener(bound, None, Served(app), 5.0)
    try:
        client.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        client.setblocking(False)
        async with asyncio.timeout(10):
            heard = b""
            while part := await asyncio.get_running_loop().sock_recv(client, 4096):
                heard += part
        assert replied == [leaves == "after the reply"]
        assert heard.startswith(b"HTTP/1.1 200") == replied[0]
    finally:
        listener.close()
        client.close()
        bound.close()
