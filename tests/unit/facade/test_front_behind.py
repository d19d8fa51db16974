"""What a client sends behind a request that is not answered yet: the library leaves it to the
system, which has the client wait.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from engine.plane.library import LEARNT
from facade.http.sockets.answers import OTHER
from facade.http.sockets.library import ALL, NativeFront
from facade.http.sockets.listener import LANES, REQUESTS

pytestmark = pytest.mark.usefixtures("library")

BODY = b'{"QueueUrl":"u"}'
ONE = (
    b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\nContent-Length: %d\r\n\r\n%b"
    % (len(BODY), BODY)
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n"
# What the system keeps at both ends with the least buffers, and what the front has read of that.
SYSTEM_BYTES = 32 * 1024


class Pusher:
    """Sends as much as there is room for, and reads what comes."""

    def __init__(self, address: Any) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self._socket.connect(address)
        self._socket.setblocking(False)
        self.sent = 0

    def close(self) -> None:
        self._socket.close()

    def push(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                # Wherever it was cut: the next piece goes on there.
                self.sent += self._socket.send((ONE * 200)[self.sent % len(ONE) :])

    def hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._socket.recv(65_536)


@contextlib.contextmanager
def pushing() -> Iterator[tuple[NativeFront, Pusher]]:
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        front = NativeFront(os.dup(bound.fileno()), b"p", 10, ALL)
        pusher = Pusher(bound.getsockname())
        try:
            yield front, pusher
        finally:
            pusher.close()
            front.free()


def asked(front: NativeFront, pusher: Pusher) -> int:
    """The connection, when the front has read its next request."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        pusher.push()
        news: Any = front.look()[0]
        for kind, items in news:
            if kind == LANES:
                front.tell(LEARNT, [lane[0] for lane in items])
            if kind == REQUESTS:
                return int(items[0][0])
    raise TimeoutError("the front has read no request")


def test_nothing_is_read_while_a_request_is_not_answered() -> None:
    with pushing() as (front, pusher):
        asked(front, pusher)
        for _ in range(200):
            pusher.push()
            front.look()
            time.sleep(0.001)
        assert pusher.sent < SYSTEM_BYTES, pusher.sent


def test_a_client_that_pipelines_without_an_end_is_read_as_fast_as_it_is_answered() -> None:
    with pushing() as (front, pusher):
        for answered in range(500):
            connection = asked(front, pusher)
            for _ in range(3):
                pusher.push()
                front.look()
            assert pusher.sent - answered * len(ONE) < SYSTEM_BYTES
            front.answer(msgspec.msgpack.encode([(OTHER, [(connection, HEAD, b"")])]))
            pusher.hear()
