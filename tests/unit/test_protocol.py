"""HTTP as our server speaks it, over real sockets to small ASGI apps: replies in order, bodies
whole, clients that do it wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine.plane.library import Library
from facade.dialect import Response
from facade.http.asgi import direct_of
from facade.http.sockets.answers import Answers
from facade.http.sockets.library import Limits
from facade.http.sockets.listener import Listener, Served
from facade.http.sockets.request import HELD_BYTES

pytestmark = pytest.mark.usefixtures("library")

HEAD_BYTES = 64 * 1024  # native/src/http/head.rs
HEADERS = 128


class Client:
    """A connection to the server."""

    def __init__(
        self, served: Served, listener: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.served = served
        self.listener = listener
        self.reader = reader
        self.writer = writer

    def says(self, first: str, *lines: str, body: bytes = b"") -> None:
        if not any(line.lower().startswith("host:") for line in lines):
            lines = ("Host: localhost", *lines)
        self.writer.write("".join(f"{line}\r\n" for line in (first, *lines)).encode() + b"\r\n" + body)

    @property
    def held(self) -> int:
        """What the server has of the body of the one request that it answers."""
        (one,) = self.listener._requests.values()
        return one._held

    async def hears(self) -> tuple[str, dict[str, str], bytes]:
        """Status line, headers and body of the next reply."""
        async with asyncio.timeout(5):
            first, *rest = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
            headers = dict(line.split(": ", 1) for line in rest)
            assert headers.pop("date").endswith(" GMT") or first.startswith("HTTP/1.1 1")
            if headers.get("transfer-encoding") != "chunked":
                return first, headers, await self.reader.readexactly(int(headers.get("content-length", 0)))
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readexactly(2)
            return first, headers, body

    async def ended(self) -> bool:
        """Whether the server closes, and says nothing before."""
        async with asyncio.timeout(5):
            return await self.reader.read() == b""


class Nothing:
    """Serves plain requests that never come."""

    request_prefix = b"0"
    wants_signatures = trusts_proxy = is_traced = False

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        raise AssertionError(signers)

    def is_stale(self) -> bool:
        return False

    def learn(self, lanes: list[tuple[int, bytes, bytes, bytes, str]]) -> None:
        raise AssertionError(lanes)

    def ask(self, verb: int, lane: int, items: list[Any], answers: Answers) -> None:
        raise AssertionError(items)

    def unsent(self, connections: list[int]) -> None:
        raise AssertionError(connections)

    def start_plane(self, library: Library) -> None:
        pass

    def take_plane(self, news: list[Any], answers: Answers) -> None:
        raise AssertionError(news)

    def collect(self) -> None:
        pass

    def end_plane(self) -> None:
        pass

    def gone(self, connection: int) -> None:
        """Told of every connection."""

    def given(self) -> None:
        """Told of every answer."""


NOTHING = Nothing()


@contextlib.asynccontextmanager
async def serving(
    app: Any, patience_s: float = 5, limits: Limits | None = None, plain: Any = NOTHING
) -> AsyncIterator[Client]:
    served = Served(app, {"of": "lifespan"})
    with socket.create_server(("127.0.0.1", 0)) as bound:
        listener = Listener(bound, plain, served, patience_s, limits=limits)
        reader, writer = await asyncio.open_connection(*bound.getsockname())
        try:
            yield Client(served, listener, reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            listener.close()
            for task in list(served.tasks):
                task.cancel()
            await asyncio.sleep(0)


async def body_of(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        event = await receive()
        assert event["type"] == "http.request"
        body, more = body + event["body"], event["more_body"]
    return body


def reply(scope: Any, response: Response) -> None:
    """Gives a whole reply to our server, if the client has not gone."""
    server = direct_of(scope)
    if server is not None:
        server.reply(response.status, response.headers, response.body)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Says what it was asked, by plain messages."""
    said = (
        f"{scope['method']} {scope['path']} {scope['query_string'].decode()} {scope['http_version']} ".encode()
        + await body_of(receive)
    )
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})


async def whole(scope: Any, receive: Any, send: Any) -> None:
    """The same by whole bodies where they are there, as the front does."""
    server = direct_of(scope)
    assert server is not None
    body = server.whole_body()
    if body is None:
        body = b"(in pieces) " + await body_of(receive)
    said = b"%b %b" % (scope["path"].encode(), body)
    reply(scope, Response(200, [(b"content-length", b"%d" % len(said))], said))


