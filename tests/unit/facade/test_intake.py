"""Whose body is read: claims come first, and what comes slowly gives way."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import Any, cast

import pytest

from engine.engine import Engine
from engine.errors import NotAuthenticated, Overloaded
from facade.app import create_app
from facade.config import Settings
from facade.http.bounds.intake import Intake
from facade.http.bounds.shares import MIB, Shares
from tests.unit.facade.double import RecordingEngine
from tests.unit.facade.test_asgi import Client

Headers = list[tuple[bytes, bytes]]
SQS = [(b"x-amz-target", b"AmazonSQS.SendMessage"), (b"content-type", b"application/x-amz-json-1.0")]
EMQ = [(b"content-type", b"application/x-thrift-binary"), (b"x-xiaomi-timestamp", b"1767225600")]
MNS = [(b"x-mns-version", b"2015-06-06"), (b"date", b"Thu, 01 Jan 2026 00:00:00 GMT")]
OLD_CLAIM = (
    b"AWS4-HMAC-SHA256 Credential=shop/20260101/us-east-1/sqs/aws4_request, "
    b"SignedHeaders=host;x-amz-date;x-amz-target, Signature=0"
)
STRANGERS: list[tuple[str, str, Headers, int]] = [
    ("POST", "/v1/queues/q/messages", [], 401),
    ("POST", "/v1/queues/q/messages", [(b"authorization", b"Basic " + b64encode(b"shop:wrong"))], 401),
    ("POST", "/v1/queues", [], 401),
    ("POST", "/", SQS, 403),
    ("POST", "/", [*SQS, (b"x-amz-date", b"20260101T000000Z"), (b"authorization", OLD_CLAIM)], 400),
    ("POST", "/v1/api/message", EMQ, 401),
    ("POST", "/v1/api/message", [*EMQ, (b"authorization", b"Galaxy-V2 AK:62gq8Y7m7+u2KB0rS1f/jr5KehA=")], 412),
    ("POST", "/queues/q/messages", MNS, 400),
    ("POST", "/queues/q/messages", [*MNS, (b"authorization", b"MNS AK:62gq8Y7m7+u2KB0rS1f/jr5KehA=")], 408),
    ("POST", "/nothing/here", [], 404),
]


@pytest.mark.parametrize(("method", "path", "headers", "status"), STRANGERS)
async def test_the_body_of_a_stranger_is_not_read(method: str, path: str, headers: Headers, status: int) -> None:
    engine = RecordingEngine()
    engine.refuse = NotAuthenticated("no", field="key_id")
    client = Client(b"x" * 100, b"y")
    app = create_app(Settings(auth="required", admin_key_secret="s"), cast(Engine, engine))
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"h"), *headers],
        "scheme": "http",
    }
    await app(scope, client.receive, client.send)

    assert client.sent[0]["status"] == status
    assert len(client._events) == 2, "some of the body was read"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/live"), ("GET", "/metrics"), ("GET", "/v1/queues"), ("GET", "/?Action=ListQueues")]
)
async def test_what_has_no_body_takes_a_tiny_one(method: str, path: str) -> None:
    raw, _, query = path.partition("?")
    for size, refused in ((1000, False), (2000, True)):
        client = Client(b" " * size)
        app = create_app(Settings(), cast(Engine, RecordingEngine()))
        headers = [(b"host", b"localhost"), (b"content-length", b"%d" % size)]
        scope = {
            "type": "http",
            "method": method,
            "path": raw,
            "query_string": query.encode(),
            "headers": headers,
            "scheme": "http",
        }
        await app(scope, client.receive, client.send)
        assert (b"A request may have 1024 bytes" in client.sent[1]["body"]) is refused
        assert len(client._events) == (1 if refused else 0)


class Slow(Client):
    """Sends one part, and no more."""

    def __init__(self, part: bytes) -> None:
        super().__init__(part, b"")
        self._events.pop()


async def test_a_slow_body_gives_way_and_its_reader_hears_so() -> None:
    now = 0.0
    intake = Intake(shares=Shares(clock=lambda: now))
    slow = [asyncio.create_task(intake.read({}, Slow(b"x" * (16 * MIB - 1)).receive, holder="a")) for _ in range(6)]
    await asyncio.sleep(0)
    assert intake.shares.coming == 6
    body = await intake.read({}, Client(b"y" * MIB).receive, holder="b")
    with pytest.raises(Overloaded, match="slowly"):
        await slow[0]
    assert (intake.requests, intake.shares.coming) == (6, 5)
    assert intake.state == "ok"
    intake.release(body)
    for task in slow:
        task.cancel()
    results: list[Any] = await asyncio.gather(*slow[1:], return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 5
    assert (intake.requests, intake.shares.held, intake.shares.large) == (0, 0, 0)


async def test_a_shutdown_of_what_gives_way_stays_one() -> None:
    intake = Intake(shares=Shares())
    task = asyncio.create_task(intake.read({}, Slow(b"x").receive))
    await asyncio.sleep(0)
    (share,) = intake.shares.small_line.shares
    intake.shares.end(share)
    share.give_way()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert intake.requests == 0


async def test_the_intake_says_when_small_requests_are_refused() -> None:
    intake = Intake(shares=Shares(MIB), held_requests=5)
    bodies = [await intake.read({}, Client(b"x" * 200_000).receive) for _ in range(4)]
    assert intake.state == "requests hold 800000 bytes"
    bodies.append(await intake.read({}, Client(b"x").receive))
    assert intake.state == "5 requests are in hand"
    for body in bodies:
        intake.release(body)
    assert intake.state == "ok"


async def test_a_worker_without_room_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(Settings(), cast(Engine, RecordingEngine()))
    client = Client(b"")
    monkeypatch.setattr("facade.http.bounds.shares.SMALL_BYTES", 200 * MIB)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/ready",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    await app(scope, client.receive, client.send)
    assert client.sent[0]["status"] == 503
    assert b'"requests":"requests hold 0 bytes"' in client.sent[1]["body"]
