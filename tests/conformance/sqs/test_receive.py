"""ReceiveMessage: how many, which attributes, how long, dead letters; and messages of the native
API.

What is sent here is sent as test_messages.py has shown to work.
"""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.conformance.sqs.conftest import ABSENT, ATTRIBUTES, INVALID, SYSTEM_NAMES, Refused, text
from tests.services import Up


def test_an_empty_receive_has_no_messages(sqs: Any, queue: str) -> None:
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)


def test_a_receive_gives_one_message_unless_asked_for_more(sqs: Any, queue: str) -> None:
    sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(3)])

    assert len(sqs.receive_message(QueueUrl=queue)["Messages"]) == 1


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (["All"], set(ATTRIBUTES)),
        ([".*"], set(ATTRIBUTES)),
        (["price.*"], {"price.net", "price.gross"}),
        (["colour", "nothing", "a b"], {"colour"}),
        (["nothing"], set()),
    ],
)
def test_message_attributes_are_shown_by_name_or_prefix(
    sqs: Any, queue: str, asked: list[str], shown: set[str]
) -> None:
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=ATTRIBUTES)
    (got,) = sqs.receive_message(QueueUrl=queue, MessageAttributeNames=asked)["Messages"]

    assert set(got.get("MessageAttributes", {})) == shown
    assert ("MD5OfMessageAttributes" in got) == bool(shown)
    assert (got.get("MD5OfMessageAttributes") == sent["MD5OfMessageAttributes"]) == (shown == set(ATTRIBUTES))


@pytest.mark.parametrize("parameter", SYSTEM_NAMES)
def test_system_attributes_are_shown_when_asked_for(sqs: Any, queue: str, parameter: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (first,) = sqs.receive_message(QueueUrl=queue, VisibilityTimeout=0, **{parameter: ["All"]})["Messages"]
    (second,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1, **{parameter: ["ApproximateReceiveCount"]})[
        "Messages"
    ]
    found = first["Attributes"]

    assert set(found) == {"SenderId", "SentTimestamp", "ApproximateReceiveCount", "ApproximateFirstReceiveTimestamp"}
    assert (found["SenderId"], found["ApproximateReceiveCount"]) == ("shop", "1")
    assert abs(int(found["SentTimestamp"]) - time.time() * 1000) < 30_000
    assert int(found["SentTimestamp"]) <= int(found["ApproximateFirstReceiveTimestamp"]) + 50
    assert second["Attributes"] == {"ApproximateReceiveCount": "2"}
    assert second["ReceiptHandle"] != first["ReceiptHandle"]


def test_a_wait_of_the_request_goes_before_that_of_the_queue(sqs: Any, name: str) -> None:
    url = sqs.create_queue(QueueName=name, Attributes={"ReceiveMessageWaitTimeSeconds": "1"})["QueueUrl"]
    took = []
    for arguments in ({}, {"WaitTimeSeconds": 0}):
        began = time.monotonic()
        assert "Messages" not in sqs.receive_message(QueueUrl=url, **arguments)
        took.append(time.monotonic() - began)

    assert 0.9 < took[0] < 3 and took[1] < 0.9


@pytest.mark.parametrize(
    "arguments",
    [
        {"MaxNumberOfMessages": 0},
        {"MaxNumberOfMessages": 11},
        {"WaitTimeSeconds": 21},
        {"VisibilityTimeout": 43_201},
        {"WaitTimeSeconds": -1},
    ],
)
def test_a_receive_out_of_range_is_refused(sqs: Any, queue: str, refused: Refused, arguments: dict[str, Any]) -> None:
    assert refused(sqs.receive_message, QueueUrl=queue, **arguments) == INVALID


def test_a_message_of_the_native_api_comes_in_the_words_of_sqs(sqs: Any, up: Up, name: str, queue: str) -> None:
    message = {"body": "x", "attributes": {"kind": "retail", "n": {"type": "number.int", "value": "3"}}}
    sent = httpx.post(f"{up.endpoint}/v1/queues/{name}/messages", json={"messages": [message]}).json()["messages"][0]
    (got,) = sqs.receive_message(QueueUrl=queue, MessageAttributeNames=["All"])["Messages"]

    assert got["MessageId"] == sent["id"]
    assert got["MessageAttributes"] == {"kind": text("retail"), "n": {"DataType": "Number.int", "StringValue": "3"}}


def test_nothing_can_be_sent_to_or_received_from_a_queue_that_is_not_there(sqs: Any, up: Up, refused: Refused) -> None:
    nowhere = f"{up.endpoint}/000000000000/nowhere"
    bad = [{"Id": "a", "MessageBody": "\x00"}]

    assert refused(sqs.send_message, QueueUrl=nowhere, MessageBody="x") == ABSENT
    assert refused(sqs.send_message_batch, QueueUrl=nowhere, Entries=bad) == ABSENT
    assert refused(sqs.receive_message, QueueUrl=nowhere) == ABSENT
