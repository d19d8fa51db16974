"""The dialect over HTTP, on a recording engine: what a client other than boto3 may send, and who is
let in.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from engine.engine import Engine
from engine.errors import InvalidHandle, InvalidValue, LogUnavailable, NotAuthenticated, TooManyInFlight
from engine.shapes import EntryResult, Late, Principal, Sent
from facade.app import create_app
from facade.config import Settings
from tests.unit.facade.double import RecordingEngine, delivery

SIGNED = "AWS4-HMAC-SHA256 Credential=shop/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0"


async def post(
    engine: RecordingEngine, action: str, content: bytes = b"{}", path: str = "/", auth: str = "open", **headers: str
) -> httpx.Response:
    settings = Settings(auth=auth, admin_key_secret="s")
    transport = httpx.ASGITransport(create_app(settings, cast(Engine, engine)))
    sent = {
        "x-amz-target": f"AmazonSQS.{action}",
        "content-type": "application/x-amz-json-1.0",
        "authorization": SIGNED,
        **headers,
    }
    async with httpx.AsyncClient(transport=transport, base_url="http://queues.localhost:9400") as client:
        return await client.post(path, content=content, headers=sent)


def shape(response: httpx.Response) -> tuple[int, str, str]:
    return response.status_code, response.json()["__type"].partition("#")[2], response.headers["x-amzn-query-error"]


@pytest.fixture
def engine() -> RecordingEngine:
    found = RecordingEngine()
    found.answers["send"] = [Sent("id1", "md5", 1)]
    found.answers["receive"] = [delivery()]
    return found


@pytest.mark.parametrize("path", ["/", "/000000000000/orders", "/v1/queues/orders/messages"])
async def test_any_path_is_taken_for_an_action(engine: RecordingEngine, path: str) -> None:
    body = (
        b'{"QueueUrl": "http://elsewhere/123456789012/orders", "MessageBody": "x", "Unknown": 1, "DelaySeconds": null}'
    )
    response = await post(engine, "SendMessage", body, path)

    assert response.json() == {"MessageId": "id1", "MD5OfMessageBody": "md5"}
    assert response.headers["content-type"] == "application/x-amz-json-1.0"
    assert "x-amzn-requestid" in response.headers


async def test_the_key_id_of_the_signature_is_who_asks(engine: RecordingEngine) -> None:
    await post(engine, "SendMessage", b'{"QueueUrl": "orders", "MessageBody": "x"}')
    await post(engine, "SendMessage", b'{"QueueUrl": "orders", "MessageBody": "x"}', authorization="Basic eDp5")

    assert engine.credentials == [("shop", None), (None, None)]


def now_signed(content: bytes, secret: str = "secret") -> dict[str, str]:
    """The headers of a request as botocore signs it."""
    request = AWSRequest(
        "POST", "http://queues.localhost:9400/", headers={"x-amz-target": "AmazonSQS.ReceiveMessage"}, data=content
    )
    SigV4Auth(Credentials("shop", secret), "sqs", "us-east-1").add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


async def test_a_signature_lets_in_where_credentials_are_required(engine: RecordingEngine) -> None:
    content = b'{"QueueUrl": "orders"}'
    headers: dict[str, Any] = now_signed(content)
    response = await post(engine, "ReceiveMessage", content, auth="required", **headers)

    assert response.status_code == 200
    assert engine.calls[-1][1].id == "shop"


@pytest.mark.parametrize(
    ("headers", "refuse", "expected"),
    [
        (lambda: {"authorization": ""}, None, (403, "MissingAuthenticationToken", "MissingAuthenticationToken;Sender")),
        (lambda: {"authorization": "Basic eDp5"}, None, (400, "IncompleteSignature", "IncompleteSignature;Sender")),
        (lambda: now_signed(b"{}", "another"), None, (403, "SignatureDoesNotMatch", "SignatureDoesNotMatch;Sender")),
        (lambda: now_signed(b"{} "), None, (403, "SignatureDoesNotMatch", "SignatureDoesNotMatch;Sender")),
        (
            lambda: now_signed(b"{}"),
            NotAuthenticated("no", field="key_id"),
            (403, "InvalidClientTokenId", "InvalidClientTokenId;Sender"),
        ),
    ],
)
async def test_nobody_else_is_let_in_where_credentials_are_required(
    engine: RecordingEngine,
    headers: Callable[[], dict[str, Any]],
    refuse: NotAuthenticated | None,
    expected: tuple[int, str, str],
) -> None:
    """`headers` are made when the test runs: a signature is good for 15 minutes."""
    engine.refuse = refuse

    assert shape(await post(engine, "ReceiveMessage", auth="required", **headers())) == expected
    assert engine.calls == []


async def test_a_page_of_another_site_may_not_act(engine: RecordingEngine) -> None:
    response = await post(
        engine, "SendMessage", b'{"QueueUrl": "orders", "MessageBody": "x"}', **{"sec-fetch-site": "cross-site"}
    )

    assert response.status_code == 403
    assert engine.calls == []


@pytest.mark.parametrize(
    ("action", "content", "expected"),
    [
        ("Nothing", b"{}", (404, "UnknownOperationException", "UnknownOperationException;Sender")),
        ("TagQueue", b'{"QueueUrl": "q"}', (400, "MissingRequiredParameterException", "MissingParameter;Sender")),
        (
            "PurgeQueue",
            b'{"QueueUrl": "q@t"}',
            (400, "UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation;Sender"),
        ),
        ("SendMessage", b"{", (400, "SerializationException", "SerializationException;Sender")),
        ("SendMessage", b"[" * 100_000, (400, "SerializationException", "SerializationException;Sender")),
        ("SendMessage", b'{"MessageBody": "\xff"}', (400, "SerializationException", "SerializationException;Sender")),
        ("SendMessage", b'{"DelaySeconds": "1"}', (400, "SerializationException", "SerializationException;Sender")),
        ("SendMessage", b'{"MessageBody": "x"}', (400, "MissingRequiredParameterException", "MissingParameter;Sender")),
        ("SendMessage", b'{"QueueUrl": "q"}', (400, "MissingRequiredParameterException", "MissingParameter;Sender")),
        ("CreateQueue", b"{}", (400, "InvalidParameterValueException", "InvalidParameterValue;Sender")),
        ("SendMessage", b'{"QueueUrl": "/", "MessageBody": "x"}', (404, "InvalidAddress", "InvalidAddress;Sender")),
        ("DeleteMessage", b'{"QueueUrl": "q"}', (400, "MissingRequiredParameterException", "MissingParameter;Sender")),
        (
            "DeleteMessage",
            b'{"QueueUrl": "q", "ReceiptHandle": "' + b"x" * 1025 + b'"}',
            (404, "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid;Sender"),
        ),
    ],
)
async def test_a_bad_request_is_refused_in_the_words_of_sqs(
    engine: RecordingEngine, action: str, content: bytes, expected: tuple[int, str, str]
) -> None:
    assert shape(await post(engine, action, content)) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (LogUnavailable(), (503, "ServiceUnavailable", "ServiceUnavailable;Receiver")),
        (RuntimeError("a secret"), (500, "InternalFailure", "InternalFailure;Receiver")),
    ],
)
async def test_a_fault_of_ours_says_so(
    engine: RecordingEngine, error: Exception, expected: tuple[int, str, str]
) -> None:
    engine.error = error
    response = await post(engine, "SendMessage", b'{"QueueUrl": "q", "MessageBody": "x"}')

    assert shape(response) == expected
    assert "secret" not in response.text


@pytest.mark.parametrize(
    ("url", "tag"), [("q", None), ("http://h.localhost/0/q@billing", "billing"), ("http://h/q%40billing/", "billing")]
)
async def test_a_receive_asks_for_one_message_of_the_tag_in_the_url(
    engine: RecordingEngine, url: str, tag: str | None
) -> None:
    response = await post(engine, "ReceiveMessage", b'{"QueueUrl": "%s", "WaitTimeSeconds": 0}' % url.encode())
    message: dict[str, Any] = response.json()["Messages"][0]

    assert engine.calls[-1][2:] == ("q", tag, 1, 0, None, None)
    assert set(message) == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}


async def test_what_has_no_target_goes_to_the_native_api(engine: RecordingEngine) -> None:
    transport = httpx.ASGITransport(create_app(Settings(), cast(Engine, engine)))
    async with httpx.AsyncClient(transport=transport, base_url="http://h.localhost") as client:
        response = await client.post("/v1/queues/orders/messages", json={"messages": [{"body": "x"}]})

    assert response.json()["messages"][0]["id"] == "id1"


async def test_a_client_that_goes_ends_its_wait(engine: RecordingEngine) -> None:
    engine.hold = asyncio.Event()
    app = create_app(Settings(), cast(Engine, engine))
    events = iter(
        [{"type": "http.request", "body": b'{"QueueUrl": "q", "WaitTimeSeconds": 20}'}, {"type": "http.disconnect"}]
    )
    sent: list[Any] = []

    async def receive() -> Any:
        return next(events)

    async def send(event: Any) -> None:
        sent.append(event)

    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "headers": [(b"x-amz-target", b"AmazonSQS.ReceiveMessage")],
        "server": None,
    }
    await app(scope, receive, send)

    assert engine.cancelled.is_set()
    assert sent == []


@pytest.mark.parametrize(
    ("waited", "fifo", "told"), [(False, False, True), (True, False, False), (False, True, False), (True, True, False)]
)
async def test_over_the_limit_in_flight_only_a_short_poll_of_a_standard_queue_is_told(
    engine: RecordingEngine, waited: bool, fifo: bool, told: bool
) -> None:
    engine.error = TooManyInFlight("120000 may be in flight", limit=120_000, given=120_001, waited=waited, fifo=fifo)
    response = await post(engine, "ReceiveMessage", b'{"QueueUrl": "q"}')

    if told:
        assert shape(response) == (403, "OverLimit", "OverLimit;Sender")
    else:
        assert (response.status_code, response.json()) == (200, {})


async def test_a_batch_of_handles_asks_the_engine_once_whatever_they_are(engine: RecordingEngine) -> None:
    bad = EntryResult("b", "invalid", error=InvalidHandle("no", field="handles", given="b"))
    engine.answers["ack"] = [EntryResult("a", "ok"), bad, EntryResult("c", "lapsed"), EntryResult("d", "stale")]
    entries = [{"Id": handle.upper(), "ReceiptHandle": handle} for handle in "abcd"] + [
        {"Id": "E", "ReceiptHandle": ""}
    ]
    response = await post(engine, "DeleteMessageBatch", json.dumps({"QueueUrl": "q", "Entries": entries}).encode())

    assert engine.calls == [("ack", Principal("shop"), "q", ["a", "b", "c", "d"], Late.BY_QUEUE)]
    assert [one["Id"] for one in response.json()["Successful"]] == ["A", "D"]
    assert {one["Id"]: one["Code"] for one in response.json()["Failed"]} == {
        "E": "MissingParameter",
        "B": "ReceiptHandleIsInvalid",
        "C": "InvalidParameterValue",
    }


async def test_a_lease_that_is_too_long_in_all_fails_alone(engine: RecordingEngine) -> None:
    long = InvalidValue("too long", field="lease_ms", limit=43_200, given=43_200_000)
    engine.answers["extend"] = [EntryResult("a", "ok", 5), EntryResult("b", "invalid", error=long)]
    entries = [{"Id": handle, "ReceiptHandle": handle, "VisibilityTimeout": 43_200} for handle in "ab"]
    response = await post(
        engine, "ChangeMessageVisibilityBatch", json.dumps({"QueueUrl": "q", "Entries": entries}).encode()
    )

    assert [call[0] for call in engine.calls] == ["extend"]
    assert response.json()["Successful"] == [{"Id": "a"}]
    (failed,) = response.json()["Failed"]
    assert "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]" in failed["Message"]
