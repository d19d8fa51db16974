"""One connection that speaks just enough HTTP, so that the client takes little of the machine that
it measures.
"""

from __future__ import annotations

import socket
from typing import Any

import msgspec

TIMEOUT_S = 60.0
_LENGTH = b"content-length: "


class Broken(Exception):
    """The service hung up or answered something that is not HTTP."""


def request(path: str, body: Any) -> bytes:
    """A POST of JSON as bytes."""
    data = msgspec.json.encode(body)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        f"{len(data)}\r\n\r\n"
    )
    return head.encode() + data


class Wire:
    """A keep-alive connection to 127.0.0.1; one thread at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, wanted: bytes) -> tuple[int, bytes]:
        """(status, body). Raises Broken, OSError."""
        self._socket.sendall(wanted)
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0:
            got += self._more()
        head = got[:end].lower()
        at = head.find(_LENGTH)
        if at < 0:
            raise Broken(f"an answer without a length: {head[:200]!r}")
        pieces, missing = [got[end + 4 :]], int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) - len(got) + end + 4
        while missing > 0:
            pieces.append(self._more())
            missing -= len(pieces[-1])
        return int(head[9:12]), b"".join(pieces)

    def _more(self) -> bytes:
        got = self._socket.recv(262_144)
        if not got:
            raise Broken("the service hung up")
        return got

    def close(self) -> None:
        self._socket.close()
