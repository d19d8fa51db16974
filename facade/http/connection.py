"""HTTP/1.1 on one connection: requests parsed by llhttp (httptools), each given to the ASGI app,
replies in order.

In place of uvicorn's protocol (ADR 0012); uvicorn's server makes it and ends it (`worker`). An app
of ours may take and give whole bodies by the scope's extension DIRECT. Neighbours: `cycle` is one
request and its reply. It must not know any path. Longer than 250 lines: one connection's state.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.utils import get_local_addr, get_remote_addr

from engine.errors import Overloaded
from facade.http.asgi import DIRECT
from facade.http.bounds.bounds import BOUNDS, Bounds
from facade.http.bounds.connections import TOO_MANY
from facade.http.bounds.pace import HEAD_S, SPAN_S
from facade.http.bounds.peers import UNKNOWN, counted_as
from facade.http.bounds.shares import GAVE_WAY
from facade.http.bounds.unfinished import TooMuch, Unfinished
from facade.http.bounds.unread import Unread
from facade.http.cycle import CLOSE, HOST, Cycle, NotHttp, Replies, has_left, log, names_again, refusal_of, split_url
from state.background import Background

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

# Of a body that the app has not asked for; then the client has to wait.
HELD_BYTES = 64 * 1024
# Each costs ten times what it has, so many small ones are bounded by their number.
HEADERS = 128
# What a client still sends is read for so long after the last reply. A connection that is closed
# with bytes unread is reset, and the reset may reach the client before it has read the reply
# (RFC 9112, 9.6).
LAST_S = 2.0
_background = Background()


class Protocol(asyncio.Protocol):
    """A connection. Its loop calls it, and the cycles that it has begun."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: object = None, *, is_tls: bool = False
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[None] | None] = server_state.tasks  # type: ignore[assignment]
        self._app = config.loaded_app
        self._patience_s = config.timeout_keep_alive
        self._server = server_state
        self.message = Replies(server_state).message
        self.app_state = app_state
        self.extensions = {DIRECT: self}
        self._parser: Any = httptools.HttpRequestParser(self)
        # A client that says "close" and pipelines more is answered what it asked first.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self.scheme = "https" if is_tls else "http"
        self.here: tuple[str, int | None] | None = None
        self.there: tuple[str, int] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # when it looks
        self._idle_since = self.loop.time()
        self._bounds: Bounds = app_state.get(BOUNDS) or Bounds()
        self._unfinished = Unfinished(self._bounds.shares, lambda: self.peer, lambda: self._refuse_for(GAVE_WAY))
        self._paused_at = 0.0
        self._url = b""
        self._parts: tuple[bytes, str, bytes, bytes] = (b"", "", b"", b"")  # of the last URL: itself, path, raw path, query
        self._headers: list[tuple[bytes, bytes]] | None = None  # while a head is being read
        self._hosts, self._continues = 0, False
        # The last reply, in its turn, to a request that can't be understood; with its headers.
        self._refusal: tuple[int, bytes, tuple[tuple[bytes, bytes], ...]] | None = None
        self._is_over = False  # the last reply was sent: what still comes is dropped
        self._reading: Cycle | None = None  # its body comes, or has come
        self._running: Cycle | None = None  # the app answers it
        self._behind: collections.deque[Cycle] = collections.deque()  # asked before those before them were answered
        self.paused = False
        self._drain: asyncio.Future[None] | None = None  # while the client reads too slowly
        self._unread = Unread(self._patience_s)

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self.here, self.there = get_local_addr(self._transport), get_remote_addr(self._transport)
        connections: set[Protocol] = self._server.connections  # type: ignore[assignment]
        connections.add(self)
        if self._bounds.connections.enter(connections, self.loop.time()):
            self._check_in(self._patience_s)
        else:
            self._refuse_for(TOO_MANY)
            if self._bounds.connections.is_crowded(connections):
                self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._running is not None:
            self._running.gone = True
            self._running.wake()
        self._behind.clear()
        self._unfinished.end()
        self.resume_writing()
        self.extensions.clear()
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
            self._refuse_for(why)
        else:
            if self._headers is not None or (self._reading is not None and self._reading.more_body):
                self._note_part(len(data), within)

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
        self._hosts, self._continues = 0, False
        self._unfinished.head_begins()

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
        if len(headers) > HEADERS:
            raise TooMuch(f"A request may have {HEADERS} headers.")

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
        headers = self._headers
        assert headers is not None
        self._headers = None
        self._unfinished.head_ends()
        keep_alive = version != "1.0" and parser.should_keep_alive()
        method = parser.get_method().decode("ascii")
        self._reading = cycle = Cycle(self, method, version, self._parts, headers, keep_alive=keep_alive, continues=self._continues)
        if self._running is None and not self._behind and self._drain is None:
            self._run(cycle)
        else:
            self._behind.append(cycle)
            self._unfinished.wait()
            self.pace()

    def on_body(self, body: bytes) -> None:
        self._unfinished.body_came()
        cycle = self._reading
        if cycle is None or cycle.ended:  # answered already: the rest is let go
            return
        cycle.chunks.append(body)
        cycle.held = held = cycle.held + len(body)
        if self._behind:
            self._unfinished.keep(len(body))
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

    # What cycles, the app, uvicorn's server and the bound of connections call.

    @property
    def peer(self) -> str:
        """The address under which this client is counted."""
        return counted_as(self.there[0]) if self.there else UNKNOWN

    @property
    def idle_since(self) -> float | None:
        """See `facade.http.bounds.connections.Idle`."""
        comes = self._headers is not None or (self._reading is not None and self._reading.more_body)
        is_used = comes or self._running is not None or self._refusal is not None or self._transport.is_closing()
        return None if is_used else self._idle_since

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
        self._transport.write(self.message(status, [*headers, *cycle.own_headers()], shown))
        cycle.started = True
        self.end(cycle)
        return True

    def write(self, data: bytes) -> None:
        if data:
            self._transport.write(data)

    def end(self, cycle: Cycle) -> None:
        """The reply is whole: the next request's turn."""
        cycle.ended = True
        cycle.chunks.clear()
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
                self._unfinished.pace.passed_over(self.loop.time() - self._paused_at)
                self._transport.resume_reading()

    async def drained(self) -> None:
        """Returns when the client has read enough of what was written."""
        while self._drain is not None:
            await asyncio.shield(self._drain)

    def close(self) -> None:
        """Ends the connection when what was written has left, or its client reads nothing of it."""
        if not self._transport.is_closing():
            self._transport.close()
            self._check_in(self._patience_s)

    def _finish(self) -> None:
        """The last reply was sent, and its client may still be sending: closes a moment later."""
        if self._is_over or self._transport.is_closing():
            return
        self._is_over = True
        self._behind.clear()
        if self.paused:
            self.paused = False
            self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._check_in(LAST_S)

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
                cycle = self._behind.popleft()
                if not self._behind:
                    self._unfinished.end()
                self._run(cycle)
            elif self._refusal is not None:
                status, text, more = self._refusal
                headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text)), *more, CLOSE]
                self.write(self.message(status, headers, text))
                self._finish()
        self.pace()

    def _note_part(self, size: int, within: bool) -> None:
        """Bounds what is kept of a request that is not whole, besides its body, and how long."""
        now = self.loop.time()
        try:
            first = self._unfinished.came(size, now, in_head=self._headers is not None, first=not within)
        except (TooMuch, Overloaded) as error:
            self._refuse_for(error)
        else:
            if first and self._due > now + HEAD_S:
                self._check_in(HEAD_S)

    def _check_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._check_pace)

    def _check_pace(self) -> None:
        """Refuses a request that comes too slowly; closes a connection that is idle or has had its
        last reply, and one whose client reads nothing.
        """
        now = self.loop.time()
        unread_s = self._unread.left_s(self._transport.get_write_buffer_size(), now)
        if unread_s <= 0:
            self._transport.abort()
            return
        if self._transport.is_closing():
            left_s = unread_s
        elif not self._is_over and (self._headers is not None or (self._reading is not None and self._reading.more_body)):
            left_s = SPAN_S if self.paused else self._unfinished.pace.left_s(now)
            if left_s <= 0:
                self._refuse(408, b"The request came too slowly: it was not whole after %d s." % (now - self._unfinished.pace.since))
                left_s = LAST_S if self._is_over else self._patience_s
        else:
            left_s = 0 if self._is_over else self._patience_s if self._running is not None else self._idle_left_s(now)
            if left_s <= 0:
                self.close()
                return
        self._check_in(min(left_s, unread_s))

    def _idle_left_s(self, now: float) -> float:
        return self._idle_since + self._patience_s - now

    def _refuse_for(self, error: BaseException | None) -> None:
        """Refuses what can't be understood, is too large, or has no room."""
        self._refuse(*refusal_of(error))

    def _refuse(self, status: int, text: bytes, more: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Says what is wrong with the request that is coming, after the replies to those before it,
        and closes.
        """
        if self._refusal is not None:
            return
        self._refusal = (status, text, more)
        self._headers = None
        self._unfinished.end()
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
