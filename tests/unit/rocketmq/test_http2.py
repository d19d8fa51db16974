"""The RocketMQ port against clients that speak HTTP/2 and mean harm."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, StreamEnded, TrailersReceived

from engine.errors import Overloaded
from facade.dialects.rocketmq.http2 import connection as module
from facade.dialects.rocketmq.http2 import port as bounds
from facade.dialects.rocketmq.http2.connection import Connection
from facade.dialects.rocketmq.http2.framing import CallEnded, GrpcStatus, end
from facade.dialects.rocketmq.http2.port import HELD_BYTES, Port
from facade.dialects.rocketmq.http2.rpc import Gone, Rpc
from facade.http.bounds import pace
from facade.http.bounds.shares import MIB

HEAD = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "x"),
    (":path", "/s/m"),
    ("content-type", "application/grpc"),
]
KNOWN = [*HEAD, ("x-known", "yes")]
LARGE = 4_900_000


class Served:
    """A port whose calls are answered with the size of their message; strangers are refused."""

    def __init__(self) -> None:
        self.port = Port(100)
        self.connections: list[Connection] = []
        self.clients: list[Client] = []
        self.sizes: list[int] = []
        self.ended: list[BaseException] = []
        self.address = ("", 0)

    def connection(self) -> Connection:
        self.connections.append(Connection(self.port, self.serve))
        return self.connections[-1]

    async def serve(self, rpc: Rpc) -> None:
        if "x-known" not in rpc.metadata:
            end(GrpcStatus.UNAUTHENTICATED, "who are you?")
        rpc.identify("somebody")
        try:
            body = await rpc.message()
        except Overloaded as error:  # which the exchange would say
            end(GrpcStatus.UNAVAILABLE, error.detail)
        except BaseException as error:
            self.ended.append(error)
            raise
        assert body is not None
        self.sizes.append(len(body))
        try:
            await rpc.write(b"y" * int(rpc.metadata.get("x-answer", "2")))
        except Gone as error:
            self.ended.append(error)
            raise


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    server = await asyncio.get_running_loop().create_server(served.connection, "127.0.0.1", 0)
    served.address = server.sockets[0].getsockname()
    yield served
    server.close()
    for one in served.connections:
        one.close()
    for client in served.clients:
        client.writer.close()
    await asyncio.sleep(0.05)
    assert served.port.calls == 0 and served.port.shares.held == 0 and served.port.shares.coming == 0
    assert not served.port.there


class Client:
    """A client that does as it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.http2 = H2Connection(H2Configuration(client_side=True))
        self.events: list[Any] = []
        self.is_closed = False

    @classmethod
    async def to(cls, served: Served) -> Client:
        client = cls(*await asyncio.open_connection(*served.address[:2]))
        served.clients.append(client)
        client.http2.initiate_connection()
        await client.read(0.05)
        return client

    async def flush(self) -> None:
        self.writer.write(self.http2.data_to_send())
        await self.writer.drain()

    async def read(self, wait_s: float = 0.5, until: Callable[[Any], bool] = lambda event: False) -> None:
        """Reads until an event, the end of the connection, or for so long."""
        try:
            await self.flush()
            async with asyncio.timeout(wait_s):
                while data := await self.reader.read(65_536):
                    events = self.http2.receive_data(data)
                    self.events += events
                    await self.flush()
                    if any(map(until, events)):
                        return
                self.is_closed = True
        except TimeoutError:
            pass
        except ConnectionError:
            self.is_closed = True

    def begin(self, head: list[tuple[str, str]], size: int, sent: bytes = b"", *, whole: bool = False) -> int:
        """A call whose message has `size` bytes, and the first of them."""
        number = self.http2.get_next_available_stream_id()
        self.http2.send_headers(number, head)
        self.http2.send_data(number, struct.pack(">BI", 0, size) + sent, end_stream=whole)
        return int(number)

    def push(self, number: int, size: int) -> int:
        """Sends as much of `size` bytes as the server has room for; how much that is."""
        sent = 0
        while sent < size:
            part = min(self.http2.local_flow_control_window(number), self.http2.max_outbound_frame_size, size - sent)
            if part <= 0:
                break
            self.http2.send_data(number, b"A" * part)
            sent += part
        return sent

    def status(self, number: int) -> str | None:
        """The status of gRPC that a call has ended with."""
        for event in self.events:
            if getattr(event, "stream_id", None) == number and hasattr(event, "headers"):
                for name, value in event.headers:
                    if bytes(name) == b"grpc-status":
                        return bytes(value).decode()
        return None


def is_end(event: Any) -> bool:
    return isinstance(event, StreamEnded)


