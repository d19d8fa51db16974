"""Requests of the hot verbs, given to the ASGI app as our own server would, in both dialects."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Protocol

from starlette.types import ASGIApp, Message

from facade.http.asgi import DIRECT

QUEUE = "budget"


class Refused(AssertionError):
    """A request was not answered with 200."""


class Dialect(Protocol):
    """One way to say send, receive and ack. Each returns headers, path and body."""

    name: str

    def send(self, bodies: list[str]) -> tuple[list[tuple[bytes, bytes]], str, bytes]: ...

    def receive(self, most: int, wait_s: int) -> tuple[list[tuple[bytes, bytes]], str, bytes]: ...

    def ack(self, handles: list[str]) -> tuple[list[tuple[bytes, bytes]], str, bytes]: ...

    def handles(self, answer: bytes) -> list[str]: ...


class Native:
    """POST /v1/queues/{queue}/{verb}."""

    name = "native"

    @staticmethod
    def _request(verb: str, body: Any) -> tuple[list[tuple[bytes, bytes]], str, bytes]:
        return [(b"content-type", b"application/json")], f"/v1/queues/{QUEUE}/{verb}", json.dumps(body).encode()

    def send(self, bodies: list[str]) -> tuple[list[tuple[bytes, bytes]], str, bytes]:
        return self._request("messages", {"messages": [{"body": body} for body in bodies]})

    def receive(self, most: int, wait_s: int) -> tuple[list[tuple[bytes, bytes]], str, bytes]:
        return self._request("receive", {"max": most, "wait_seconds": wait_s})

    def ack(self, handles: list[str]) -> tuple[list[tuple[bytes, bytes]], str, bytes]:
        return self._request("ack", {"handles": handles})

    def handles(self, answer: bytes) -> list[str]:
        return [message["handle"] for message in json.loads(answer)["messages"]]


class Sqs:
    """AWS JSON 1.0, signed in appearance as the load generator does it."""

    name = "sqs"

    @staticmethod
    def _request(action: str, **fields: Any) -> tuple[list[tuple[bytes, bytes]], str, bytes]:
        headers = [
            (b"content-type", b"application/x-amz-json-1.0"),
            (b"x-amz-target", b"AmazonSQS." + action.encode()),
            (b"x-amz-date", b"20260101T000000Z"),
            (
                b"authorization",
                b"AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, "
                b"SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=" + b"0" * 64,
            ),
        ]
        return headers, "/", json.dumps({"QueueUrl": f"http://127.0.0.1/000000000000/{QUEUE}", **fields}).encode()

    def send(self, bodies: list[str]) -> tuple[list[tuple[bytes, bytes]], str, bytes]:
        if len(bodies) == 1:
            return self._request("SendMessage", MessageBody=bodies[0])
        return self._request(
            "SendMessageBatch", Entries=[{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)]
        )

    def receive(self, most: int, wait_s: int) -> tuple[list[tuple[bytes, bytes]], str, bytes]:
        return self._request("ReceiveMessage", MaxNumberOfMessages=most, WaitTimeSeconds=wait_s)

    def ack(self, handles: list[str]) -> tuple[list[tuple[bytes, bytes]], str, bytes]:
        if len(handles) == 1:
            return self._request("DeleteMessage", ReceiptHandle=handles[0])
        return self._request(
            "DeleteMessageBatch", Entries=[{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(handles)]
        )

    def handles(self, answer: bytes) -> list[str]:
        return [message["ReceiptHandle"] for message in json.loads(answer).get("Messages", [])]


DIALECTS: tuple[Dialect, ...] = (Native(), Sqs())


class Whole:
    """A request that came whole, and what takes its reply (`facade.http.asgi.DirectBody`)."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self.status, self.answer = 0, b""

    def whole_body(self) -> bytes | None:
        body, self._body = self._body, None
        return body

    def reply(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes, *, look: bool = False) -> bool:
        self.status, self.answer = status, body
        return True


async def ask(app: ASGIApp, request: tuple[list[tuple[bytes, bytes]], str, bytes]) -> bytes:
    """The body of the answer. Raises Refused unless the status is 200."""
    headers, path, body = request
    whole = Whole(body)
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "scheme": "http",
        "http_version": "1.1", "server": ("127.0.0.1", 9400), "client": ("127.0.0.1", 40000), "root_path": "",
        "headers": [(b"host", b"127.0.0.1:9400"), *headers, (b"content-length", b"%d" % len(body))],
        "extensions": {DIRECT: whole},
    }  # fmt: skip

    async def receive() -> Message:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]  # the client stays

    async def send(message: Message) -> None:
        raise AssertionError(f"{path}: a reply in parts, {message}")

    await app(scope, receive, send)
    if whole.status != 200:
        raise Refused(f"{path}: {whole.status} {whole.answer[:300]!r}")
    return whole.answer