def held_up(going: asyncio.Event) -> Any:
    """An app that echoes, but not before `going`."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await going.wait()
        await echo(scope, receive, send)

    return app


APPS = pytest.mark.parametrize("app", [echo, whole])


async def test_a_request_and_its_reply() -> None:
    async with serving(echo) as client:
        client.says("POST /a%20b/%C3%A4?x=1&y=%20 HTTP/1.1", "Host: x", "Content-Length: 5", body=b"hello")
        assert await client.hears() == (
            "HTTP/1.1 200 OK",
            {"content-length": "32"},
            "POST /a b/ä x=1&y=%20 1.1 hello".encode(),
        )
        assert client.served.requests == 1


async def test_the_scope_is_that_of_asgi() -> None:
    found: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.update(scope)
        await echo(scope, receive, send)

    async with serving(app) as client:
        client.says("GET http://h/a%2Fb HTTP/1.1", "Host: x", "X-Twice: 1", "x-twice: 2")
        await client.hears()
        assert found["headers"] == [(b"host", b"x"), (b"x-twice", b"1"), (b"x-twice", b"2")]
        assert (found["type"], found["scheme"], found["root_path"], found["state"]) == (
            "http",
            "http",
            "",
            {"of": "lifespan"},
        )
        assert (found["path"], found["raw_path"], found["query_string"]) == ("/a/b", b"/a%2Fb", b"")
        assert found["server"][1] == client.writer.get_extra_info("peername")[1]
        assert found["client"] == client.writer.get_extra_info("sockname")


@APPS
async def test_many_requests_at_once_are_answered_in_order(app: Any) -> None:
    async with serving(app) as client:
        for number in range(50):
            client.says(f"POST /{number} HTTP/1.1", "Content-Length: 3", body=b"%03d" % number)
        for number in range(50):
            assert (await client.hears())[2].endswith(b"%03d" % number)


@APPS
async def test_a_large_body_comes_whole(app: Any) -> None:
    body = bytes(range(256)) * 4096
    async with serving(app) as client:
        client.says("POST /large HTTP/1.1", f"Content-Length: {len(body)}", body=body)
        assert (await client.hears())[2].endswith(body)


@APPS
async def test_a_body_in_chunks_comes_whole(app: Any) -> None:
    async with serving(app) as client:
        client.says("POST / HTTP/1.1", "Transfer-Encoding: chunked", body=b"4\r\nfour\r\n")
        await asyncio.sleep(0.02)
        client.writer.write(b"5\r\n,five\r\n0\r\n\r\n")
        assert (await client.hears())[2].endswith(b"four,five")


async def test_who_sends_more_than_is_taken_has_to_wait() -> None:
    taking = asyncio.Event()
    async with serving(held_up(taking)) as client:
        client.says("POST / HTTP/1.1", "Content-Length: 20000000", body=b"x" * 20_000_000)
        await asyncio.sleep(0.1)
        assert HELD_BYTES < client.held < HELD_BYTES + 300_000
        taking.set()
        assert len((await client.hears())[2]) == 20_000_000 + len("POST /  1.1 ")


async def test_who_reads_too_slowly_makes_the_app_wait() -> None:
    sent = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(150):
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
            sent += 1
        await send({"type": "http.response.body"})

    async with serving(app) as client:
        client.says("GET / HTTP/1.1")
        await asyncio.sleep(0.2)
        assert 0 < sent < 150
        assert len((await client.hears())[2]) == 15_000_000


@pytest.mark.parametrize(
    ("version", "given", "kept"), [("1.1", None, True), ("1.1", "close", False), ("1.0", None, False)]
)
@APPS
async def test_a_connection_is_kept_when_the_client_wants_it(
    app: Any, version: str, given: str | None, kept: bool
) -> None:
    async with serving(app) as client:
        client.says(f"GET / HTTP/{version}", *([f"Connection: {given}"] if given else []))
        assert (await client.hears())[1].get("connection") == (None if kept else "close")
        if not kept:
            assert await client.ended()


async def test_a_reply_of_no_stated_length_is_chunked_or_ends_with_the_connection() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        await send({"type": "http.response.body", "body": b" more"})

    async with serving(app) as client:
        client.says("GET / HTTP/1.1")
        assert (await client.hears())[1:] == ({"transfer-encoding": "chunked"}, b"some more")
        client.says("GET / HTTP/1.0")
        assert "transfer-encoding" not in (await client.hears())[1]
        assert await client.reader.read() == b"some more"


@APPS
async def test_the_reply_to_head_has_no_body(app: Any) -> None:
    async with serving(app) as client:
        client.says("HEAD /some HTTP/1.1")
        client.says("GET /more HTTP/1.1")
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b"content-length: 0" not in head
        status, _, body = await client.hears()
        assert (status, b"/more" in body) == ("HTTP/1.1 200 OK", True)


async def test_a_client_that_waits_to_be_told_to_continue_is_told() -> None:
    async with serving(echo) as client:
        client.says("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 4")
        assert await client.reader.readexactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.writer.write(b"body")
        assert (await client.hears())[2].endswith(b"body")


async def test_a_client_that_was_not_told_to_continue_is_not_asked_again() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        reply(scope, Response(413, [(b"content-length", b"0")], b""))

    async with serving(app) as client:
        client.says("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 4")
        status, headers, _ = await client.hears()
        assert (status, headers["connection"]) == ("HTTP/1.1 413 Request Entity Too Large", "close")
        assert await client.ended()


@APPS
async def test_a_client_that_sends_its_body_without_being_told_keeps_its_connection(app: Any) -> None:
    async with serving(app) as client:
        client.says("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 4", body=b"body")
        if app is echo:  # it asks for the body, so the client is told
            assert await client.reader.readexactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        _, headers, said = await client.hears()
        assert (headers.get("connection"), said[-4:]) == (None, b"body")


@pytest.mark.parametrize("status", [204, 304])
async def test_a_reply_that_may_have_no_body_gets_none(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status})
        await send({"type": "http.response.body", "body": b"would be read as the next reply"})

    async with serving(app) as client:
        client.says("GET / HTTP/1.1")
        assert await client.ended()
    assert "not as long" in caplog.text


async def test_the_rest_of_a_body_that_nobody_wants_is_let_go() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        reply(scope, Response(200, [(b"content-length", b"2")], b"no"))

    async with serving(app) as client:
        client.says("POST / HTTP/1.1", "Content-Length: 5000001", body=b"x" * 5_000_000)
        await asyncio.sleep(0.1)
        assert not client.listener._requests
        client.writer.write(b"x")
        client.says("POST / HTTP/1.1", "Content-Length: 1", body=b"x")
        assert [(await client.hears())[2] for _ in range(2)] == [b"no", b"no"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"\x16\x03\x01", b"The request is not HTTP/1.1."),
        (b"GET /\xc3 HTTP/1.1\r\n\r\n", b"The request is not HTTP/1.1."),
        (b"GET / HTTP/1.1\nHost: x\n\n", b"A line of the head does not end in CR LF."),
        (b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", b"A header goes on in a second line."),
        (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", b"The name of a header has a character that no name has."),
        (
            b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            b"The header Content-Length is there twice.",
        ),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"The header Content-Length is no length."),
        (
            b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"The length of the body is told in two ways, or in one that HTTP/1.0 has not.",
        ),
    ],
)
async def test_what_is_not_http_gets_a_400_and_the_end(said: bytes, why: bytes) -> None:
    async with serving(echo) as client:
        client.writer.write(said)
        status, headers, body = await client.hears()
        assert (status, headers["connection"], body) == ("HTTP/1.1 400 Bad Request", "close", why)
        assert await client.ended()


async def test_a_head_without_an_end_gets_a_431() -> None:
    async with serving(echo) as client:
        client.writer.write(b"GET / HTTP/1.1\r\n")
        for _ in range(HEAD_BYTES // 5_000 + 2):
            await asyncio.sleep(0.002)
            client.writer.write(b"a: " + b"x" * 5_000 + b"\r\n")
        assert (await client.hears())[0] == "HTTP/1.1 431 Request Header Fields Too Large"


async def test_an_offer_of_another_protocol_is_answered_in_this_one_which_ends() -> None:
    async with serving(echo) as client:
        client.says("GET / HTTP/1.1", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAM")
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"
        assert await client.ended()


@pytest.mark.parametrize("patience_s", [1])
async def test_an_idle_connection_is_closed_and_one_in_use_is_not(patience_s: int) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(1.5)
        await echo(scope, receive, send)

    async with serving(app, patience_s) as client:
        client.says("GET / HTTP/1.1")
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"
        began = asyncio.get_running_loop().time()
        assert await client.ended()
        assert 0.8 < asyncio.get_running_loop().time() - began < 2.5


async def test_the_app_hears_that_its_client_has_gone() -> None:
    heard = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await body_of(receive)
        assert await receive() == {"type": "http.disconnect"}
        heard.set()
        reply(scope, Response(200, [(b"content-length", b"0")], b""))

    async with serving(app) as client:
        client.says("GET / HTTP/1.1")
        await asyncio.sleep(0.02)
        client.writer.close()
        await asyncio.wait_for(heard.wait(), 2)
        assert not client.listener.connections


@pytest.mark.parametrize("late", [False, True])
async def test_an_app_that_fails_is_answered_for(late: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if late:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
            await send({"type": "http.response.body", "body": b"some", "more_body": True})
        raise RuntimeError("on purpose")

    async with serving(app) as client:
        client.says("GET / HTTP/1.1")
        if late:
            assert (await client.reader.read()).endswith(b"\r\n\r\nsome")
        else:
            status, headers, body = await client.hears()
            assert (status, headers["connection"], body) == (
                "HTTP/1.1 500 Internal Server Error",
                "close",
                b"Internal Server Error",
            )
            assert await client.ended()
    assert "on purpose" in caplog.text


@pytest.mark.parametrize(
    "said", [[], [{"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]}]]
)
async def test_an_app_that_says_too_little_is_answered_for(said: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in said:
            await send(message)

    async with serving(app) as client:
        client.says("GET / HTTP/1.1")
        if not said:
            assert (await client.hears())[0] == "HTTP/1.1 500 Internal Server Error"
        assert await client.ended()
    assert "before its reply was whole" in caplog.text


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb", b"a\rb"])
@pytest.mark.parametrize("by_messages", [False, True])
async def test_a_header_has_one_line(value: bytes, by_messages: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"x", value), (b"content-length", b"0")]
        if by_messages:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        else:
            reply(scope, Response(200, headers, b""))

    async with serving(app) as client:
        client.says("GET / HTTP/1.1")
        assert (await client.hears())[0] == "HTTP/1.1 500 Internal Server Error"
    assert "line break" in caplog.text


@pytest.mark.parametrize("length", [b"3", b"5"])
async def test_a_body_is_as_long_as_its_head_says(length: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": b"four"})

    async with serving(app) as client:
        client.says("GET / HTTP/1.1")
        assert await client.ended()
    assert "not as long" in caplog.text


async def test_at_the_end_what_is_being_answered_is_the_last() -> None:
    going = asyncio.Event()
    async with serving(held_up(going)) as client:
        client.says("GET / HTTP/1.1")
        await asyncio.sleep(0.02)
        client.listener.shutdown()
        going.set()
        assert (await client.hears())[1]["connection"] == "close"
        assert await client.ended()
        assert not client.served.tasks


async def test_an_idle_connection_ends_at_once_when_the_server_does() -> None:
    async with serving(echo) as client:
        client.says("GET / HTTP/1.1")
        await client.hears()
        client.listener.shutdown()
        assert await client.ended()


OK_AND_400 = [b"HTTP/1.1 200 OK", b"HTTP/1.1 400 Bad Request"]
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


async def all_statuses(client: Client) -> list[bytes]:
    """Status lines until the server closes."""
    async with asyncio.timeout(5):
        said = await client.reader.read()
    return re.findall(rb"HTTP/1\.1 \d+ [A-Za-z ]+", said)


@pytest.mark.parametrize(
    "wrong", [b"zz\r\n", b"4\r\nfourX\r\n", b"-4\r\nfour\r\n", b"4\r\nfour\r\n0\r\nno colon\r\n\r\n"]
)
@pytest.mark.parametrize("apart", [False, True])
@APPS
async def test_a_body_that_can_not_be_read_gets_a_400_and_the_end(app: Any, apart: bool, wrong: bytes) -> None:
    async with serving(app) as client:
        client.writer.write(CHUNKED)
        if apart:
            await asyncio.sleep(0.02)
        client.writer.write(wrong)
        assert await all_statuses(client) == [b"HTTP/1.1 400 Bad Request"]
        await asyncio.sleep(0.02)
        assert not client.served.tasks, "the app waits for ever"


@pytest.mark.parametrize("wrong", [CHUNKED + b"zz\r\n", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"])
async def test_what_was_asked_before_what_is_wrong_is_answered_first(wrong: bytes) -> None:
    going = asyncio.Event()
    async with serving(held_up(going)) as client:
        client.says("GET /first HTTP/1.1")
        await asyncio.sleep(0.02)
        client.writer.write(wrong)
        await asyncio.sleep(0.05)
        going.set()
        assert await all_statuses(client) == OK_AND_400


async def test_the_wrong_rest_of_a_body_that_was_answered_gets_no_second_reply() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        reply(scope, Response(413, [(b"content-length", b"0")], b""))

    async with serving(app) as client:
        client.writer.write(CHUNKED)
        assert (await client.hears())[0] == "HTTP/1.1 413 Request Entity Too Large"
        client.writer.write(b"zz\r\n")
        assert await client.ended()


@APPS
async def test_trailers_are_ignored_and_the_connection_goes_on(app: Any) -> None:
    async with serving(app) as client:
        for _ in range(2):
            client.writer.write(CHUNKED + b"4;a=b\r\nfour\r\n0\r\nX-Sum: 1\r\nHost: other\r\n\r\n")
            status, headers, body = await client.hears()
            assert (status, headers.get("connection"), body[-4:]) == ("HTTP/1.1 200 OK", None, b"four")


@pytest.mark.parametrize("endless", [b"X-Sum: " + b"x" * 5_000, b"X-%d: 1\r\n" * 500])
async def test_trailers_are_bounded(endless: bytes) -> None:
    async with serving(echo) as client:
        client.writer.write(CHUNKED + b"4\r\nfour\r\n0\r\n")
        for _ in range(HEAD_BYTES // len(endless) + 3):
            await asyncio.sleep(0.002)
            client.writer.write(endless)
        assert (await client.hears())[0] == "HTTP/1.1 431 Request Header Fields Too Large"


async def test_a_chunk_has_no_endless_extension() -> None:
    async with serving(echo) as client:
        client.writer.write(CHUNKED + b"4;")
        for _ in range(HEAD_BYTES // 5_000 + 3):
            await asyncio.sleep(0.002)
            client.writer.write(b"x" * 5_000)
        assert (await client.hears())[0] == "HTTP/1.1 431 Request Header Fields Too Large"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"A request of HTTP/1.1 has one header Host, this one has 0."),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
            b"A request of HTTP/1.1 has one header Host, this one has 2.",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: a:80\r\n\r\n",
            b"A request of HTTP/1.1 has one header Host, this one has 2.",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a:80\r\nHost: b\r\n\r\n",
            b"A request of HTTP/1.1 has one header Host, this one has 2.",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: a:80\r\nHost: a\r\nHost: a:81\r\n\r\n",
            b"A request of HTTP/1.1 has one header Host, this one has 2.",
        ),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b"The header Host is not a name and a port."),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", b"The header Host is not a name and a port."),
        (b"GET /\r\n\r\n", b"The request is not HTTP/1.1, but 0.9."),
        (b"GET / HTTP/2.0\r\n\r\n", b"The request is not HTTP/1.1, but 2.0."),
    ],
)
async def test_a_request_of_http_1_1_names_its_host_once(said: bytes, why: bytes) -> None:
    async with serving(echo) as client:
        client.writer.write(said)
        status, headers, body = await client.hears()
        assert (status, headers["connection"], body) == ("HTTP/1.1 400 Bad Request", "close", why)
        assert await client.ended()


async def test_a_host_without_its_port_may_be_said_once_more() -> None:
    async with serving(echo) as client:
        client.writer.write(b"GET / HTTP/1.1\r\nHost: a:80\r\nhost: a\r\n\r\n")
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"


@pytest.mark.parametrize("host", ["", "x:80", "[::1]:9400", "a-b.c_d~e", "127.0.0.1"])
async def test_a_host_may_be_any_name_and_port(host: str) -> None:
    async with serving(echo) as client:
        client.says("GET / HTTP/1.1", f"Host: {host}")
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"
        client.writer.write(b"GET / HTTP/1.0\r\n\r\n")  # which need not name one
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"


def quick(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Limits:
    """Requests have to come within `seconds`, bodies at their least rate."""
    monkeypatch.setattr("facade.http.sockets.listener.TICK_S", 0.05)
    limits, milliseconds = Limits(), int(seconds * 1000)
    span_bytes = limits.span_bytes * milliseconds // limits.span_ms
    return limits._replace(head_ms=milliseconds, span_ms=milliseconds, span_bytes=span_bytes)


SLOW = [
    (b"GET / HTT", b""),
    (b"GET / HTTP/1.1\r\nHost: x\r\n", b"a: b\r\n"),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", b"x"),
    (CHUNKED, b"1\r\nx\r\n"),
    (CHUNKED + b"0\r\n", b"a: b\r\n"),
]


@pytest.mark.parametrize(("first", "more"), SLOW)
@pytest.mark.parametrize("before", [0, 1])
async def test_a_request_that_comes_too_slowly_gets_a_408_and_the_end(
    first: bytes, more: bytes, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = quick(monkeypatch, 0.5)
    async with serving(echo, limits=limits) as client:
        for _ in range(before):
            client.says("GET / HTTP/1.1")
            assert (await client.hears())[0] == "HTTP/1.1 200 OK"
        began = asyncio.get_running_loop().time()
        client.writer.write(first)
        hearing = asyncio.create_task(all_statuses(client))
        while not hearing.done():
            await asyncio.sleep(0.05)
            client.writer.write(more)
        assert hearing.result() == [b"HTTP/1.1 408 Request Timeout"]
        assert 0.4 < asyncio.get_running_loop().time() - began < 2
        assert not client.served.tasks, "the app waits for ever"


@pytest.mark.parametrize("how", ["refused", "answered"])
async def test_a_client_that_still_sends_can_read_the_last_reply(how: str) -> None:
    """It writes on after the reply was sent: a reset would take the reply from it."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reply(scope, Response(413, [(b"content-length", b"2"), (b"connection", b"close")], b"no"))

    async with serving(app) as client:
        if how == "refused":
            client.writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: zz\r\n\r\n")
        else:
            client.says("POST / HTTP/1.1", "Content-Length: 10000000", "Connection: close", body=b"x")
        for _ in range(20):
            await asyncio.sleep(0.02)
            client.writer.write(b"x" * 10_000)
        assert await all_statuses(client) == [
            b"HTTP/1.1 400 Bad Request" if how == "refused" else b"HTTP/1.1 413 Request Entity Too Large"
        ]
        assert not client.served.tasks


