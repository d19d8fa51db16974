"""Bodies within bounds, credentials, and clients that go away."""

from __future__ import annotations

import asyncio
import base64
from typing import cast

import httpx
import pytest
from starlette.types import ASGIApp, Message, Scope

from engine.engine import Engine
from engine.errors import NotAuthenticated, NotAuthorised, Overloaded
from engine.shapes import Principal
from facade.config import Settings
from facade.dialects.native.dialect import NativeDialect
from facade.http.asgi import ClientGone, unless_gone
from facade.http.bounds.intake import Intake
from facade.http.bounds.shares import Shares
from facade.http.front import Front
from facade.http.metrics import Metrics
from facade.http.problem import ProblemError
from tests.unit.facade.double import RecordingEngine

RECEIVE = "/v1/queues/orders/receive"


class Client:
    """The receiving end of a connection: the chunks of a body, then a disconnect when `go` is
    called.
    """

    def __init__(self, *chunks: bytes) -> None:
        last = len(chunks) - 1
        self._events: list[Message] = [
            {"type": "http.request", "body": chunk, "more_body": index < last} for index, chunk in enumerate(chunks)
        ]
        self._gone = asyncio.Event()
        self.sent: list[Message] = []

    def go(self) -> None:
        self._gone.set()

    async def receive(self) -> Message:
        if self._events:
            return self._events.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)


def scope(path: str = RECEIVE) -> Scope:
    return {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}


async def serve(app: ASGIApp, client: Client) -> None:
    await app(scope(), client.receive, client.send)


async def test_an_intake_joins_chunks_and_counts_until_released() -> None:
    intake = Intake(10)

    body = await intake.read({}, Client(b"ab", b"", b"cd").receive)

    assert (body, intake.shares.held) == (b"abcd", 4)
    intake.release(body)
    assert intake.shares.held == 0


@pytest.mark.parametrize("chunks", [(b"x" * 11,), (b"x" * 6, b"x" * 5)])
async def test_an_intake_forgets_what_it_refused(chunks: tuple[bytes, ...]) -> None:
    intake = Intake(10)

    with pytest.raises(ProblemError, match="10 bytes"):
        await intake.read({}, Client(*chunks).receive)

    assert intake.shares.held == 0


async def test_an_intake_that_holds_too_much_refuses_for_now() -> None:
    intake = Intake(10, Shares(15))
    first = await intake.read({}, Client(b"x" * 10).receive)

    with pytest.raises(Overloaded):
        await intake.read({}, Client(b"x" * 6).receive)

    assert intake.shares.held == len(first)


async def test_an_intake_notices_a_client_that_goes_in_mid_body() -> None:
    intake, client = Intake(), Client(b"x", b"y")
    client._events.pop()
    client.go()

    with pytest.raises(ClientGone):
        await intake.read({}, client.receive)

    assert intake.shares.held == 0


async def test_a_request_that_is_answered_holds_no_bytes(engine: RecordingEngine) -> None:
    intake = Intake()
    native = NativeDialect(cast(Engine, engine), Settings())
    front = Front([native], intake, Metrics(engine.counts), lambda serve: cast(ASGIApp, None))
    engine.answers["ack"] = []
    good, bad = Client(b'{"handles": ["a"]}'), Client(b"{")

    for client in (good, bad):
        await front(scope("/v1/queues/orders/ack"), client.receive, client.send)

    assert (good.sent[0]["status"], bad.sent[0]["status"], intake.shares.held, intake.requests) == (200, 400, 0, 0)


async def test_a_receive_is_cancelled_and_not_answered_when_its_client_goes(
    app: ASGIApp, engine: RecordingEngine
) -> None:
    engine.hold = asyncio.Event()
    client = Client(b"{}")
    request = asyncio.create_task(serve(app, client))
    while not engine.calls:
        await asyncio.sleep(0)

    client.go()
    # Not wait_for: its cancel at the end would look like ours.
    done, _ = await asyncio.wait({request}, timeout=5)
    request.cancel()

    assert (done, engine.cancelled.is_set(), client.sent) == ({request}, True, [])


async def test_a_receive_that_a_shutdown_cancels_stays_cancelled(app: ASGIApp, engine: RecordingEngine) -> None:
    engine.hold = asyncio.Event()
    client = Client(b"{}")
    request = asyncio.create_task(serve(app, client))
    while not engine.calls:
        await asyncio.sleep(0)

    request.cancel()

    with pytest.raises(asyncio.CancelledError):
        await request
    assert (engine.cancelled.is_set(), client.sent) == (True, [])


async def test_a_call_that_ends_leaves_no_watcher_behind() -> None:
    client = Client()

    async def call() -> str:
        await asyncio.sleep(0.05)
        return "done"

    assert await unless_gone(call(), client.receive) == "done"

    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_of_the_call_passes(app: ASGIApp) -> None:
    async def call() -> None:
        raise Overloaded

    with pytest.raises(Overloaded):
        await unless_gone(call(), Client().receive)


def basic(text: bytes) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(text).decode()}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, (None, None)),
        (basic(b"shop:secret"), ("shop", "secret")),
        (basic(b"shop:"), ("shop", "")),
        (basic(b"shop:a:b"), ("shop", "a:b")),
        ({"authorization": "bAsIc   c2hvcDpz"}, ("shop", "s")),
    ],
)
async def test_a_caller_is_whom_the_engine_makes_of_the_credentials(
    client: httpx.AsyncClient, engine: RecordingEngine, headers: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    engine.answers["receive"] = []

    await client.post(RECEIVE, headers=headers)

    assert engine.credentials == [expected]
    assert engine.calls[0][1] == Principal(expected[0] or "anonymous")


@pytest.mark.parametrize(
    "stated",
    [
        "Bearer x",
        "Basic",
        "Basic !!",
        "Basic " + base64.b64encode(b"nocolon").decode(),
        "Basic /zpz",
        "",
        "Basic OnM=",
        "Basic CjpzCg==",
    ],
)
async def test_credentials_that_cannot_be_read_are_none(
    client: httpx.AsyncClient, engine: RecordingEngine, stated: str
) -> None:
    answer = await client.post(RECEIVE, headers={"authorization": stated})

    assert (answer.status_code, answer.json()["code"], engine.calls) == (401, "not_authenticated", [])
    assert answer.headers["www-authenticate"].startswith("Basic ")


async def test_a_caller_whom_the_engine_refuses_is_told_how_to_authenticate(
    client: httpx.AsyncClient, engine: RecordingEngine
) -> None:
    engine.refuse = NotAuthenticated()
    unknown = await client.get("/v1/queues", headers=basic(b"shop:wrong"))
    engine.refuse, engine.error = None, NotAuthorised()
    forbidden = await client.get("/v1/queues/orders")

    assert (unknown.status_code, unknown.headers["www-authenticate"][:5]) == (401, "Basic")
    assert (forbidden.status_code, forbidden.json()["code"]) == (403, "not_authorised")
