"""HTTP/1.1 on one connection: requests parsed by llhttp (httptools), each given to the ASGI app,
replies in order.

In place of uvicorn's protocol, which takes half as many steps of the interpreter again for a
request; uvicorn's server makes it and ends it (`worker`). An app of ours may take and give whole
bodies by the scope's extension DIRECT. Neighbours: `cycle` is one request and its reply. It must
not know any path. Longer than 250 lines: one connection's state, which each event changes.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.utils import get_local_addr, get_remote_addr

from facade.http.asgi import DIRECT
from facade.http.cycle import HOST, Cycle, NotHttp, has_left, header_lines, log, names_again, split_url, status_line
from state.background import Background

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

# Of a body that the app has not asked for; then the client has to wait.
HELD_BYTES = 64 * 1024
# Of a head that comes in several reads; and of what comes within a body and is none of it:
# trailers, extensions of chunks.
HEAD_BYTES = 64 * 1024
# A request is to come whole within this time, and a second more for so many bytes of it.
REQUEST_S = 30.0
LEAST_BYTES_A_SECOND = 16 * 1024
# What a client still sends is read for so long after the last reply. A connection that is closed
# with bytes unread is reset, and the reset may reach the client before it has read the reply
# (RFC 9112, 9.6).
LAST_S = 2.0
_CLOSE = (b"connection", b"close")
_ASGI = {"version": "3.0", "spec_version": "2.3"}
_background = Background()


class Protocol(asyncio.Protocol):
    """A connection. Its loop calls it, and the cycles that it has begun."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.loop = _loop or asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[None] | None] = server_state.tasks  # type: ignore[assignment]
        self._app = config.loaded_app
        self._patience_s = config.timeout_keep_alive
        self._server = server_state
        self._app_state = app_state
        self._extensions = {DIRECT: self}
        self._parser: Any = httptools.HttpRequestParser(self)
        # A client that says "close" and pipelines more is answered what it asked first.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._here: tuple[str, int | None] | None = None
        self._there: tuple[str, int] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # when it looks
        self._idle_since = self.loop.time()
        self._begun = 0.0  # when a request that is not whole began to come; what we did not read is not counted against it
        self._came = 0  # bytes of it
        self._beside = 0  # bytes since the last one of its body; -1 = that one came just now
        self._paused_at = 0.0
        self._url = b""
        self._parts: tuple[bytes, str, bytes, bytes] = (b"", "", b"", b"")  # of the last URL: itself, path, raw path, query
        self._headers: list[tuple[bytes, bytes]] | None = None  # while a head is being read
        self._head_bytes = 0
        self._hosts = 0
        self._continues = False
        self._refusal: tuple[int, bytes] | None = None  # of a request that can't be understood: the last reply, in its turn
        self._is_over = False  # the last reply was sent: what still comes is dropped
        self._reading: Cycle | None = None  # its body comes, or has come
        self._running: Cycle | None = None  # the app answers it
        self._behind: collections.deque[Cycle] = collections.deque()  # asked before those before them were answered
        self.paused = False
        self._drain: asyncio.Future[None] | None = None  # while the client reads too slowly
        self._dated: tuple[list[tuple[bytes, bytes]], bytes] = ([], b"")

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._here, self._there = get_local_addr(self._transport), get_remote_addr(self._transport)
        self._server.connections.add(self)  # type: ignore[arg-type]
        self._check_in(self._patience_s)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._running is not None:
            self._running.gone = True
            self._running.wake()
        self._behind.clear()
        self.resume_writing()
        self._extensions.clear()
        self._parser = None

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None or self._is_over:
            return
        within = self._headers is not None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Answered as if the client had not offered it; what comes after the head is in another
            # protocol or in none.
            if self._reading is not None:
                self._reading.keep_alive = False
        except httptools.HttpParserError as error:
            why = error.__context__  # what our callback has raised, if it was not the parser
            log.info("a request that cannot be read: %s", why or error)
            self._refuse(400, str(why).encode() if isinstance(why, NotHttp) else b"The request is not HTTP/1.1.")
        else:
            if self._headers is not None or (self._reading is not None and self._reading.more_body):
                self._unfinished(len(data), within)

    def pause_writing(self) -> None:
        self._drain = self._drain or self.loop.create_future()

    def resume_writing(self) -> None:
        drain, self._drain = self._drain, None
        if drain is not None:
            drain.set_result(None)
        self._next()

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._head_bytes = 0
        self._hosts = 0
        self._continues = False
        self._begun = 0.0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self._headers
        if headers is None:  # a trailer, which may be ignored (RFC 9112, 7.1.2)
            return
        name = name.lower()
        if name == b"host":
            if self._hosts == 1 and names_again(headers, value):
                return
            self._hosts += 1
            if HOST.fullmatch(value) is None:
                raise NotHttp("The header Host is not a name and a port.")
        elif name == b"expect":
            self._continues = value.lower() == b"100-continue"
        headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        if self._url != self._parts[0]:
            self._parts = split_url(self._url)
        version = parser.get_http_version()
        if version == "1.1":
            if self._hosts != 1:
                raise NotHttp(f"A request of HTTP/1.1 has one header Host, this one has {self._hosts}.")
        elif version != "1.0":
            raise NotHttp(f"The request is not HTTP/1.1, but {version}.")
        _, path, raw_path, query = self._parts
        scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "scheme": "http",
            "path": path,
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": self._headers,
            "server": self._here,
            "client": self._there,
            "state": self._app_state.copy(),
            "extensions": self._extensions,
        }
        self._headers = None
        self._beside = -1
        keep_alive = version != "1.0" and parser.should_keep_alive()
        self._reading = cycle = Cycle(self, scope, keep_alive=keep_alive, continues=self._continues)
        if self._running is None and not self._behind and self._drain is None:
            self._run(cycle)
        else:
            self._behind.append(cycle)
            self.pace()

    def on_body(self, body: bytes) -> None:
        self._beside = -1
        cycle = self._reading
        if cycle is None or cycle.ended:  # answered already: the rest is let go
            return
        cycle.chunks.append(body)
        cycle.held = held = cycle.held + len(body)
        if cycle.waiters:
            cycle.wake()
        if held > HELD_BYTES:
            self.pace()

    def on_message_complete(self) -> None:
        cycle = self._reading
        if cycle is not None:
            cycle.more_body = False
            if cycle.waiters:
                cycle.wake()

    # What cycles, the app and uvicorn's server call.

    def whole_body(self) -> bytes | None:
        """See `facade.http.asgi.DirectBody`."""
        return None if self._running is None else self._running.whole_body()

    def reply(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, *, look: bool = False) -> bool:
        """See `facade.http.asgi.DirectBody`: answers the request whose turn it is. Raises
        ValueError for a header of more than one line.
        """
        cycle = self._running
        if cycle is None or cycle.gone or cycle.started:
            return False
        if look and has_left(self._transport):
            cycle.gone = True
            return False
        shown = b"" if cycle.scope["method"] == "HEAD" else body
        self._transport.write(self.message(status, [*headers, *self.own_headers(cycle)], shown))
        cycle.started = True
        self.end(cycle)
        return True

    def message(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
        """A reply as it is sent. Raises ValueError for a header of more than one line."""
        given = self._server.default_headers  # the date; uvicorn's server renews it once a second
        if given is not self._dated[0]:
            self._dated = (given, header_lines(given))
        return b"".join((status_line(status), header_lines(headers), self._dated[1], b"\r\n", body))

    def own_headers(self, cycle: Cycle) -> list[tuple[bytes, bytes]]:
        """What a connection adds to a reply. A client that still waits for "100 Continue" may send
        its body or not: nobody can tell.
        """
        if cycle.continues and cycle.more_body:
            cycle.keep_alive = False
        return [] if cycle.keep_alive else [_CLOSE]

    def write(self, data: bytes) -> None:
        if data:
            self._transport.write(data)

    def end(self, cycle: Cycle) -> None:
        """The reply is whole: the next request's turn."""
        cycle.ended = True
        if cycle.waiters:
            cycle.wake()
        self._server.total_requests += 1
        self._running = None
        if not cycle.keep_alive:
            self._finish() if cycle.more_body else self.close()
            return
        self._idle_since = self.loop.time()
        if self._behind or self.paused or self._refusal is not None:
            self._next()

    def pace(self) -> None:
        """Lets the client send, or not: not while it has asked for what comes later, or sends more
        than the app takes.
        """
        cycle = self._reading
        full = bool(self._behind) or (cycle is not None and not cycle.ended and cycle.held > HELD_BYTES)
        if full is not self.paused and not self._is_over and not self._transport.is_closing():
            self.paused = full
            if full:
                self._paused_at = self.loop.time()
                self._transport.pause_reading()
            else:
                if self._begun:
                    self._begun += self.loop.time() - self._paused_at
                self._transport.resume_reading()

    async def drained(self) -> None:
        """Returns when the client has read enough of what was written."""
        while self._drain is not None:
            await asyncio.shield(self._drain)

    def close(self) -> None:
        """Ends the connection when what was written has left."""
        self._transport.close()

    def _finish(self) -> None:
        """The last reply was sent, and its client may still be sending: closes a moment later."""
        if self._is_over or self._transport.is_closing():
            return
        self._is_over = True
        self._behind.clear()
        if self.paused:
            self.paused = False
            self._transport.resume_reading()
        self._transport.write_eof()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(LAST_S, self.close)

    def shutdown(self) -> None:
        """uvicorn's server ends: what is being answered is the last."""
        if self._running is None:
            self.close()
        else:
            self._running.keep_alive = False

    def _run(self, cycle: Cycle) -> None:
        self._running = cycle
        cycle.task = _background.start(cycle.run(self._app), "request")
        self.tasks.add(cycle.task)

    def _next(self) -> None:
        if self._running is None and self._drain is None and not self._is_over and not self._transport.is_closing():
            if self._behind:
                self._run(self._behind.popleft())
            elif self._refusal is not None:
                status, text = self._refusal
                headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text)), _CLOSE]
                self.write(self.message(status, headers, text))
                self._finish()
        self.pace()

    def _unfinished(self, size: int, within: bool) -> None:
        """What has come is not a whole request. Bounds what is kept of it besides its body, and for
        how long it is waited for.
        """
        if self._headers is not None:
            self._head_bytes += size if within else 0
            beside, what = self._head_bytes, b"The head of a request"
        else:
            self._beside = self._beside + size if self._beside >= 0 else 0
            beside, what = self._beside, b"What comes beside a request's body"
        if beside > HEAD_BYTES:
            self._refuse(431, b"%b may have %d bytes." % (what, HEAD_BYTES))
            return
        if not self._begun:
            self._begun, self._came = self.loop.time(), 0
            if self._due > self._begun + REQUEST_S:
                self._check_in(REQUEST_S)
        self._came += size

    def _check_in(self, seconds: float) -> None:
        if self._is_over:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._check_pace)

    def _check_pace(self) -> None:
        """Refuses a request that comes too slowly; closes a connection on which nothing was asked
        for a while.
        """
        now = self.loop.time()
        if self._headers is not None or (self._reading is not None and self._reading.more_body):
            left_s = REQUEST_S if self.paused else self._begun + REQUEST_S + self._came / LEAST_BYTES_A_SECOND - now
            if left_s <= 0:
                self._refuse(408, b"The request did not come whole in %d s." % (now - self._begun))
                left_s = self._patience_s
        else:
            left_s = self._patience_s if self._running is not None else self._idle_since + self._patience_s - now
            if left_s <= 0:
                self.close()
                return
        self._check_in(left_s)

    def _refuse(self, status: int, text: bytes) -> None:
        """Says what is wrong with the request that is coming, after the replies to those before it,
        and closes.
        """
        if self._refusal is not None:
            return
        self._refusal = (status, text)
        wrong = self._reading
        if wrong is not None and wrong.more_body:
            if wrong.started:  # a second reply to it would be taken for the next one's
                self.close()
            elif wrong is self._running:
                self._running = None
            else:
                self._behind.pop()
            # Its app hears that nobody is there.
            wrong.gone = wrong.ended = True
            wrong.wake()
        self._next()