async def test_a_client_that_never_stops_sending_is_closed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("facade.http.sockets.listener.TICK_S", 0.05)
    async with serving(echo, limits=Limits(last_ms=200)) as client:
        client.writer.write(b"no HTTP\r\n\r\n")
        assert await all_statuses(client) == [b"HTTP/1.1 400 Bad Request"]
        async with asyncio.timeout(5):
            while client.listener.connections:
                client.writer.write(b"x")
                await asyncio.sleep(0.05)


async def test_a_large_body_has_time_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = quick(monkeypatch, 0.3)
    async with serving(echo, limits=limits) as client:
        client.says("POST / HTTP/1.1", "Content-Length: 200000")
        for _ in range(10):
            client.writer.write(b"x" * 20_000)
            await asyncio.sleep(0.1)
        assert len((await client.hears())[2]) == 200_000 + len("POST /  1.1 ")


async def test_what_is_not_read_is_not_counted_as_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = quick(monkeypatch, 0.3)
    going = asyncio.Event()
    async with serving(held_up(going), limits=limits) as client:
        client.says("POST /first HTTP/1.1", "Content-Length: 200000", body=b"x" * 190_000)  # more than is held
        await asyncio.sleep(1)
        going.set()
        client.writer.write(b"x" * 10_000)
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"
        going.clear()
        client.says("GET /second HTTP/1.1")
        client.says("POST /third HTTP/1.1", "Content-Length: 10", body=b"12345")  # behind the second
        await asyncio.sleep(1)
        going.set()
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"
        client.writer.write(b"67890")
        assert (await client.hears())[2].endswith(b"1234567890")


