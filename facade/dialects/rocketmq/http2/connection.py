"""A connection of the RocketMQ port: HTTP/2 by h2, a call for each stream.

The client may send a window of each stream before it is known; all else has to be asked for by the
handler of the call (`rpc`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from hpack import Decoder
from hyperframe.frame import GoAwayFrame

from facade.dialects.rocketmq.http2.frames import FRAME_BYTES, HEAD_BYTES, Frames, Hostile
from facade.dialects.rocketmq.http2.framing import METADATA_BYTES, CallEnded, GrpcStatus, timeout_of, trailers
from facade.dialects.rocketmq.http2.port import MOST_CALLS
from facade.dialects.rocketmq.http2.rpc import WINDOW_BYTES, Gone, Rpc
from facade.http.bounds.peers import counted_as
from runtime.background import Background

if TYPE_CHECKING:
    from facade.dialects.rocketmq.http2.port import Port

STREAMS: Final = 1000  # of a connection at once
STRANGER_S: Final = 10.0  # for the first call of somebody known
PARTIAL_S: Final = 10.0  # for a frame or a head that has begun
IDLE_S: Final = 300.0  # without a call
PING_S, SILENT_S = 90.0, 120.0  # without a byte, while calls are open
LINGER_S: Final = 1.0  # of a stranger's connection that was refused while a body came
STALL_S: Final = 30.0  # for a client to read something of an answer
_WINDOW_BYTES: Final = 4 * 1024 * 1024  # of a connection, all streams together
_CLOSED_STREAMS: Final = 1024  # that are remembered, for what comes late
_BEGIN: Final = [(":status", "200"), ("content-type", "application/grpc")]

log = logging.getLogger("leaseway.rocketmq")
logging.getLogger("hpack").setLevel(logging.WARNING)  # below that it writes heads, signatures too
Serve = Callable[[Rpc], Awaitable[None]]


class _Http2(H2Connection):  # type: ignore[misc]  # h2 is Any to mypy
    """h2's side of a connection, with bounds of ours. Its own would remember 65,536 closed streams,
    some MB of each connection.
    """

    MAX_CLOSED_STREAMS = _CLOSED_STREAMS

    def __init__(self) -> None:
        super().__init__(
            H2Configuration(
                False, header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
            )
        )
        values: dict[SettingCodes, int] = {
            SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS,
            SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
            SettingCodes.MAX_FRAME_SIZE: FRAME_BYTES,
            SettingCodes.MAX_HEADER_LIST_SIZE: HEAD_BYTES,
        }
        self.local_settings = Settings(client=False, initial_values=values)
        self.decoder = Decoder(max_header_list_size=HEAD_BYTES)


class Connection(asyncio.Protocol):
    """`serve` answers a rpc."""

    def __init__(self, port: Port, serve: Serve) -> None:
        self.peer = ""
        self._port = port
        self._serve = serve
        self._http2: Any = _Http2()
        self._calls: dict[int, tuple[Rpc, asyncio.Task[None]]] = {}
        self._background = Background()
        self._loop = asyncio.get_running_loop()
        self._frames = Frames(self._loop.time())
        self._transport: asyncio.Transport
        self._is_known = self._is_closing = self._is_paused = False
        self._since = self._read_at = self._loop.time()  # since when there is no call
        self._pinged = False
        self._is_cut_off = False  # somebody unknown was refused while a body came
        self._is_deaf = False  # and what comes still is dropped
        self._unread = 0  # bytes of the connection's window that are used up
        self._room = asyncio.Event()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        name = transport.get_extra_info("peername")
        self.peer = counted_as(name[0]) if isinstance(name, tuple) else counted_as("")
        if not self._port.enter(self, self._loop.time()):
            self._transport.abort()
            return
        self._http2.initiate_connection()
        self._http2.increment_flow_control_window(_WINDOW_BYTES - WINDOW_BYTES)
        self._flush()

    def data_received(self, data: bytes) -> None:
        if self._is_deaf or self._transport.is_closing():
            return
        now = self._read_at = self._loop.time()
        self._pinged = False
        try:
            events = self._http2.receive_data(self._frames.whole(data, now))
        except (ProtocolError, Hostile) as error:
            log.debug("action=close peer=%s error=%s", self.peer, error)
            self._end(ErrorCodes.ENHANCE_YOUR_CALM if isinstance(error, Hostile) else None)
            return
        for event in events:
            self._heed(event, now)
        self._flush()

    def pause_writing(self) -> None:
        self._is_paused = True
        self._transport.pause_reading()  # its requests would add answers

    def resume_writing(self) -> None:
        self._is_paused = False
        self._room.set()
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._port.leave(self)
        for rpc, task in list(self._calls.values()):
            rpc.leave()
            task.cancel()
        self._room.set()

    # What the port and the server ask.

    @property
    def idle_since(self) -> float | None:
        """Since when no call of somebody known is under way; None = one is."""
        return None if self._calls and self._is_known else self._since

    def close(self) -> None:
        """Ends it at once."""
        self._transport.abort()

    def drain(self) -> None:
        """Takes no more calls, and ends when none is under way."""
        if not self._is_closing and not self._transport.is_closing():
            self._is_closing = True
            self._farewell()
            self._rest()

    def _farewell(self) -> None:
        # h2's own would let it send nothing more on streams that are open.
        self._transport.write(GoAwayFrame(0, last_stream_id=self._http2.highest_inbound_stream_id).serialize())

    def look(self, now: float) -> None:
        """Ends the connection when its client is too slow, or not there; asked each second."""
        partial = self._frames.partial_since
        if (partial is not None and now - partial > PARTIAL_S) or (
            not self._is_known and now - self._since > STRANGER_S
        ):
            self.close()
        elif not self._calls:
            if now - self._since > IDLE_S:
                self.drain()
        elif now - self._read_at > SILENT_S:
            self.close()
        elif now - self._read_at > PING_S and not self._pinged:
            self._pinged = True
            self._http2.ping(b"leaseway")
            self._flush()

    # What a call asks.

    def identified(self) -> None:
        """Somebody known has called."""
        if not self._is_known:
            self._is_known = True
            self._port.identified(self)

    def open_window(self, number: int, size: int) -> None:
        """Lets the client send so much more on a stream."""
        self._http2.increment_flow_control_window(size, number)
        self._flush()

    async def send(self, rpc: Rpc, data: bytes) -> None:
        """Returns when the client has room for the last of it. Raises Gone."""
        self._begin(rpc)
        rest = memoryview(data)
        while rest:
            if rpc.is_over:
                raise Gone
            size = min(
                self._http2.local_flow_control_window(rpc.number), self._http2.max_outbound_frame_size, len(rest)
            )
            if self._is_paused or size <= 0:
                self._flush()
                await self._wait_for_room()
                continue
            self._http2.send_data(rpc.number, bytes(rest[:size]))
            self._frames.earn(2)
            rest = rest[size:]
        self._flush()

    async def _wait_for_room(self) -> None:
        self._room.clear()
        try:
            async with asyncio.timeout(STALL_S):
                await self._room.wait()
        except TimeoutError:
            self.close()
            raise Gone from None

    def _begin(self, rpc: Rpc) -> None:
        if rpc.is_over:
            raise Gone
        if rpc.begin():
            self._http2.send_headers(rpc.number, _BEGIN)

    def _finish(self, rpc: Rpc, status: GrpcStatus, text: str) -> None:
        if rpc.is_over or self._transport.is_closing():
            return
        words = trailers(status, text)
        if not rpc.is_begun:
            words = [*_BEGIN, *words]
        try:
            self._http2.send_headers(rpc.number, words, end_stream=True)
            if not rpc.is_whole and self._is_known:
                self._http2.reset_stream(rpc.number, ErrorCodes.NO_ERROR)  # nobody reads what comes
        except ProtocolError as error:  # h2 has ended the stream itself
            log.debug("action=finish peer=%s error=%s", self.peer, error)
        self._frames.earn(2)
        self._flush()
        if not rpc.is_whole and not self._is_known:
            self._is_closing = self._is_cut_off = True

    # What comes.

    def _heed(self, event: Event, now: float) -> None:
        if isinstance(event, DataReceived):
            self._used(event.flow_controlled_length)
            if (found := self._calls.get(event.stream_id)) is not None:
                found[0].came(event.data, now)
        elif isinstance(event, RequestReceived):
            self._open(event, now)
        elif isinstance(event, StreamEnded):
            if (found := self._calls.get(event.stream_id)) is not None:
                found[0].ended()
        elif isinstance(event, StreamReset):
            if (found := self._calls.get(event.stream_id)) is not None:
                found[0].leave()
                found[1].cancel()
        elif isinstance(event, WindowUpdated | RemoteSettingsChanged):
            self._room.set()

    def _used(self, size: int) -> None:
        """The window of the connection bounds nothing: those of the streams do."""
        self._unread += size
        if self._unread >= _WINDOW_BYTES // 4:
            self._http2.increment_flow_control_window(self._unread)
            self._unread = 0

    def _open(self, event: RequestReceived, now: float) -> None:
        metadata: dict[str, str] = {}
        size = 0
        for name, value in event.headers:
            size += len(name) + len(value) + 32
            metadata.setdefault(bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
        left_s = timeout_of(metadata.get("grpc-timeout", ""))
        deadline = None if left_s is None else now + left_s
        number = event.stream_id
        rpc = Rpc(self, number, metadata.get(":path", ""), metadata, self.peer, deadline, self._port.shares)
        refusal = self._refusal(metadata, size)
        if refusal is not None:
            if event.stream_ended is not None:
                rpc.ended()
            self._finish(rpc, *refusal)
            return
        task = self._background.start(self._run(rpc), "serve a call")
        self._calls[number] = (rpc, task)
        task.add_done_callback(partial(self._done, rpc))  # a task that is cancelled at once never runs

    def _refusal(self, metadata: dict[str, str], size: int) -> tuple[GrpcStatus, str] | None:
        """Why a call is not begun."""
        if self._is_closing:
            return GrpcStatus.UNAVAILABLE, "the worker stops"
        if metadata.get(":method") != "POST" or not metadata.get("content-type", "").startswith("application/grpc"):
            return GrpcStatus.INTERNAL, "that is no request of gRPC"
        if size > METADATA_BYTES:
            return (
                GrpcStatus.RESOURCE_EXHAUSTED,
                f"the metadata of a request has {METADATA_BYTES} bytes at most, given {size}",
            )
        if not self._port.begin():
            return GrpcStatus.RESOURCE_EXHAUSTED, f"a worker serves {MOST_CALLS} requests at once"
        return None

    async def _run(self, rpc: Rpc) -> None:
        status, text = GrpcStatus.OK, ""
        try:
            async with asyncio.timeout_at(rpc.deadline):
                await self._serve(rpc)
        except CallEnded as ended:
            status, text = ended.status, ended.text
        except TimeoutError:
            status, text = GrpcStatus.DEADLINE_EXCEEDED, "the deadline of the request is over"
        except Gone:
            return
        except Exception:
            log.exception("a call of %s failed", rpc.path[:200])
            status, text = GrpcStatus.INTERNAL, "something went wrong in the service"
        self._finish(rpc, status, text)

    def _done(self, rpc: Rpc, _: asyncio.Task[None]) -> None:
        rpc.close()
        self._port.end()
        del self._calls[rpc.number]
        if self._is_known:
            self._since = self._loop.time()
        self._rest()

    def _rest(self) -> None:
        """Closes a connection that takes no more calls when the last is answered."""
        if self._is_closing and not self._calls:
            if self._is_cut_off and not self._is_deaf:
                # At once, and the client may never read why.
                self._is_deaf = True
                self._farewell()
                self._loop.call_later(LINGER_S, self._transport.close)
            elif not self._is_cut_off:
                self._transport.close()

    def _end(self, code: ErrorCodes | None) -> None:
        """Says why, and closes. None = h2 has said it."""
        if code is not None:
            self._http2.close_connection(code)
        self._flush()
        self._is_closing = True
        for rpc, task in list(self._calls.values()):
            rpc.leave()
            task.cancel()
        self._transport.close()

    def _flush(self) -> None:
        data = self._http2.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)
