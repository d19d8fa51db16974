"""An answer that could not be given to its client: what it carried goes back to the engine, which
is told at once.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from engine.engine import Engine
from facade.app import create_app
from facade.config import Settings
from facade.dialects.native import exchange
from tests.unit.facade.double import RecordingEngine, delivery
from tests.unit.facade.test_asgi import Client as AsgiClient
from tests.unit.facade.test_asgi import serve
from tests.unit.test_protocol import Client, serving

pytestmark = pytest.mark.usefixtures("library")

NATIVE = ("POST /v1/queues/orders/receive HTTP/1.1", "content-type: application/json"), b'{"wait_seconds": 0}'
SQS = (
    ("POST / HTTP/1.1", "x-amz-target: AmazonSQS.ReceiveMessage", "content-type: application/x-amz-json-1.0"),
    b'{"QueueUrl": "orders"}',
)
QUERY = (
    ("POST / HTTP/1.1", "content-type: application/x-www-form-urlencoded"),
    b"Action=ReceiveMessage&QueueUrl=orders&Version=2012-11-05",
)


@pytest.fixture
def engine() -> RecordingEngine:
    found = RecordingEngine()
    found.answers["receive"] = [delivery(), delivery()]
    return found


def app_of(engine: RecordingEngine) -> Any:
    return create_app(Settings(), cast(Engine, engine))


async def asks(client: Client, engine: RecordingEngine, asked: tuple[tuple[str, ...], bytes]) -> None:
    """Has a receive in hand, of which the engine is to decide."""
    lines, body = asked
    client.says(*lines, f"content-length: {len(body)}", body=body)
    while not engine.calls:
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("asked", "hot"),
    [(NATIVE, True), (NATIVE, False), (SQS, True), (QUERY, True)],
    ids=["native", "by a route of FastAPI", "sqs", "query"],
)
@pytest.mark.parametrize("known", [False, True], ids=["the loop has not heard", "the loop has heard"])
async def test_what_a_closed_connection_was_to_get_goes_back(
    engine: RecordingEngine,
    asked: tuple[tuple[str, ...], bytes],
    hot: bool,
    known: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not hot:
        monkeypatch.setattr("facade.dialects.native.dialect._PREFIX", "/nowhere/")
    monkeypatch.setattr("facade.http.asgi.WATCH_AFTER_S", 60)  # nobody has looked yet whether the client is still there
    engine.hold = asyncio.Event()
    async with serving(app_of(engine), plain=None) as client:
        await asks(client, engine, asked)
        client.writer.transport.abort()
        if known:
            await asyncio.sleep(0.05)
        engine.hold.set()
        async with asyncio.timeout(5):
            while client.served.tasks:
                await asyncio.sleep(0.01)
    assert engine.undelivered_ == [engine.answers["receive"]]


@pytest.mark.parametrize("asked", [NATIVE, SQS], ids=["native", "sqs"])
async def test_an_answer_that_was_sent_goes_nowhere_else(
    engine: RecordingEngine, asked: tuple[tuple[str, ...], bytes]
) -> None:
    async with serving(app_of(engine), plain=None) as client:
        await asks(client, engine, asked)
        head, _, body = await client.hears()
        client.writer.transport.abort()
        await asyncio.sleep(0.05)
    assert head == "HTTP/1.1 200 OK" and len(next(iter(json.loads(body).values()))) == 2
    assert engine.undelivered_ == []


async def test_a_server_of_others_says_so_by_an_error(engine: RecordingEngine) -> None:
    class Gone(AsgiClient):
        async def send(self, message: Any) -> None:
            raise OSError("the client has gone")

    with pytest.raises(OSError, match="gone"):
        await serve(app_of(engine), Gone(b"{}"))
    assert engine.undelivered_ == [engine.answers["receive"]]


@pytest.mark.parametrize(
    "part",
    [
        "facade.dialects.native.messages.delivery_reply",
        "facade.dialects.native.exchange.encoded",
        "facade.dialects.sqs.messages.messages._message",
    ],
)
async def test_what_can_not_be_written_down_goes_back(
    engine: RecordingEngine, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = exchange.encoded

    def broken(given: Any, *more: Any) -> Any:
        if part == "facade.dialects.native.exchange.encoded" and given.status != 200:
            return real(given)
        raise KeyError("a bug")

    monkeypatch.setattr(part, broken)
    async with serving(app_of(engine), plain=None) as client:
        await asks(client, engine, SQS if "sqs" in part else NATIVE)
        assert (await client.hears())[0].startswith("HTTP/1.1 500")
    assert engine.undelivered_ == [engine.answers["receive"]]
