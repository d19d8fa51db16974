"""One history of leases, delays, durable acks and dead letters, played to a service with a plane
and to one without: the answers are the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.conformance.beside import ADMIN_SECRET, beside
from tests.conformance.conftest import Running
from tests.conformance.shares import shared
from tests.conformance.sqs.conftest import PROTOCOL, client_of, take
from tests.services import Up

pytestmark = [
    pytest.mark.skipif(PROTOCOL == "query", reason="the plane reads JSON"),
    pytest.mark.skipif("SQS_ENDPOINT" in os.environ, reason="another service is started beside ours"),
    pytest.mark.usefixtures("library"),
]
ADMIN = ("admin", ADMIN_SECRET)


@pytest.fixture(scope="module")
def python(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service whose requests Python serves."""
    yield from beside(up, "python", {"PLANE": "off"}, tmp_path_factory)


class Play:
    """Calls of one service, and what came of each."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.sqs = client_of(endpoint, *ADMIN)
        self.base = f"{endpoint}/v1/queues"
        self.name = name
        self.said: list[Any] = []

    def queue(self, suffix: str, **attributes: str) -> str:
        return str(self.sqs.create_queue(QueueName=f"{self.name}-{suffix}", Attributes=attributes)["QueueUrl"])

    def says(self, action: str, url: str, **given: Any) -> None:
        """Notes the answer of an action, or the code of its error."""
        try:
            answer = getattr(self.sqs, action)(QueueUrl=url, **given)
        except ClientError as error:
            self.said.append((action, error.response["Error"]["Code"]))
            return
        done = [entry["Id"] for entry in answer.get("Successful", ())]
        self.said.append(
            (action, done, [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer.get("Failed", ())])
        )

    def take(self, url: str, most: int = 10, wait_s: int = 5, **given: Any) -> list[str]:
        """Receives, notes what came and how often it was received, and returns the handles."""
        messages = take(self.sqs, url, most, WaitTimeSeconds=wait_s, **given)
        rows = sorted(
            (one["Body"], one["Attributes"]["ApproximateReceiveCount"], one["ReceiptHandle"]) for one in messages
        )
        self.said.append([row[:2] for row in rows])
        return [handle for _, _, handle in rows]

    def native(self, verb: str, body: dict[str, Any], auth: tuple[str, str] | None) -> None:
        """Notes what became of each handle."""
        answer = httpx.post(f"{self.base}/{self.name}-leases/{verb}", json=body, auth=auth)
        results = answer.json().get("results", ())
        said = [(one["status"], "next_visible_at_ms" in one) for one in results]
        self.said.append((verb, answer.status_code, answer.json().get("code"), said))


def leases(play: Play, auth: tuple[str, str] | None) -> None:
    url = play.queue("leases", VisibilityTimeout="30")
    change, many, delete = "change_message_visibility", "change_message_visibility_batch", "delete_message"
    for body in "abc":
        play.says("send_message", url, MessageBody=body)
    first: dict[str, str] = {}
    while len(first) < 3:
        (handle,) = (take(play.sqs, url, 1, WaitTimeSeconds=5) or [{}])[:1]
        first[handle["Body"]] = handle["ReceiptHandle"]
    a, b, c = (first[body] for body in "abc")
    play.says(change, url, ReceiptHandle=a, VisibilityTimeout=30)
    play.says(change, url, ReceiptHandle=a, VisibilityTimeout=0)
    (again,) = play.take(url)
    play.says(change, url, ReceiptHandle=a, VisibilityTimeout=30)  # superseded
    play.says(delete, url, ReceiptHandle=b)
    play.says(change, url, ReceiptHandle=b, VisibilityTimeout=30)  # settled
    play.says(change, url, ReceiptHandle="x" * 52, VisibilityTimeout=30)
    play.says(change, url, ReceiptHandle=c, VisibilityTimeout=43_201)
    time.sleep(1.1)
    play.says(change, url, ReceiptHandle=c, VisibilityTimeout=43_200)  # since the delivery that is more
    entries = {"a": a, "again": again, "b": b, "c": c, "none": "x" * 52}
    play.says(
        many,
        url,
        Entries=[{"Id": name, "ReceiptHandle": handle, "VisibilityTimeout": 20} for name, handle in entries.items()],
    )
    play.says(many, url, Entries=[{"Id": name, "ReceiptHandle": c, "VisibilityTimeout": 20} for name in "cd"])
    good = [{"Id": name, "ReceiptHandle": entries[name], "VisibilityTimeout": 1} for name in ("again", "c")]
    play.says(many, url, Entries=good)
    time.sleep(1.2)
    play.says(change, url, ReceiptHandle=c, VisibilityTimeout=30)  # lapsed, and nobody has had it since
    (again,) = play.take(url)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("extend", {"entries": [{"handle": c, "lease_seconds": 30}, {"handle": b, "lease_seconds": 30}]}),
        ("extend", {"entries": [{"handle": c, "lease_seconds": 0}]}),
        ("extend", {"entries": [{"handle": "x", "lease_seconds": 30}]}),
        ("extend", {"entries": [{"handle": c, "lease_seconds": 43_201}]}),
        ("release", {"handles": [a, again]}),
        ("release", {"handles": [again]}),
        ("release", {"handles": [c], "delay_seconds": 1}),
        ("release", {"handles": ["x"]}),
    ]
    for verb, given in calls:
        play.native(verb, given, auth)
    play.take(url)


def delays(play: Play) -> None:
    one, by_default = play.queue("delays"), play.queue("delayed", DelaySeconds="1")
    for url, given in ((one, {"DelaySeconds": 1}), (by_default, {}), (by_default, {"DelaySeconds": 0})):
        began = time.monotonic()
        play.says("send_message", url, MessageBody="a", **given)
        (handle,) = play.take(url)
        play.said.append(("after a second", time.monotonic() - began >= 1))
        play.says("delete_message", url, ReceiptHandle=handle)
    entries = [
        {"Id": f"{n}", "MessageBody": f"{n}", "DelaySeconds": delay}
        for n, delay in enumerate((0, 0, 1, 1, 0, 300, 900))
    ]
    play.says("send_message_batch", one, Entries=entries)
    play.says("send_message", one, MessageBody="x", DelaySeconds=901)
    found: list[str] = []
    while len(found) < 5:
        found += [message["Body"] for message in take(play.sqs, one, WaitTimeSeconds=5)]
    play.said.append(sorted(found))
    counts = play.sqs.get_queue_attributes(QueueUrl=one, AttributeNames=["All"])["Attributes"]
    play.said.append(counts["ApproximateNumberOfMessagesDelayed"])


def dead_letters(play: Play) -> None:
    dead = play.queue("dead")
    arn = play.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    url = play.queue("poison", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2}))
    play.says("send_message", url, MessageBody="a")
    for _ in range(2):
        (handle,) = play.take(url)
        play.says("change_message_visibility", url, ReceiptHandle=handle, VisibilityTimeout=0)
    play.take(url, wait_s=1)
    play.take(dead)


def durable(play: Play, auth: tuple[str, str] | None) -> None:
    made = httpx.post(play.base, json={"name": f"{play.name}-durable", "durable_acks": True}, auth=auth)
    assert made.is_success, made.text
    url = str(play.sqs.get_queue_url(QueueName=f"{play.name}-durable")["QueueUrl"])
    play.says("send_message_batch", url, Entries=[{"Id": body, "MessageBody": body} for body in "abc"])
    handles: list[str] = []
    while len(handles) < 3:
        handles += [message["ReceiptHandle"] for message in take(play.sqs, url, WaitTimeSeconds=5)]
    play.says("delete_message", url, ReceiptHandle=handles[0])
    play.says(
        "delete_message_batch",
        url,
        Entries=[{"Id": f"{n}", "ReceiptHandle": handle} for n, handle in enumerate(handles)],
    )
    play.take(url, wait_s=0)


def test_answers_are_the_same_with_a_plane_and_without(up: Up | Running, python: Running, name: str) -> None:
    plays = [Play(up.endpoint, name), Play(python.endpoint, name)]
    for play, auth in zip(plays, (None, ADMIN), strict=True):
        leases(play, auth)
        delays(play)
        dead_letters(play)
        durable(play, auth)
    assert plays[0].said == plays[1].said
    assert httpx.get(f"{python.endpoint}/health").json()["plane"] == "off: LEASEWAY_PLANE=off"


ROUNDS = 40


def test_delays_durable_acks_and_dead_letters_are_plain(up: Up | Running, name: str) -> None:
    play = Play(up.endpoint, name)
    made = httpx.post(play.base, json={"name": f"{name}-durable", "durable_acks": True})
    assert made.is_success, made.text
    dead = play.queue("dead")
    arn = play.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    queues = {
        "DelaySeconds": (play.queue("one"), {"DelaySeconds": 1}),
        "a queue with a delay": (play.queue("default", DelaySeconds="1"), {}),
        "a queue with a redrive policy": (
            play.queue("poison", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})),
            {},
        ),
        "durable acks": (str(play.sqs.get_queue_url(QueueName=f"{name}-durable")["QueueUrl"]), {}),
    }
    for what, (url, given) in queues.items():
        with shared(up, what):
            for n in range(ROUNDS):
                play.sqs.send_message(QueueUrl=url, MessageBody=f"{n}", **given)
            left = ROUNDS
            while left:
                for message in take(play.sqs, url, WaitTimeSeconds=5):
                    play.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    left -= 1
