"""One client of a queue over SQS JSON, without attributes: requests that the plane serves.

Such an answer tells neither how often a message was received nor whether a handle was stale, so the
history does not have it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from tests.faults.client import Client, Leased, attributes_digest, compose
from tests.judge.history import SQS, UNTOLD, Delivered, Line, Result, Sent, digest

# In a handle, behind what it names: when the lease began, in ms by the server's clock.
TIME_AT = slice(25, 31)
MOST = 10
NO_ATTRIBUTES = attributes_digest({})
COUNT = "ApproximateReceiveCount"


class SqsClient:
    """Makes SQS calls over the connection of a client, as the same process of the history."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def send(self, queue: str, uids: Sequence[str]) -> bool:
        """Sends a message for each name, ten at most in one request; True when all were taken."""
        bodies = [compose(uid, "")[0] for uid in uids]
        sends = [
            Sent(uid=uid, body=digest(body), attributes=NO_ATTRIBUTES) for uid, body in zip(uids, bodies, strict=True)
        ]
        line = Line("invoke", 0, by=SQS, verb="send", queue=queue, sends=sends)
        if len(bodies) == 1:
            done, answer = self._call("SendMessage", queue, {"MessageBody": bodies[0]}, line)
        else:
            entries = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)]
            done, answer = self._call("SendMessageBatch", queue, {"Entries": entries}, line)
        if done.type == "ok":
            taken = {"0": answer} if len(bodies) == 1 else {one["Id"]: one for one in answer["Successful"]}
            if len(taken) < len(bodies):
                done.type, done.answer = "info", answer
            else:
                done.ids = [taken[str(place)]["MessageId"] for place in range(len(bodies))]
        if done.type == "ok":
            self._client.works("send", queue)
        self._client.write(done)
        return done.type == "ok"

    def receive(self, queue: str, *, most: int, wait_s: int, lease_s: int, counts: bool) -> list[Leased] | None:
        """Returns what was leased; None when there was no good answer. `counts`: asks for the
        receive counts too, which the plane may not serve.
        """
        body: dict[str, Any] = {"MaxNumberOfMessages": most, "WaitTimeSeconds": wait_s, "VisibilityTimeout": lease_s}
        if counts:
            body["MessageSystemAttributeNames"] = [COUNT]
        line = Line("invoke", 0, by=SQS, verb="receive", queue=queue, args={"max": most, "lease_ms": lease_s * 1000})
        done, answer = self._call("ReceiveMessage", queue, body, line)
        leased = None
        if done.type == "ok":
            leased = [_leased(one, lease_s * 1000) for one in answer.get("Messages", [])]
            done.deliveries = [one.it for one in leased]
            if leased:
                self._client.works("receive", queue)
        self._client.write(done)
        return leased

    def ack(self, queue: str, leased: Sequence[Leased]) -> bool:
        """Deletes; True when it was answered by ok, which the service says of stale handles too."""
        if not leased:
            return True
        line = Line("invoke", 0, by=SQS, verb="ack", queue=queue, handles=[one.it.handle for one in leased])
        if len(leased) == 1:
            done, _ = self._call("DeleteMessage", queue, {"ReceiptHandle": leased[0].handle}, line)
            failed: list[Any] = []
        else:
            entries = [{"Id": str(place), "ReceiptHandle": one.handle} for place, one in enumerate(leased)]
            done, answer = self._call("DeleteMessageBatch", queue, {"Entries": entries}, line)
            failed = answer.get("Failed", []) if done.type == "ok" else []
        if failed:
            done.type, done.answer = "info", failed
        if done.type == "ok":
            done.results = [Result("ok") for _ in leased]
        self._client.write(done)
        return done.type == "ok"

    def leave(self, queue: str, after_s: float) -> None:
        """Begins a long poll and goes before its answer, which may be on its way then."""
        line = Line("invoke", 0, by=SQS, verb="receive", queue=queue, args={"max": MOST, "lease_ms": 1000})
        body = {"QueueUrl": self._url(queue), "MaxNumberOfMessages": MOST, "WaitTimeSeconds": 5, "VisibilityTimeout": 1}
        done = self._client.leave("POST", "/", body, line, after_s, _headers("ReceiveMessage"))
        self._client.write(done)

    def _call(self, action: str, queue: str, body: dict[str, Any], line: Line) -> tuple[Line, Any]:
        return self._client.call("POST", "/", {"QueueUrl": self._url(queue), **body}, line, _headers(action))

    def _url(self, queue: str) -> str:
        return f"http://{self._client.endpoint}/000000000000/{queue}"


def _headers(action: str) -> dict[str, str]:
    return {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"AmazonSQS.{action}"}


def _leased(one: dict[str, Any], lease_ms: int) -> Leased:
    body, handle = one["Body"], one["ReceiptHandle"]
    at_ms = int.from_bytes(base64.urlsafe_b64decode(handle)[TIME_AT])
    it = Delivered(
        id=one["MessageId"],
        uid=body.split(" ", 1)[0],
        body=digest(body),
        attributes=NO_ATTRIBUTES,
        handle=digest(handle),
        count=int(one.get("Attributes", {}).get(COUNT, UNTOLD)),
        sent_ms=0,
        visible_ms=at_ms + lease_ms,  # or somewhat later, if it was leased ahead
    )
    return Leased(it, handle)