async def test_a_stranger_sends_one_window_of_a_body_and_is_cut_off(served: Served) -> None:
    client = await Client.to(served)
    numbers = [client.begin(HEAD, LARGE) for _ in range(50)]
    sent = sum(client.push(number, LARGE) for number in numbers)
    await client.read(3)
    assert sent <= 4 * MIB and client.is_closed
    assert {client.status(number) for number in numbers} == {str(int(GrpcStatus.UNAUTHENTICATED))}
    assert any(isinstance(event, ConnectionTerminated) for event in client.events)
    assert served.sizes == [] and served.port.shares.held == 0


async def test_a_whole_request_of_a_stranger_is_refused_and_leaves_its_connection(served: Served) -> None:
    client = await Client.to(served)
    refused = client.begin(HEAD, 3, b"abc", whole=True)
    await client.read(until=is_end)
    known = client.begin(KNOWN, 3, b"abc", whole=True)
    await client.read(until=is_end)
    assert client.status(refused) == str(int(GrpcStatus.UNAUTHENTICATED)) and client.status(known) == "0"
    assert served.sizes == [3]


async def test_a_large_body_of_somebody_known_comes_whole(served: Served) -> None:
    client = await Client.to(served)
    number = client.begin(KNOWN, LARGE)
    left = LARGE - client.push(number, LARGE)
    while left:
        await client.read(2, lambda event: True)
        left -= client.push(number, left)
    client.http2.end_stream(number)
    await client.read(2, is_end)
    assert client.status(number) == "0" and served.sizes == [LARGE]


async def test_large_bodies_have_room_together_and_who_finds_none_is_refused(served: Served) -> None:
    client = await Client.to(served)
    left = {client.begin(KNOWN, LARGE): LARGE - 1 for _ in range(100)}
    for _ in range(20):
        for number in list(left):
            if client.status(number) is None:
                left[number] -= client.push(number, left[number])
        await client.read(0.1)
        assert served.port.shares.held <= HELD_BYTES
    refused = [number for number in left if client.status(number) == str(int(GrpcStatus.UNAVAILABLE))]
    assert 80 <= len(refused) < 100


