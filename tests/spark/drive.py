"""Traffic over HTTP of which the client keeps its own books: what it sent, got, gave back, lost to
the dead-letter queue, redrove.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

QUEUE, DEAD = "jobs", "jobs.dead"


class Person:
    """One principal on one connection; every call must be answered with 2xx."""

    def __init__(self, endpoint: str, name: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=30)
        self._name = name
        self._headers = {
            "content-type": "application/json",
            "authorization": "Basic " + base64.b64encode(f"{name}:x".encode()).decode(),
        }

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return self._answer(method, path, None if body is None else json.dumps(body).encode(), self._headers)

    def _answer(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
        # Spark's jobs take long, and the service closes connections that are silent for long.
        self._connection.close()
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status < 300, f"{method} {path}: {answer.status} {text[:300]!r}"
        return json.loads(text) if text else None

    def sqs(self, action: str, body: dict[str, Any]) -> Any:
        claim = (
            f"AWS4-HMAC-SHA256 Credential={self._name}/20260301/us-east-1/sqs/aws4_request, "
            "SignedHeaders=host, Signature=0"
        )
        headers = {
            "x-amz-target": f"AmazonSQS.{action}",
            "content-type": "application/x-amz-json-1.0",
            "authorization": claim,
        }
        return self._answer("POST", "/", json.dumps(body).encode(), headers)

    def close(self) -> None:
        self._connection.close()


class Books:
    """Counts by (queue, tag, what): `requests` and `messages`; of sends by (queue, principal) also
    `bytes`.
    """

    def __init__(self, endpoint: str) -> None:
        self.olga, self.alice, self.bob = (Person(endpoint, name) for name in ("olga", "alice", "bob"))
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.messages: Counter[tuple[str, str, str]] = Counter()
        self.sent: Counter[tuple[str, str, str]] = Counter()

    def close(self) -> None:
        for person in (self.olga, self.alice, self.bob):
            person.close()

    def make_queues(self) -> None:
        """A queue of one partition, so that a call is one entry of the journal; its dead-letter
        queue; a tag with a filter.
        """
        self.olga.call("POST", "/v1/queues", {"name": DEAD, "partitions": 1})
        policy = {"dead_letter_queue": DEAD, "max_receive_count": 2}
        self.olga.call(
            "POST", "/v1/queues", {"name": QUEUE, "partitions": 1, "lease_seconds": 3600, "redrive_policy": policy}
        )
        red = {"conditions": [{"name": "colour", "value": "red"}]}
        self.olga.call("POST", f"/v1/queues/{QUEUE}/tags", {"name": "audit", "start_at_ms": 0, "filter": red})

    def send(self, person: str, bodies: list[str], **fields: Any) -> None:
        """One request; several messages are one atomic batch."""
        messages = [{"body": body, **fields} for body in bodies]
        getattr(self, person).call("POST", f"/v1/queues/{QUEUE}/messages", {"messages": messages})
        self.sent[QUEUE, person, "requests"] += 1
        self.sent[QUEUE, person, "messages"] += len(bodies)
        self.sent[QUEUE, person, "bytes"] += sum(len(body.encode()) for body in bodies)

    def receive(self, most: int, tag: str = "default", queue: str = QUEUE) -> list[str]:
        """Handles of what one receive gave; exactly `most` must come."""
        ask = {"max": most, "wait_seconds": 5, "tag": tag}
        got = self.olga.call("POST", f"/v1/queues/{queue}/receive", ask)["messages"]
        assert len(got) == most, f"{len(got)} of {most} came"
        self._count(queue, tag, "leased", most)
        return [message["handle"] for message in got]

    def ack(self, handles: list[str], tag: str = "default", queue: str = QUEUE) -> None:
        self._all_ok("ack", queue, {"handles": handles})
        self._count(queue, tag, "acked", len(handles))

    def release(self, handles: list[str]) -> None:
        self._all_ok("release", QUEUE, {"handles": handles})
        self._count(QUEUE, "default", "released", len(handles))

    def show_at_once(self, handles: list[str]) -> None:
        """ChangeMessageVisibility(0), as SQS' clients give messages back."""
        for handle in handles:
            self.olga.sqs(
                "ChangeMessageVisibility", {"QueueUrl": f"/{QUEUE}", "ReceiptHandle": handle, "VisibilityTimeout": 0}
            )
            self._count(QUEUE, "default", "released", 1)

    def extend(self, handles: list[str]) -> None:
        self._all_ok("extend", QUEUE, {"entries": [{"handle": handle, "lease_seconds": 120} for handle in handles]})
        self._count(QUEUE, "default", "extended", len(handles))

    def kill(self, handles: list[str]) -> None:
        self._all_ok("kill", QUEUE, {"handles": handles})
        self.messages[QUEUE, "default", "dead"] += len(handles)

    def exhaust(self, count: int) -> None:
        """Gives `count` messages back as often as they may be received; the receive after that
        finds them dying.
        """
        self.release(self.receive(count))
        self.show_at_once(self.receive(count))
        self.olga.call("POST", f"/v1/queues/{QUEUE}/receive", {"max": count, "wait_seconds": 0})
        self.messages[QUEUE, "default", "dead"] += count

    def redrive(self) -> None:
        """Sends all dead letters back by the native API and waits until that is done."""
        task = self.olga.call("POST", f"/v1/queues/{DEAD}/redrive", {})
        end = time.monotonic() + 30
        while (now := self.olga.call("GET", f"/v1/tasks/{task['id']}"))[
            "status"
        ] == "running" and time.monotonic() < end:
            time.sleep(0.05)
        assert now["status"] == "completed", now
        self.redriven(now["moved"])

    def redriven(self, count: int) -> None:
        """Notes that so many dead letters were sent back, by whomever."""
        self.messages[DEAD, "default", "moved"] += count

    def wait_dead(self, count: int) -> None:
        """Until so many dead letters are in the dead-letter queue."""
        end = time.monotonic() + 30
        while self.olga.call("GET", f"/v1/queues/{DEAD}")["tags"][0]["backlog"] < count:
            assert time.monotonic() < end, f"no {count} dead letters came"
            time.sleep(0.05)

    def _all_ok(self, verb: str, queue: str, body: Any) -> None:
        results = self.olga.call("POST", f"/v1/queues/{queue}/{verb}", body)["results"]
        assert {result["status"] for result in results} == {"ok"}, results

    def _count(self, queue: str, tag: str, what: str, messages: int) -> None:
        self.requests[queue, tag, what] += 1
        self.messages[queue, tag, what] += messages
