"""Requests of the native API that the native front has read: answered as on the long way, and
nothing is given to who has left.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, cast

import pytest
from msgspec import structs

from engine.engine import Engine
from engine.errors import EngineError, LogUnavailable, MessageTooLarge, NotAuthorised, StoreUnavailable, TooManyInFlight
from engine.shapes import EntryResult, Principal, Sent
from facade.app import create_app
from facade.config import Settings
from facade.http.front import Front
from facade.http.sockets.listener import Listener, Served
from facade.sqs.wire.digests import of_body
from schemas.records import Attribute, Message
from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE
from tests.unit.facade.double import AT, BYTES, ORIGIN, RecordingEngine, delivery

pytestmark = pytest.mark.usefixtures("library")

SEND: dict[str, Any] = {"messages": [{"body": "é\n"}, {"body": "b"}]}
SENT = [Sent(f"id{n}", of_body(message["body"].encode()), AT + n, "") for n, message in enumerate(SEND["messages"])]
ASKED: dict[str, dict[str, Any]] = {
    "messages": SEND,
    "receive": {"max": 2, "wait_seconds": 20, "lease_seconds": 5},
    "ack": {"handles": ["h1", "h2"]},
}
OPEN = Settings()
LONG = "Te: trailers"  # a header that no plain request has


class Soon(RecordingEngine):
    """Begins what the front has read; `tell_all` tells it."""

    key_changes = 0
    accounts: Sequence[str] = ()

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[str, Any, Any, list[Any]]] = []
        self.told: list[Callable[[Any], None]] = []
        self.leaves: list[int] = []

    class plane:  # noqa: N801 - there is none
        is_on = False

        @staticmethod
        def start(library: Any, metrics_s: Any) -> None:
            """Serves nothing."""

    def route(self, *about: Any, some: int | None = None, most_bytes: int = 0) -> bool:
        """Nothing is the plane's."""
        return False

    def _begin(self, verb: str, queue: str, tag: str | None, asked: list[Any], tell: Any) -> list[int]:
        self.begun.append((verb, queue, tag, asked))
        self.told += [partial(_tell, verb, tell, one[0]) for one in asked]
        return []

    def send_soon(self, by: Any, queue: str, asked: list[Any], tell: Any) -> list[int]:
        return self._begin("send", queue, None, asked, tell)

    def receive_soon(self, by: Any, queue: str, tag: str | None, asked: list[Any], tell: Any) -> list[int]:
        return self._begin("receive", queue, tag, asked, tell)

    def ack_soon(self, by: Any, queue: str, asked: list[Any], tell: Any) -> list[int]:
        return self._begin("ack", queue, None, asked, tell)

    def leave(self, token: int) -> None:
        self.leaves.append(token)

    async def tell_all(self, what: Any) -> None:
        async with asyncio.timeout(5):
            while not self.told:
                await asyncio.sleep(0)
        told, self.told = self.told, []
        for tell in told:
            tell(what)


def _tell(verb: str, tell: Any, token: int, what: Any) -> None:
    """As the engine tells a request of that verb."""
    if isinstance(what, Exception):
        tell(token, what, *([[]] if verb == "send" else []))
    elif verb == "send":
        tell(token, [one.id for one in what], [one.sent_at_ms for one in what])
    else:
        tell(token, [one.status for one in what] if verb == "ack" else what)


@contextlib.asynccontextmanager
async def serving(engine: Soon, settings: Settings = OPEN) -> AsyncIterator[Any]:
    app = cast(Front, create_app(settings, cast(Engine, engine)))
    bound = socket.create_server(("127.0.0.1", 0))
    listener = Listener(bound, app.plain, Served(app), 5.0)
    try:
        yield bound.getsockname()
    finally:
        listener.close()
        bound.close()