@pytest.mark.parametrize("sent", [b"", b"some"])
async def test_a_request_that_does_not_come_ends(served: Served, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(pace, "SPAN_S", 0.3)
    client = await Client.to(served)
    number = client.begin(KNOWN, 1000, sent)
    await client.read(5, is_end)
    assert client.status(number) == str(int(GrpcStatus.RESOURCE_EXHAUSTED))
    assert [type(error) for error in served.ended] == [CallEnded]


async def test_a_deadline_ends_a_call(served: Served) -> None:
    client = await Client.to(served)
    number = client.begin([*KNOWN, ("grpc-timeout", "200m")], 1000)
    await client.read(5, is_end)
    assert client.status(number) == str(int(GrpcStatus.DEADLINE_EXCEEDED))


async def look(served: Served, later_s: float) -> None:
    for one in list(served.connections):
        one.look(asyncio.get_running_loop().time() + later_s)
    await asyncio.sleep(0.05)


async def test_connections_that_nobody_uses_are_closed(served: Served) -> None:
    stranger, known, partial = await Client.to(served), await Client.to(served), await Client.to(served)
    known.begin(KNOWN, 1, b"x", whole=True)
    await known.read(2, is_end)
    partial.begin(KNOWN, 1, b"x", whole=True)
    await partial.read(2, is_end)
    partial.writer.write(b"\0\0\x08")
    await asyncio.sleep(0.1)
    await look(served, module.STRANGER_S + 1)
    for one, closed in ((stranger, True), (known, False), (partial, True)):
        await one.read(0.2)
        assert one.is_closed is closed
    await look(served, module.IDLE_S + 1)
    await known.read(0.2)
    assert known.is_closed and any(isinstance(event, ConnectionTerminated) for event in known.events)


async def test_a_client_that_is_silent_while_it_waits_is_asked_and_then_closed(served: Served) -> None:
    client = await Client.to(served)
    client.begin(KNOWN, 10)
    await client.flush()
    await asyncio.sleep(0.1)
    await look(served, module.PING_S + 1)
    await client.read(0.2)
    assert not client.is_closed and any(type(event).__name__ == "PingReceived" for event in client.events)
    await look(served, module.SILENT_S + 1)
    await client.read(0.2)
    assert client.is_closed


PING = b"\0\0\x08\x06\0\0\0\0\0" + b"leaseway"
EMPTY_DATA = b"\0\0\0\0\0\0\0\0\1"
PRIORITY = b"\0\0\x05\x02\0\0\0\0\x01" + b"\0\0\0\0\x10"
SMALL_DATA = b"\0\0\1\0\0\0\0\0\1" + b"x"
PADDING = b"\0\0\x21\0\x08\0\0\0\1\x20" + b"\0" * 32
CONTINUED = b"\0\0\x01\x01\0\0\0\0\x01\x88" + (b"\0\x40\0\x09\0\0\0\0\x01" + b"\0" * 16_384) * 4


@pytest.mark.parametrize(
    "flood",
    [
        PING * 4000,
        PRIORITY * 4000,
        EMPTY_DATA * 4000,
        SMALL_DATA * 4000,
        PADDING * 4000,
        CONTINUED,
        b"\1\0\0\0\0\0\0\0\0",
    ],
)
async def test_frames_that_bring_nothing_end_their_connection(served: Served, flood: bytes) -> None:
    client = await Client.to(served)
    if flood[3] == 0:  # parts of a body
        client.begin(KNOWN, 100_000)
        await client.flush()
    client.writer.write(flood)
    await client.read(3)
    assert client.is_closed


async def test_calls_that_are_taken_back_at_once_leave_nothing(served: Served) -> None:
    client = await Client.to(served)
    for _ in range(500):
        client.http2.reset_stream(client.begin(KNOWN, 1, b"x"))
    number = client.begin(KNOWN, 1, b"x", whole=True)
    await client.read(3, is_end)
    assert client.status(number) == "0" and served.port.calls == 0
    for _ in range(3000):
        client.http2.reset_stream(client.begin(KNOWN, 1, b"x"))
    await client.read(3)
    assert client.is_closed


async def test_strangers_of_one_address_are_few(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "STRANGERS_OF_PEER", 5)
    known = await Client.to(served)
    known.begin(KNOWN, 1, b"x", whole=True)
    await known.read(2, is_end)
    strangers = [await Client.to(served) for _ in range(8)]
    await asyncio.sleep(0.1)
    for one in (known, *strangers):
        await one.read(0.1)
    assert [one.is_closed for one in (known, *strangers)] == [False, *[True] * 3, *[False] * 5]


async def test_an_address_has_a_part_of_all_connections(served: Served) -> None:
    clients = []
    for _ in range(served.port.connections.most // bounds.PEER_PART + 3):
        client = await Client.to(served)
        client.begin(KNOWN, 10)
        await client.read(0.02)
        clients.append(client)
    await clients[-1].read(1)
    assert clients[-1].is_closed and not clients[0].is_closed
    assert len(served.port.there) <= served.port.connections.most // bounds.PEER_PART


async def test_a_client_that_says_farewell_gets_its_answers(served: Served) -> None:
    client = await Client.to(served)
    number = client.begin(KNOWN, 4, b"abc")
    await client.flush()
    client.writer.write(b"\0\0\x08\x07\0\0\0\0\0" + b"\0" * 8)
    await asyncio.sleep(0.1)
    client.http2.send_data(number, b"d", end_stream=True)
    await client.read(2, is_end)
    assert client.status(number) == "0"


async def test_a_client_that_reads_nothing_of_its_answer_is_closed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STALL_S", 0.3)
    client = await Client.to(served)
    client.begin([*KNOWN, ("x-answer", "100000")], 1, b"x", whole=True)  # the client's window has 65,535
    await client.read(3)
    assert client.is_closed and [type(error) for error in served.ended] == [Gone]


async def test_an_answer_comes_as_the_client_makes_room(served: Served) -> None:
    client = await Client.to(served)
    number = client.begin([*KNOWN, ("x-answer", "1000000")], 1, b"x", whole=True)
    size = 0

    def count(event: Any) -> bool:
        nonlocal size
        if isinstance(event, DataReceived):
            size += len(event.data)
            client.http2.acknowledge_received_data(event.flow_controlled_length, number)
        return isinstance(event, TrailersReceived)

    await client.read(5, count)
    assert size == 1_000_005 and client.status(number) == "0"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ([*KNOWN, *[(f"x-{n}", "y" * 100) for n in range(150)]], GrpcStatus.RESOURCE_EXHAUSTED),
        ([(":method", "GET"), *KNOWN[1:]], GrpcStatus.INTERNAL),
        ([*KNOWN[:4], ("content-type", "text/plain")], GrpcStatus.INTERNAL),
    ],
)
async def test_heads_that_are_none_of_a_call_are_refused(
    served: Served, head: list[tuple[str, str]], status: GrpcStatus
) -> None:
    client = await Client.to(served)
    number = client.begin(head, 1, b"x", whole=True)
    await client.read(2, is_end)
    assert client.status(number) == str(int(status)) and served.sizes == []


Body = Callable[[Client], Awaitable[None]]


@pytest.mark.parametrize(
    ("prefix", "status"),
    [(b"\1\0\0\0\1", GrpcStatus.UNIMPLEMENTED), (b"\0\0\x4c\x4b\x41", GrpcStatus.RESOURCE_EXHAUSTED)],
)
async def test_messages_that_are_not_served_are_refused(served: Served, prefix: bytes, status: GrpcStatus) -> None:
    client = await Client.to(served)
    number = client.http2.get_next_available_stream_id()
    client.http2.send_headers(number, KNOWN)
    client.http2.send_data(number, prefix + b"x")
    await client.read(2, is_end)
    assert client.status(number) == str(int(status))
