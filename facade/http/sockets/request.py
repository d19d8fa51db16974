"""One request that the native front has read and that goes the long way, as ASGI sees it.

`listener` makes one for each such request, and tells it of more of its body and of a client that
has gone. HTTP's framing of requests is the library's.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol
from urllib.parse import unquote

from facade.http.asgi import header_lines, status_line
from facade.http.sockets.answers import CONTINUE, CUT, END, LAST, PAUSE, RESUME, START, WRITE, Answers
from runtime.deadline import WAITED_S

log = logging.getLogger("leaseway.http")

# Of a body that the app has not asked for; then the client has to wait.
HELD_BYTES: Final = 64 * 1024
# Flags of a request; native/src/batch.rs has the same.
MORE, OLD, WAITS = 1, 2, 4
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_FAILED: Final = (
    [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"21")],
    b"Internal Server Error",
)
_NO_BODY: Final = frozenset((204, 304))

# Host and port.
Address = tuple[str, int]


class Way(Protocol):
    """How a request reaches its client; one for all requests of a front."""

    answers: Answers

    def give(self, connection: int, head: bytes, body: bytes) -> bool:
        """Writes a whole reply now; returns False if nobody is there to get it."""

    def write(self, connection: int) -> bool:
        """Writes what was answered now; returns False if the client has to read before more."""

    def ended(self, connection: int) -> None:
        """The request has its reply, or will get none."""


def scope_of(
    told: list[Any], here: Address | None, there: Address | None, scheme: str, state: dict[str, Any]
) -> dict[str, Any]:
    """Returns ASGI's scope of a request as native/src/batch.rs tells it."""
    _, _, flags, _, method, path, query, headers, _ = told
    parts = iter(headers)
    shown = path.decode("ascii")
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": "1.0" if flags & OLD else "1.1",
        "method": method.decode("ascii"),
        "scheme": scheme,
        "path": unquote(shown) if "%" in shown else shown,
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(zip(parts, parts, strict=True)),
        "server": here,
        "client": there,
        "state": state.copy(),
    }


class Request:
    """For one event loop. It is its app's `facade.http.asgi.DirectBody` too."""

    # Of the reply.
    started = ended = False
    pending = b""  # its head, to leave with the first bytes of its body
    chunked = False
    left: int | None = None  # bytes of its body that its head has promised; None = it has promised none

    def __init__(
        self, way: Way, connection: int, scope: dict[str, Any], body: bytes, flags: int, waited_us: int = 0
    ) -> None:
        """`waited_us`: how long the library had it in hand before."""
        self._waited_us = waited_us
        self.scope = scope
        self.gone = False  # nobody is there to read the reply
        self._way = way
        self._answers = way.answers
        self._connection = connection
        self._more = bool(flags & MORE)
        self._continues = bool(flags & WAITS)
        self._chunks = [body] if body else []  # not yet taken
        self._held = len(body)
        self._told = False  # the app has the whole body
        self._paused = False
        self._waiters: list[asyncio.Future[None]] = []
        self._drain: asyncio.Future[None] | None = None  # while the client reads too slowly

    # What the listener calls.

    def came(self, data: bytes, *, whole: bool) -> None:
        """More of the body."""
        if data:
            self._chunks.append(data)
            self._held += len(data)
        self._more = not whole
        if self._held > HELD_BYTES and self._more and not self._paused:
            self._paused = True
            self._do(PAUSE)
        self._wake()

    def lost(self) -> None:
        """Tells the app that nobody is there."""
        self.gone = True
        self.drained()
        self._wake()

    def drained(self) -> None:
        """The client has read what was written."""
        drain, self._drain = self._drain, None
        if drain is not None and not drain.done():
            drain.set_result(None)

    async def run(self, app: Any) -> None:
        """Has the app answer. An app that fails, or that says too little, is answered for, or its
        connection is closed.
        """
        if self._waited_us:
            WAITED_S.set(self._waited_us / 1_000_000)  # of this task alone
        try:
            await app(self.scope, self.receive, self.send)
            if not self.ended and not self.gone:
                log.error("the app returned before its reply was whole")
                self._give_up()
        except Exception:
            log.exception("the app failed")
            self._give_up()
        finally:
            if not self.ended:  # cancelled, or nobody is there
                self._cut()

    # What the app calls.

    async def receive(self) -> dict[str, Any]:
        """ASGI's: the next bytes of the body that there are; after the last ones, that the client
        has gone, as soon as it has.
        """
        if self._continues and not self.started and not self.gone:
            self._continues = False
            self._do(CONTINUE)
        while not (self.gone or self.ended) and (self._told or (self._more and not self._chunks)):
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if self.gone or self.ended:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._take(), "more_body": self._more}

    def whole_body(self) -> bytes | None:
        """See `facade.http.asgi.DirectBody`."""
        return None if self._more or self._told else self._take()

    def reply(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes, *, look: bool = False) -> bool:
        """See `facade.http.asgi.DirectBody`. Raises ValueError for a header of several lines."""
        if self.gone or self.started:
            return False
        head = status_line(status) + header_lines(headers)
        shown = b"" if self.scope["method"] == "HEAD" else body
        if look:
            if not self._way.give(self._connection, head, shown):
                self.gone = True
                return False
        else:
            self._answers.other.append((self._connection, head, shown))
            self._answers.soon()
        self._end()
        return True

    async def send(self, message: dict[str, Any]) -> None:
        """ASGI's. Waits while the client reads too slowly. Raises RuntimeError for what may not
        come now, ValueError for a bad header.
        """
        if self._drain is not None:
            await asyncio.shield(self._drain)
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
        if b"close" in (token.strip().lower() for token in named.get(b"connection", b"").split(b",")):
            headers = [header for header in headers if header[0].lower() != b"connection"]
            self._do(LAST)
        if status in _NO_BODY or self.scope["method"] == "HEAD":
            self.left = 0
        elif b"content-length" in named:
            self.left = int(named[b"content-length"])
        elif self.scope["http_version"] != "1.0":  # such a client reads until the end
            self.chunked = True
            if b"transfer-encoding" not in named:
                headers.append((b"transfer-encoding", b"chunked"))
        self.pending = status_line(status) + header_lines(headers)
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
        if self.pending:
            self._do(START, self.pending)
            self.pending = b""
        if body:
            self._do(WRITE, body)
        if not more:
            self._do(END)
            self._end()
        elif not self._way.write(self._connection):
            self._drain = asyncio.get_running_loop().create_future()

    def _take(self) -> bytes:
        chunks, self._chunks = self._chunks, []
        self._held = 0
        self._told = not self._more
        if self._paused:
            self._paused = False
            self._do(RESUME)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _do(self, deed: int, data: bytes = b"") -> None:
        self._answers.done.append((deed, self._connection, data))
        self._answers.soon()

    def _give_up(self) -> None:
        if self.started or self.gone:
            self._cut()
        else:
            self._do(LAST)
            self.reply(500, *_FAILED)

    def _cut(self) -> None:
        if not self.gone:
            self._do(CUT)
        self._end()

    def _end(self) -> None:
        """The reply is whole, or will never be."""
        if not self.ended:
            self.started = self.ended = True
            self._chunks.clear()
            self._wake()
            self._way.ended(self._connection)

    def _wake(self) -> None:
        """Something has come for who waits in `receive`, or nothing will come any more."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
