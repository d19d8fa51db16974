"""One request of a connection and the reply to it, as ASGI sees them; uvicorn calls that a cycle.

Neighbours: `connection` parses requests and has the transport; the app gets `receive` and `send`.
It must not know how bytes become requests.
"""

from __future__ import annotations

import asyncio
import logging
import re
import select
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httptools

from engine.errors import Overloaded
from facade.http.bounds.unfinished import TooMuch

if TYPE_CHECKING:
    from uvicorn.server import ServerState

    from facade.http.connection import Protocol

log = logging.getLogger("leaseway.http")

# What a Host header may have.
HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
# That the other end has closed its side, which not every system tells; that the connection is
# broken is always told.
_LEFT = getattr(select, "POLLRDHUP", 0)
_STATUS = {status.value: b"HTTP/1.1 %d %s\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus}
_LINE = b"%b: %b\r\n"
_FAILED = ([(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"21")], b"Internal Server Error")
_NO_BODY = frozenset((204, 304))
_ASGI = {"version": "3.0", "spec_version": "2.3"}
CLOSE = (b"connection", b"close")
# Of a body that nobody wants any more; with more than that, its connection ends.
LET_GO_BYTES = 8 * 1024 * 1024


class NotHttp(Exception):
    """A head that the parser takes and HTTP/1.1 does not; the text is for the client."""


def refusal_of(error: BaseException | None) -> tuple[int, bytes, tuple[tuple[bytes, bytes], ...]]:
    """Status, text and further headers for a request that is not served."""
    if isinstance(error, Overloaded):
        return 503, str(error).encode(), ((b"retry-after", b"1"),)
    if isinstance(error, NotHttp | TooMuch):
        return 431 if isinstance(error, TooMuch) else 400, str(error).encode(), ()
    return 400, b"The request is not HTTP/1.1.", ()


def split_url(url: bytes) -> tuple[bytes, str, bytes, bytes]:
    """A request's URL, and its path, raw path and query. Raises HttpParserInvalidURLError or
    UnicodeDecodeError.
    """
    parsed = httptools.parse_url(url)
    raw_path: bytes = parsed.path or b"/"
    path = raw_path.decode("ascii")
    return url, unquote(path) if "%" in path else path, raw_path, parsed.query or b""


def names_again(headers: Iterable[tuple[bytes, bytes]], host: bytes) -> bool:
    """Whether a Host header says again, without its port, what the first one says with it.

    A request has one (RFC 9112, 3.2), but EMQ's Python clients send both.
    """
    first = next((value for name, value in headers if name == b"host"), b"")
    return first.startswith(host + b":") and first[len(host) + 1 :].isdigit()


def has_left(transport: asyncio.Transport) -> bool:
    """Whether the client has closed the connection; the loop may not have told us yet."""
    if transport.is_closing():
        return True
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor < 0:
        return True
    asked = select.poll()
    asked.register(descriptor, _LEFT)
    return bool(asked.poll(0))


def status_line(status: int) -> bytes:
    """The first line of a reply."""
    return _STATUS.get(status) or b"HTTP/1.1 %d \r\n" % status


def header_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A line for each header. Raises ValueError for one of more than one line."""
    lines = [_LINE % header for header in headers]
    text = b"".join(lines)
    if text.count(b"\n") != len(lines) or text.count(b"\r") != len(lines):
        raise ValueError("a header of the reply has a line break in it")
    return text


class Replies:
    """Replies of one connection as bytes, with the headers that uvicorn's server has for all."""

    __slots__ = ("_dated", "_server")

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._dated: tuple[list[tuple[bytes, bytes]], bytes] = ([], b"")

    def message(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
        """A reply as it is sent. Raises ValueError for a header of more than one line."""
        given = self._server.default_headers  # the date; uvicorn's server renews it once a second
        if given is not self._dated[0]:
            self._dated = (given, header_lines(given))
        return b"".join((status_line(status), header_lines(headers), self._dated[1], b"\r\n", body))


class Cycle:
    """Belongs to its connection's event loop."""

    # Of the request; most never change, and what is not set costs nothing.
    held = 0  # bytes of the body that have come and were not taken
    more_body = True
    told = False  # the app has the whole body
    gone = False  # nobody is there to read the reply
    # Of the reply.
    started = ended = False
    pending = b""  # its head, to leave with the first bytes of its body
    chunked = False
    left: int | None = None  # bytes of its body that its head has promised; None = it has promised none
    task: asyncio.Task[None] | None = None

    def __init__(
        self,
        connection: Protocol,
        method: str,
        version: str,
        url: tuple[bytes, str, bytes, bytes],
        headers: list[tuple[bytes, bytes]],
        *,
        keep_alive: bool,
        continues: bool,
    ) -> None:
        self.connection = connection
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": method,
            "scheme": connection.scheme,
            "path": url[1],
            "raw_path": url[2],
            "query_string": url[3],
            "root_path": "",
            "headers": headers,
            "server": connection.here,
            "client": connection.there,
            "state": connection.app_state.copy(),
            "extensions": connection.extensions,
        }
        self.keep_alive = keep_alive
        self.continues = continues  # the client waits for "100 Continue" before it sends the body
        self.chunks: list[bytes] = []  # of the body, not yet taken
        self.waiters: list[asyncio.Future[None]] = []

    def wake(self) -> None:
        """Something has come for who waits in `receive`, or nothing will come any more."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters.clear()

    def own_headers(self) -> list[tuple[bytes, bytes]]:
        """What a connection adds to a reply. A client that still waits for "100 Continue" may send
        its body or not: nobody can tell. Of a large body no more is wanted.
        """
        if self.more_body and (self.continues or not self._is_let_go()):
            self.keep_alive = False
        return [] if self.keep_alive else [CLOSE]

    def _is_let_go(self) -> bool:
        """Whether what still comes of the body is read, and dropped."""
        stated = next((value for name, value in self.scope["headers"] if name == b"content-length"), b"")
        return stated.isdigit() and len(stated) < 18 and int(stated) <= LET_GO_BYTES

    async def run(self, app: Any) -> None:
        """Has the app answer. An app that fails, or that says too little, is answered for, or its
        connection is closed.
        """
        connection = self.connection
        try:
            await app(self.scope, self.receive, self.send)
            if not self.ended and not self.gone:
                log.error("the app returned before its reply was whole")
                self._give_up()
        except Exception:
            log.exception("the app failed")
            self._give_up()
        finally:
            if not self.ended:  # cancelled
                connection.close()
            connection.tasks.discard(self.task)
            self.task = None

    def _give_up(self) -> None:
        if self.started or self.gone:
            self.connection.close()
        else:
            self.keep_alive = False
            self.connection.reply(500, *_FAILED)

    async def receive(self) -> dict[str, Any]:
        """ASGI's: the next bytes of the body that there are; after the last ones, that the client
        has gone, as soon as it has.
        """
        if self.continues and not self.started:
            self.continues = False
            self.connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self.gone or self.ended) and (self.told or (self.more_body and not self.chunks)):
            waiter = self.connection.loop.create_future()
            self.waiters.append(waiter)
            await waiter
        if self.gone or self.ended:
            return {"type": "http.disconnect"}
        body = self._take()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    def whole_body(self) -> bytes | None:
        """See `facade.http.asgi.DirectBody`."""
        return None if self.more_body or self.told else self._take()

    def _take(self) -> bytes:
        chunks, self.chunks = self.chunks, []
        self.held = 0
        self.told = not self.more_body
        if self.connection.paused:
            self.connection.pace()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def send(self, message: dict[str, Any]) -> None:
        """ASGI's. Waits while the client reads too slowly. Raises RuntimeError for what may not
        come now, ValueError for a bad header.
        """
        await self.connection.drained()
        if self.gone:
            return
        kind = message["type"]
        if kind == "http.response.start" and not self.started:
            self._start(message["status"], list(message.get("headers", ())))
        elif kind == "http.response.body" and self.started and not self.ended:
            self._body(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"an app may not send {kind!r} now")

    def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        named = {name.lower(): value for name, value in headers}
        bare = status in _NO_BODY or self.scope["method"] == "HEAD"
        if b"close" in (token.strip().lower() for token in named.get(b"connection", b"").split(b",")):
            self.keep_alive = False
        else:
            headers += self.own_headers()
        if bare:
            self.left = 0
        elif b"content-length" in named:
            self.left = int(named[b"content-length"])
        elif self.scope["http_version"] != "1.0":  # such a client reads until the end
            self.chunked = True
            if b"transfer-encoding" not in named:
                headers.append((b"transfer-encoding", b"chunked"))
        self.pending = self.connection.message(status, headers, b"")
        self.started = True

    def _body(self, body: bytes, *, more: bool) -> None:
        if self.scope["method"] == "HEAD":
            body = b""
        elif self.chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        elif self.left is not None:
            self.left -= len(body)
            if self.left < 0 or (self.left and not more):
                raise RuntimeError("the body of the reply is not as long as its head says")
        pending, self.pending = self.pending, b""
        self.connection.write(pending + body)
        if not more:
            self.connection.end(self)