async def test_a_body_that_is_let_go_too_slowly_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = quick(monkeypatch, 0.3)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reply(scope, Response(200, [(b"content-length", b"2")], b"no"))

    async with serving(app, limits=limits) as client:
        client.says("POST / HTTP/1.1", "Content-Length: 100", body=b"x")
        assert (await client.hears())[2] == b"no"
        assert await client.ended()


async def test_the_oldest_head_in_pieces_gives_way_when_others_need_the_room() -> None:
    async with serving(echo, limits=Limits(parts=2)) as client:
        address = client.writer.get_extra_info("peername")
        client.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        await asyncio.sleep(0.05)
        others = [await asyncio.open_connection(*address) for _ in range(2)]
        for _, writer in others:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
            await asyncio.sleep(0.05)
        status, headers, _ = await client.hears()
        assert (status, headers["retry-after"], headers["connection"]) == (
            "HTTP/1.1 503 Service Unavailable",
            "1",
            "close",
        )
        assert await client.ended()
        for reader, writer in others:
            writer.write(b"\r\n")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            writer.close()


async def test_heads_of_whoever_has_the_most_of_them_give_way_first() -> None:
    """One that is older, of another address, stays."""
    async with serving(echo, limits=Limits(part_bytes=10_000)) as client:
        address = client.writer.get_extra_info("peername")
        good = await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0))
        good[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        await asyncio.sleep(0.05)
        many = [await asyncio.open_connection(*address) for _ in range(4)]
        for _, writer in many:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\na: " + b"b" * 4_000)
            await asyncio.sleep(0.05)
        for reader, _ in many[:2]:
            assert await reader.readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
        good[1].write(b"\r\n")
        assert await good[0].readline() == b"HTTP/1.1 200 OK\r\n"
        for _, writer in (good, *many):
            writer.close()


async def test_a_head_for_which_there_is_no_room_is_refused() -> None:
    async with serving(echo, limits=Limits(part_bytes=1000)) as client:
        client.says("GET / HTTP/1.1", "a: " + "b" * 2000)  # whole
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"
        client.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\na: " + b"b" * 2000)
        assert (await client.hears())[0] == "HTTP/1.1 503 Service Unavailable"
        assert await client.ended()


# Three of them come in one read: after it, the connection is not read before they are answered.
THIRD = 20_000


async def test_what_is_asked_before_its_turn_and_has_no_room_comes_after_the_others_answers() -> None:
    going = asyncio.Event()
    async with serving(held_up(going), limits=Limits(asked_bytes=THIRD)) as client:
        for name in ("first", "second", "third"):
            client.says(f"POST /{name} HTTP/1.1", f"Content-Length: {THIRD}", body=b"x" * THIRD)
        await asyncio.sleep(0.1)
        going.set()
        assert [(await client.hears())[0] for _ in range(2)] == ["HTTP/1.1 200 OK", "HTTP/1.1 503 Service Unavailable"]
        assert await client.ended()


async def test_a_head_of_many_small_headers_gets_a_431() -> None:
    async with serving(echo) as client:
        client.says("GET / HTTP/1.1", *(["a: b"] * (HEADERS - 1)))
        assert (await client.hears())[0] == "HTTP/1.1 200 OK"
        client.says("GET / HTTP/1.1", *(["a: b"] * HEADERS))
        assert (await client.hears())[0] == "HTTP/1.1 431 Request Header Fields Too Large"
        assert await client.ended()


async def test_a_large_body_that_nobody_wants_is_not_read() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        reply(scope, Response(401, [(b"content-length", b"2")], b"no"))

    async with serving(app) as client:
        client.says("POST / HTTP/1.1", "Content-Length: 100000000", body=b"x" * 1000)
        status, headers, _ = await client.hears()
        assert (status, headers["connection"]) == ("HTTP/1.1 401 Unauthorized", "close")
        assert await client.ended()


LARGE = b"x" * 20_000_000


async def large(scope: Any, receive: Any, send: Any) -> None:
    reply(scope, Response(200, [(b"content-length", b"%d" % len(LARGE))], LARGE))


@pytest.mark.parametrize("asked", ["keep-alive", "close"])
async def test_a_client_that_reads_nothing_of_its_reply_is_let_go(asked: str) -> None:
    async with serving(large, patience_s=1) as client:
        client.says("GET / HTTP/1.1", f"Connection: {asked}")
        transport: Any = client.writer.transport
        transport.pause_reading()
        async with asyncio.timeout(8):
            while client.listener.connections:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("asked", ["keep-alive", "close"])
async def test_a_client_that_reads_slowly_gets_its_whole_reply(asked: str) -> None:
    async with serving(large, patience_s=1) as client:
        client.says("GET / HTTP/1.1", f"Connection: {asked}")
        head = await client.reader.readuntil(b"\r\n\r\n")
        got, began = 0, asyncio.get_running_loop().time()
        while got < len(LARGE):
            got += len(await client.reader.readexactly(min(800_000, len(LARGE) - got)))
            await asyncio.sleep(0.1)
        assert head.startswith(b"HTTP/1.1 200") and asyncio.get_running_loop().time() - began > 2
