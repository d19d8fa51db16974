"""Streams of hot requests, cut at random places: what comes back does not depend on who reads them,
on where the bytes were cut, nor on who writes the answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import re
import socket
import zlib
from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec
import pytest

from engine.plane.library import Library
from engine.shapes import Delivery
from facade.http.sockets.answers import Answers
from facade.http.sockets.listener import Listener, Served
from facade.sqs.actions import ACTIONS
from facade.sqs.messages.messages import _message
from facade.sqs.plain import ACTION, DELETE, DELETE_BATCH, RECEIVE, SEND, _shown
from facade.sqs.wire.digests import of_body
from facade.sqs.wire.replies import DONE, DoneBatchReply, DoneReply, Output, ReceiveReply, SentBatchReply, SentReply
from schemas.records import Attribute, Message, Origin
from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE
from tests.unit.facade.test_front_reading import HEAD, NATIVE, PARTS, SEED, VERBS, body_of, head_of, mutated, request, taken_by_python

pytestmark = pytest.mark.usefixtures("library")

STREAMS = 5_000
AT_ONCE = 40
SILENCE_S = 3.0
# Ids of dead letters and bodies that need more than a copy.
ODD = ["\x00\x1f", '"}', "\\", "\ufffe", "\u2028", "\x7f", *PARTS]


def said(verb: int, values: Any) -> bytes:
    return msgspec.json.encode([verb, *values])


def is_written(verb: int, asked: bytes) -> bool:
    """Whether a request gets an answer whose JSON the front writes; the others are told what they
    have asked. A function of what was asked, for both ways have to choose alike.
    """
    return verb in ACTION and zlib.crc32(asked) % 2 == 0


def deliveries(asked: bytes) -> list[Delivery]:
    """What a receive gets: texts and bytes, some of them dead letters with ids of all kinds."""
    chance, found = random.Random(zlib.crc32(asked)), []
    for place in range(chance.choice([0, 1, 1, 2, 10])):
        body = "".join(chance.choices(ODD, k=chance.randrange(4))).encode() or chance.choice([b"\xff", b"plain"])
        origin = Origin("f", "t", "".join(chance.choices(ODD, k=3)), "q", "t", "exhausted", 5, 0, 0, 0)
        of_dead = {SOURCE_QUEUE_ATTRIBUTE: Attribute("string", b"q")} if chance.random() < 0.5 else {}
        message = Message(body, of_dead, origin=origin)
        known = chance.choice(["", of_body(body)])
        found.append(Delivery(f"id{place}", f"handle{place}", message, 0, 1, 0, 0, 0, place, body_md5=known))
    return found


def id_of(body: bytes) -> str:
    return f"id-{of_body(body)}"


def written_by_python(verb: int, body: bytes, asked: bytes) -> Output:
    """The answer to a good request of SQS."""
    given: Any = ACTIONS[ACTION[verb]].decoder.decode(body)
    if verb == RECEIVE:
        found = deliveries(asked)
        return ReceiveReply([_message(one, frozenset(), None, cast(Any, None)) for one in found]) if found else ReceiveReply()
    if verb == DELETE:
        return DONE
    if verb == DELETE_BATCH:
        return DoneBatchReply([DoneReply(entry.id) for entry in given.entries])
    if verb == SEND:
        text = given.message_body.encode()
        return SentReply(id_of(text), of_body(text))
    texts = [(entry.id, entry.message_body.encode()) for entry in given.entries]
    return SentBatchReply([SentReply(id_of(text), of_body(text), id=name) for name, text in texts])


class Echo:
    """Answers plain requests with what was asked, or has the front write the answer; now and then
    it leaves one to the long way.
    """

    request_prefix = b"0"
    wants_signatures = trusts_proxy = False

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        raise AssertionError(signers)

    def is_stale(self) -> bool:
        return False

    def __init__(self) -> None:
        self.urls: dict[int, str] = {}
        self.asked = self.left = self.written = 0
        self._numbers = itertools.count()

    def learn(self, lanes: list[tuple[int, bytes, bytes, bytes, str]]) -> None:
        self.urls.update({lane[0]: lane[4] or lane[2].decode() for lane in lanes})

    def ask(self, verb: int, lane: int, items: list[Any], answers: Answers) -> None:
        for connection, *values in items:
            if next(self._numbers) % 7 == 0:
                self.left += 1
                answers.passed.append(connection)
            else:
                self.asked += 1
                body = said(verb, [self.urls[lane], *values])
                if is_written(verb, body):
                    self.written += 1
                    self._have_written(verb, connection, values, body, answers)
                else:
                    answers.other.append((connection, b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n" % len(body), body))
        answers.soon()

    def _have_written(self, verb: int, connection: int, values: list[Any], asked: bytes, answers: Answers) -> None:
        if verb == RECEIVE:
            answers.received.append((connection, [_shown(one) for one in deliveries(asked)]))
        elif verb in (DELETE, DELETE_BATCH):
            answers.deleted.append(connection)
        else:
            answers.sent.append((connection, [id_of(text) for text in values[0]]))

    def start_plane(self, library: Library) -> None:
        pass

    def take_plane(self, news: list[Any], answers: Answers) -> None:
        raise AssertionError(news)

    def collect(self) -> None:
        pass

    def gone(self, connection: int) -> None:
        """Nothing waits here."""

    def unsent(self, connections: list[int]) -> None:
        raise AssertionError("nothing was leased")

    def given(self) -> None:
        """Nothing was leased."""


async def app(scope: Any, receive: Any, send: Any) -> None:
    """The long way: says the same of a request that could be plain, and something of any other."""
    body, more = b"", True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            return
        body, more = body + event["body"], event["more_body"]
    headers = dict(scope["headers"])
    target = headers.get(b"x-amz-target", b"").decode("latin-1").removeprefix("AmazonSQS.")
    verb = next((number for number, name in ACTION.items() if name == target), None)
    native = re.fullmatch("/v1/queues/[^/]+/(messages|receive|ack)", scope["path"])
    if native and headers.get(b"content-type") == b"application/json" and not target:
        verb = next(number for number, (word, _) in NATIVE.items() if word == native[1])
    status, answer, kind = 200, b"%b %d" % (scope["path"].encode(), len(body)), []
    if verb is not None and scope["method"] == "POST":
        try:
            url, *values = taken_by_python(verb, body)
            answer = said(verb, [url or scope["path"], *values])
            if is_written(verb, answer):
                answer = msgspec.json.encode(written_by_python(verb, body, answer))
                kind = [(b"content-type", b"application/x-amz-json-1.0"), (b"x-amzn-requestid", b"")]
        except Exception:
            status, answer = 400, b"refused"
    await send({"type": "http.response.start", "status": status, "headers": [*kind, (b"content-length", b"%d" % len(answer))]})
    await send({"type": "http.response.body", "body": answer})


@contextlib.asynccontextmanager
async def both(plain: Echo) -> AsyncIterator[list[Any]]:
    """Addresses of two fronts: one that reads plain requests, and one that tells all to Python."""
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        listeners = [Listener(first, plain, Served(app), 60), Listener(second, None, Served(app), 60)]
        try:
            yield [first.getsockname(), second.getsockname()]
        finally:
            for listener in listeners:
                listener.close()


def stream(chance: random.Random) -> bytes:
    """Some requests, and one after which the connection ends."""
    whole = b""
    for _ in range(chance.randrange(1, 6)):
        verb = chance.choice(VERBS)
        body = body_of(chance, verb) if chance.random() < 0.5 else json.dumps(request(chance, verb)).encode("utf-8", "surrogatepass")
        head, kind = head_of(verb, len(body)), chance.random()
        if kind < 0.1:
            head, body = f"GET /{verb} HTTP/1.1\r\nHost: localhost\r\n\r\n", b""
        elif kind < 0.2:
            head = re.sub("Content-Length: .*", "Transfer-Encoding: chunked", head)
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        elif kind < 0.3:
            head = head.replace(
                "Host",
                chance.choice(["X-A: b\r\nhost", "HOST", "Connection: keep-alive\r\nHost", "A: é\r\nHost", "Connection: x, Close\r\nHost"]),
            )
        elif kind < 0.32:
            head = head.replace("Host", "Transfer-Encoding: chunked\r\nHost")
        elif kind < 0.37:
            head = mutated(chance, head.encode()).decode("latin-1")
        whole += head.encode("latin-1") + body
    return whole + b"GET /end HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def heard(address: Any, pieces: list[bytes]) -> list[bytes]:
    """The replies to a stream, without their dates and ids."""
    reader, writer = await asyncio.open_connection(*address)
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
    found = b""
    # A length that a mutation has made greater is waited for.
    with contextlib.suppress(ConnectionError, TimeoutError):
        while True:
            async with asyncio.timeout(SILENCE_S):
                piece = await reader.read(100_000)
            if not piece:
                break
            found += piece
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    found = re.sub(rb"x-amzn-requestid: [^\r]*\r\n", b"x-amzn-requestid: \r\n", found)
    replies = re.sub(rb"date: [^\r]*\r\n", b"", found).split(b"HTTP/1.1 ")
    # Why a request can't be read depends on how much of it had come.
    return [reply.partition(b"text/plain")[0] if reply.startswith(b"400 ") else reply for reply in replies]


def cut(chance: random.Random, whole: bytes) -> list[bytes]:
    places = sorted(chance.randrange(len(whole)) for _ in range(chance.randrange(6)))
    return [whole[a:b] for a, b in itertools.pairwise([0, *places, len(whole)])]


async def test_streams_are_answered_alike_wherever_they_are_cut() -> None:
    chance = random.Random(SEED)
    plain = Echo()
    async with both(plain) as addresses:
        for _ in range(STREAMS // AT_ONCE):
            some = [stream(chance) for _ in range(AT_ONCE)]
            asked = [heard(address, cut(chance, whole)) for whole in some for address in addresses]
            answers = await asyncio.gather(*asked)
            for whole, ours, theirs in zip(some, answers[::2], answers[1::2], strict=True):
                assert ours == theirs, whole
    # So that the comparison compares something.
    assert plain.asked > STREAMS / 4
    assert plain.left > STREAMS / 25
    assert plain.written > STREAMS / 10


async def test_a_client_that_does_not_read_is_not_read_either() -> None:
    body = json.dumps({"QueueUrl": "u", "MessageBody": "x" * 200_000}).encode()
    one = HEAD.format("SendMessage", len(body)).encode() + body
    async with both(Echo()) as addresses:
        with socket.create_connection(addresses[0]) as client:
            client.setblocking(False)
            sent, silent = 0, 0
            while silent < 20:
                try:
                    # Wherever it was cut: the next piece goes on there.
                    sent += client.send(one[sent % len(one) :])
                    silent = 0
                except BlockingIOError:
                    silent += 1
                    await asyncio.sleep(0.02)
                await asyncio.sleep(0)
                assert sent < 60_000_000
