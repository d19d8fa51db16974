"""An answer of HTTP that is there in time, or not at all, and the objects of JSON in it."""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import Any

from facade.programs.connect.failures import FAILED, Failure


class Answer(http.client.HTTPResponse):
    """Its head and its body must all come within the timeout that its socket has when it begins,
    however many pieces they come in. Raises TimeoutError, in any read.
    """

    def __init__(self, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock))


class Lacks(Failure, LookupError):
    """An answer has not the field that was looked for. A template takes it for nothing."""


class Fields(dict[str, Any]):
    """An object of an answer. Raises Lacks for a field that it has not."""

    def __missing__(self, name: str) -> Any:
        raise Lacks(f"the answer has no {name!r}: is it a Leaseway, and of this version?", FAILED)


class Plain(http.client.HTTPConnection):
    """A connection with such answers."""

    response_class = Answer


class Encrypted(http.client.HTTPSConnection):
    """As Plain, by TLS."""

    response_class = Answer


class _Timed(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._socket = sock
        self._end = time.monotonic() + (sock.gettimeout() or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def content_of(answer: http.client.HTTPResponse, most: int) -> bytes:
    """The body; one that is longer than `most` bytes is cut after one more. Raises
    http.client.IncompleteRead: the connection ended before the body did.
    """
    content = answer.read(most + 1)
    if answer.length and len(content) <= most:
        raise http.client.IncompleteRead(content, answer.length)
    return content
