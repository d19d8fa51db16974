"""Whose bytes the native front has Python read next: nobody's connection is passed over for long by
those that send without an end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from facade.http.sockets.library import NOTHING, NativeFront
from facade.http.sockets.listener import READS, REQUESTS, Listener, Served

pytestmark = pytest.mark.usefixtures("library")

FLOODERS = 40
AT_ONCE = 8  # native/src/net/bodies.rs
BLOCK = b"x" * 262_144
# Until the buffers of the system have grown, so that each read is full and leaves more.
WARM = 300


def top_up(flooders: list[socket.socket]) -> None:
    for one in flooders:
        with contextlib.suppress(BlockingIOError):
            while True:
                one.send(BLOCK)


def offered(front: NativeFront) -> list[int]:
    """Connections that Python is to read, after one look."""
    news: Any = front.look()[0]
    return [one for kind, items in news if kind == READS for one in items]


@pytest.fixture
def front() -> Iterator[tuple[NativeFront, tuple[str, int]]]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as bound:
        found = NativeFront(os.dup(bound.fileno()), b"p", 1000, NOTHING)
        try:
            yield found, bound.getsockname()
        finally:
            found.free()


def test_one_that_says_little_is_read_soon_among_those_that_say_much(
    front: tuple[NativeFront, tuple[str, int]],
) -> None:
    native, address = front
    with contextlib.ExitStack() as open_ones:
        *flooders, quiet = [open_ones.enter_context(socket.create_connection(address)) for _ in range(FLOODERS + 1)]
        for one in (*flooders, quiet):
            one.setblocking(False)
            one.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n")
        known: list[int] = []
        while len(known) <= FLOODERS:
            known += [told[0] for kind, items in native.look()[0] if kind == REQUESTS for told in items]
        read = dict.fromkeys(known, 0)

        def turn() -> None:
            top_up(flooders)
            for connection in offered(native):
                read[connection] += len(native.receive(connection)[0])

        for _ in range(WARM):
            turn()
        (silent,) = [connection for connection, size in read.items() if not size]
        assert max(read.values()) < 2 * min(size for size in read.values() if size)
        quiet.send(b"hello")
        for _ in range(2 * FLOODERS // AT_ONCE):
            turn()
        assert read[silent] == len(b"hello")


class Sink:
    """An app that takes what comes."""

    taken = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while (event := await receive())["type"] == "http.request":
            self.taken += len(event["body"])


async def test_a_turn_of_the_loop_has_one_look_for_those_that_send_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the loop has to do besides comes between two looks."""
    looks, look = 0, Listener._look

    def counted(listener: Listener) -> None:
        nonlocal looks
        looks += 1
        look(listener)

    monkeypatch.setattr(Listener, "_look", counted)
    sink = Sink()
    with socket.create_server(("127.0.0.1", 0), backlog=100) as bound, contextlib.ExitStack() as open_ones:
        listener = Listener(bound, None, Served(sink), 60)
        open_ones.callback(listener.close)
        flooders = [open_ones.enter_context(socket.create_connection(bound.getsockname())) for _ in range(FLOODERS)]
        for one in flooders:
            one.setblocking(False)
            one.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n")
        for turn in range(WARM):
            top_up(flooders)
            await asyncio.sleep(0)
            assert looks <= turn + 2
        assert sink.taken > WARM * len(BLOCK)
