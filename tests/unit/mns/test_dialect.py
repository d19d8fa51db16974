"""Which requests are MNS's, and the shape of replies, on a recording engine."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from engine.errors import LogUnavailable, Overloaded, QueueNotFound
from engine.shapes import EntryResult, Sent
from tests.unit.facade.double import QUEUE, TAG, RecordingEngine, delivery, peeked
from tests.unit.mns.by_hand import VERSION, ask

MESSAGE = "<Message><MessageBody>x</MessageBody></Message>"


class MnsEngine(RecordingEngine):
    """With the verb that is no coroutine."""

    def one_use(self, leased: Any) -> str:
        return f"{leased.handle}-once"


@pytest.fixture
def engine() -> MnsEngine:
    found = MnsEngine()
    found.answers["send"] = [Sent("id1", "5d41402abc4b2a76b9719d911017c592", 1)]
    found.answers["receive"] = [delivery()]
    found.answers["peek_next"] = [peeked()]
    found.answers["get_queue"] = QUEUE
    found.answers["list_queues"] = ([], None)
    return found


@pytest.mark.parametrize(
    ("target", "headers", "is_mns"),
    [
        ("/queues", {}, True),
        ("/queues/orders", {}, True),
        ("/anything", dict(VERSION), True),
        ("/anything", {"authorization": "MNS ak:x"}, True),
        ("/anything", {"authorization": "MNS4-HMAC-SHA256 Credential=x"}, True),
        ("/?accountmeta=true", dict(VERSION), True),
        ("/v1/queues", {}, False),
        ("/queuesx", {}, False),
        ("/000000000000/orders?Action=ListQueues", {}, False),
        ("/health", {}, False),
    ],
)
async def test_which_requests_are_mns(engine: MnsEngine, target: str, headers: dict[str, str], is_mns: bool) -> None:
    answer = await ask(engine, "GET", target, headers=headers)

    assert ("x-mns-request-id" in answer.headers) == is_mns


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("PATCH", "/queues/a"),
        ("POST", "/queues"),
        ("GET", "/topics/a"),
        ("PUT", "/a"),
        ("HEAD", "/queues/a/messages"),
        ("GET", "/queues/a/b"),
    ],
)
async def test_what_is_no_operation_is_told(engine: MnsEngine, method: str, target: str) -> None:
    answer = await ask(engine, method, target)

    assert answer.status == 400
    assert method == "HEAD" or answer.text("Code") == "InvalidRequestURL"
    assert engine.calls == []


async def test_a_reply_has_the_headers_and_the_form_of_mns(engine: MnsEngine) -> None:
    answer = await ask(engine, "GET", "/queues/orders/messages")

    assert answer.headers["content-type"] == "text/xml;charset=utf-8"
    assert re.fullmatch("[0-9A-F]{24}", answer.headers["x-mns-request-id"])
    assert answer.headers["x-mns-version"] == "2015-06-06"
    assert answer.body.startswith(
        b'<?xml version="1.0" ?>\n<Message xmlns="http://mns.aliyuncs.com/doc/v1">\n  <MessageId>id1</MessageId>\n'
    )
    assert answer.text("ReceiptHandle") == "handle1-once"


async def test_an_error_has_what_clients_want(engine: MnsEngine) -> None:
    engine.error = QueueNotFound("there is no queue 'orders' <&>")
    answer = await ask(engine, "DELETE", "/queues/orders")

    assert answer.told == (404, "QueueNotExist")
    assert answer.text("Message") == "there is no queue 'orders' <&>"
    assert answer.text("RequestId") == answer.headers["x-mns-request-id"]
    assert answer.text("HostId") == "http://localhost:9400"


async def test_an_answer_of_204_has_no_body_and_no_length(engine: MnsEngine) -> None:
    answer = await ask(engine, "DELETE", "/queues/orders")

    assert (answer.status, answer.body) == (204, b"")
    assert "content-length" not in answer.headers


@pytest.mark.parametrize(
    ("error", "told"), [(LogUnavailable("no"), (503, "InternalError")), (Overloaded("no"), (429, "TooManyRequests"))]
)
async def test_what_may_be_asked_again_says_when(engine: MnsEngine, error: Exception, told: tuple[int, str]) -> None:
    engine.error = error
    answer = await ask(engine, "GET", "/queues/orders")

    assert answer.told == told
    assert answer.headers["retry-after"] == "1"


async def test_what_nobody_expected_tells_nothing(engine: MnsEngine) -> None:
    engine.error = RuntimeError("secret")
    answer = await ask(engine, "GET", "/queues/orders")

    assert answer.told == (500, "InternalError")
    assert b"secret" not in answer.body


async def test_a_message_that_no_answer_carries_is_given_back(
    engine: MnsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(leased: Any) -> str:
        raise RuntimeError

    monkeypatch.setattr(engine, "one_use", fails)
    answer = await ask(engine, "GET", "/queues/orders/messages")

    assert answer.status == 500
    assert [[one.handle for one in some] for some in engine.undelivered_] == [["handle1"]]


@pytest.mark.parametrize(
    ("target", "most", "wait_ms"),
    [
        ("/queues/orders/messages", 1, None),
        ("/queues/orders/messages?waitseconds=0", 1, 0),
        ("/queues/orders/messages?WaitSeconds=30", 1, 30_000),
        ("/queues/orders/messages?numOfMessages=16&waitseconds=5", 16, 5000),
    ],
)
async def test_a_receive_waits_as_it_says(engine: MnsEngine, target: str, most: int, wait_ms: int | None) -> None:
    await ask(engine, "GET", target)

    assert engine.calls[-1][2:6] == ("orders", None, most, wait_ms)


async def test_an_at_sign_names_a_tag(engine: MnsEngine) -> None:
    await ask(engine, "GET", "/queues/orders@billing/messages?peekonly=true")
    await ask(engine, "GET", "/queues/orders%40billing/messages")
    await ask(engine, "POST", "/queues/orders@billing/messages", MESSAGE)

    assert [(call[0], call[2]) for call in engine.calls] == [
        ("peek_next", "orders"),
        ("receive", "orders"),
        ("send", "orders"),
    ]
    assert (engine.calls[0][3], engine.calls[1][3]) == ("billing", "billing")


async def test_the_counts_are_those_of_the_tag(engine: MnsEngine) -> None:
    answer = await ask(engine, "GET", "/queues/orders@billing")

    counts = [answer.text(name) for name in ("ActiveMessages", "InactiveMessages", "DelayMessages", "QueueName")]
    assert counts == [str(TAG.ready), str(TAG.leased), str(TAG.delayed), "orders@billing"]


async def test_of_a_batch_what_is_wrong_fails_alone(engine: MnsEngine) -> None:
    wrong = "<Message><MessageBody/></Message>"
    answer = await ask(engine, "POST", "/queues/orders/messages", f"<Messages>{wrong}{MESSAGE}</Messages>")

    assert answer.status == 500
    assert len(engine.calls[-1][3]) == 1
    assert answer.text("Message", "ErrorCode") == "InvalidArgument"
    assert answer.text("Message", "MessageId") == "id1"
    # Clients want two elements in each, no more.
    assert re.findall(rb"<(\w+)>[^<\n]+</", answer.body) == [
        b"ErrorCode",
        b"ErrorMessage",
        b"MessageId",
        b"MessageBodyMD5",
    ]


async def test_of_a_batch_of_handles_only_what_failed_is_told(engine: MnsEngine) -> None:
    engine.answers["ack"] = [EntryResult("a", "ok"), EntryResult("b", "stale")]
    body = "<ReceiptHandles><ReceiptHandle>a</ReceiptHandle><ReceiptHandle>b</ReceiptHandle></ReceiptHandles>"
    answer = await ask(engine, "DELETE", "/queues/orders/messages", body)

    assert answer.status == 404
    assert re.findall(rb"<(\w+)>([^<\n]+)</", answer.body)[0::2] == [
        (b"ErrorCode", b"MessageNotExist"),
        (b"ReceiptHandle", b"b"),
    ]


async def test_a_long_poll_whose_client_goes_ends(engine: MnsEngine) -> None:
    engine.hold = asyncio.Event()
    task = asyncio.create_task(ask(engine, "GET", "/queues/orders/messages?waitseconds=30"))
    async with asyncio.timeout(10):
        while not engine.calls:
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert engine.cancelled.is_set()