def request(word: str, *more: str) -> bytes:
    body = json.dumps(ASKED[word]).encode()
    lines = (f"POST /v1/queues/orders/{word} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more)
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body


async def heard(address: Any, asked: bytes, after: Callable[[], Any] | None = None, at: str = "127.0.0.1") -> bytes:
    reader, writer = await asyncio.open_connection(*address, local_addr=(at, 0))
    writer.write(asked)
    if after is not None:
        await after()
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        assert length
        body = await reader.readexactly(int(length[1]))
    writer.close()
    return re.sub(rb"date: [^\r]*\r\n", b"", head) + body


OUTCOMES: list[tuple[str, str, Any]] = [
    ("messages", "send", SENT),
    ("messages", "send", MessageTooLarge("too large", field="body", limit=1, given=2)),
    ("messages", "send", LogUnavailable("Kafka is away")),
    ("receive", "receive", [delivery(), delivery(BYTES)]),
    ("receive", "receive", []),
    ("receive", "receive", StoreUnavailable("Redis is away")),
    ("receive", "receive", TooManyInFlight("120000 may be in flight", field="in_flight", limit=120_000, given=120_000)),
    ("ack", "ack", [EntryResult("h1", "ok"), EntryResult("h2", "stale")]),
]


@pytest.mark.parametrize(("word", "verb", "outcome"), OUTCOMES)
async def test_it_is_answered_as_on_the_long_way(word: str, verb: str, outcome: Any) -> None:
    engine = Soon()
    if isinstance(outcome, EngineError):
        engine.error = outcome
    engine.answers[verb] = outcome
    async with serving(engine) as address:
        long = await heard(address, request(word, LONG))
        assert engine.calls and not engine.begun
        short = await heard(address, request(word), partial(engine.tell_all, outcome))
    (begun,) = engine.begun
    assert begun[:3] == (verb, "orders", None)
    assert short == long


def sqs_request(*more: str) -> bytes:
    body = b'{"QueueUrl": "orders", "WaitTimeSeconds": 5}'
    lines = ("POST / HTTP/1.1", "Host: localhost", "Content-Type: application/x-amz-json-1.0", "X-Amz-Target: AmazonSQS.ReceiveMessage")
    return "\r\n".join((*lines, *more, f"Content-Length: {len(body)}", "", "")).encode() + body


def without_id(answer: bytes) -> bytes:
    return re.sub(rb"x-amzn-requestid: [^\r]*\r\n", b"", answer)


@pytest.mark.parametrize(
    ("waited", "fifo", "told"), [(False, False, True), (True, False, False), (False, True, False), (True, True, False)]
)
async def test_over_the_limit_in_flight_sqs_tells_as_on_the_long_way(waited: bool, fifo: bool, told: bool) -> None:
    engine = Soon()
    engine.error = TooManyInFlight("120000 may be in flight", limit=120_000, given=120_001, waited=waited, fifo=fifo)
    async with serving(engine) as address:
        long = await heard(address, sqs_request(LONG))
        assert engine.calls and not engine.begun
        short = await heard(address, sqs_request(), partial(engine.tell_all, engine.error))
    assert len(engine.begun) == 1
    assert without_id(short) == without_id(long) and (b"OverLimit" in short) is told


async def test_a_dead_letter_is_told_as_on_the_long_way_whatever_its_record_has_for_an_id() -> None:
    engine = Soon()
    came_from = structs.replace(ORIGIN, original_id="".join(map(chr, range(0x20))) + '"\\\x7fé😀", "Body": "')
    letter = delivery(Message(b"text", {SOURCE_QUEUE_ATTRIBUTE: Attribute("string", b"orders")}, origin=came_from))
    engine.answers["receive"] = [letter]
    async with serving(engine) as address:
        long = await heard(address, sqs_request(LONG))
        short = await heard(address, sqs_request(), partial(engine.tell_all, [letter]))
    assert len(engine.begun) == 1
    assert without_id(short) == without_id(long)
    (told,) = json.loads(short.partition(b"\r\n\r\n")[2])["Messages"]
    assert (told["MessageId"], told["Body"]) == (came_from.original_id, "text")


async def test_what_it_asks_is_what_the_engine_is_asked() -> None:
    engine = Soon()
    async with serving(engine) as address:
        for word, outcome in (("messages", SENT), ("receive", []), ("ack", [EntryResult("h1", "ok"), EntryResult("h2", "ok")])):
            await heard(address, request(word), partial(engine.tell_all, outcome))
    sends, receives, acks = [list(begun[3][0][1:]) for begun in engine.begun]
    assert sends == [["é\n".encode(), b"b"], [of_body("é\n".encode()), of_body(b"b")]]
    assert receives == [2, 20_000, 5_000]
    assert acks == [["h1", "h2"]]


async def test_a_receive_that_is_refused_while_it_waits_is_written_down_as_on_the_long_way() -> None:
    engine = Soon()
    engine.error = NotAuthorised("key 'k' was revoked", field="key_id", given="k")
    async with serving(engine) as address:
        long = await heard(address, sqs_request(LONG), at="127.0.0.2")
        short = await heard(address, sqs_request(), partial(engine.tell_all, engine.error), at="127.0.0.2")
        await heard(address, sqs_request(), partial(engine.tell_all, StoreUnavailable("Redis is away")))
    assert without_id(short) == without_id(long)
    ids = [re.findall(rb"x-amzn-requestid: ([^\r]*)", answer)[0].decode() for answer in (long, short)]
    assert engine.audit.heard == [("127.0.0.2", "sqs.ReceiveMessage", 403, "NotAuthorised", one) for one in ids]
    assert engine.audit.refused_ == [(Principal("anonymous"), "receive", "orders")]


@contextlib.asynccontextmanager
async def left_by_its_client(engine: Soon, behind: int = 0) -> AsyncIterator[None]:
    """A receive waits, and its client sends so many bytes behind it and closes; what follows comes
    in time.
    """
    async with serving(engine) as address:
        client = socket.create_connection(address)
        client.sendall(request("receive"))
        async with asyncio.timeout(5):
            while not engine.told:
                await asyncio.sleep(0)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(client, b"x" * behind)
            client.close()
            yield


async def test_messages_for_a_client_that_has_left_go_back() -> None:
    engine = Soon()
    async with left_by_its_client(engine):
        await engine.tell_all([delivery()])
        while not engine.undelivered_:
            await asyncio.sleep(0)
    assert engine.undelivered_ == [[delivery()]]


@pytest.mark.parametrize("behind", [0, 1, 70_000])
async def test_messages_for_a_client_that_has_left_unheard_go_back(behind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client has sent before it closed was not read yet when the messages come."""
    monkeypatch.setattr(Listener, "_flush_soon", Listener._flush)
    engine = Soon()
    async with left_by_its_client(engine, behind):
        (tell,) = engine.told
        tell([delivery()])
    assert engine.undelivered_ == [[delivery()]]


# More than the front reads behind a request that is not answered.
@pytest.mark.parametrize("behind", [0, 1, 70_000])
async def test_a_receive_whose_client_leaves_while_it_waits_is_left(behind: int) -> None:
    engine = Soon()
    async with left_by_its_client(engine, behind):
        while not engine.leaves:
            await asyncio.sleep(0)
    assert engine.leaves == [engine.begun[0][3][0][0]]


@pytest.mark.parametrize("number", [120, 140])
async def test_as_many_headers_are_too_many_as_on_the_long_way(number: int) -> None:
    engine = Soon()
    engine.answers["receive"] = []
    more = [f"x-{n}: 1" for n in range(number)]
    async with serving(engine) as address:
        long = await heard(address, request("receive", LONG, *more))
        answered = asyncio.ensure_future(heard(address, request("receive", *more)))
        while not engine.told and not answered.done():
            await asyncio.sleep(0.001)
        if engine.told:
            await engine.tell_all([])
        assert await answered == long
    assert long.startswith(b"HTTP/1.1 200" if number == 120 else b"HTTP/1.1 431")
