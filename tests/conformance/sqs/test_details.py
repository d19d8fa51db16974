"""Small things that clients rely on: each was different here from the real service once."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import httpx
import pytest

from tests.conformance.conftest import Running
from tests.conformance.sqs.conftest import ATTRIBUTES, counts, put, receive_all, take, text
from tests.services import Up

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_queue_url_is_a_place_to_ask_for_queue_urls(up: Up | Running, queue: str, name: str, method: str) -> None:
    form = {"Action": "GetQueueUrl", "QueueName": name, "Version": "2012-11-05"}
    asked = {"params": form} if method == "GET" else {"data": form}
    answer = httpx.request(method, queue, **asked)  # type: ignore[arg-type]
    as_json = httpx.post(queue, json={"QueueName": name}, headers={"x-amz-target": "AmazonSQS.GetQueueUrl"})

    assert f"<QueueUrl>{queue}</QueueUrl>" in answer.text
    assert as_json.json() == {"QueueUrl": queue}


def test_the_trace_of_a_request_is_that_of_its_messages(sqs: Any, queue: str) -> None:
    def trace(params: dict[str, Any], **_: Any) -> None:
        params["headers"]["X-Amzn-Trace-Id"] = TRACE

    own = {"AWSTraceHeader": text("Root=own")}
    sqs.meta.events.register("before-call.sqs", trace)
    try:
        sqs.send_message(QueueUrl=queue, MessageBody="one")
        entries = [{"Id": "a", "MessageBody": "two"}, {"Id": "b", "MessageBody": "own", "MessageSystemAttributes": own}]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    finally:
        sqs.meta.events.unregister("before-call.sqs", trace)
    sqs.send_message(QueueUrl=queue, MessageBody="none")
    got = {
        m["Body"]: m.get("Attributes", {}).get("AWSTraceHeader")
        for m in receive_all(sqs, queue, 4, AttributeNames=["All"])
    }

    assert got == {"one": TRACE, "two": TRACE, "own": "Root=own", "none": None}


@pytest.mark.parametrize("names", [["*"], [".*"], ["All"], ["nothing", "*"]])
def test_an_asterisk_asks_for_all_attributes(sqs: Any, queue: str, names: list[str]) -> None:
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=ATTRIBUTES)
    (got,) = receive_all(sqs, queue, 1, MessageAttributeNames=names)

    assert got["MessageAttributes"].keys() == ATTRIBUTES.keys()
    assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


def encryption(sqs: Any, queue: str) -> dict[str, str]:
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    return {name: value for name, value in found.items() if name.startswith("Kms")}


def test_how_long_a_key_is_reused_goes_with_the_key(sqs: Any, queue: str) -> None:
    both = {"KmsMasterKeyId": "k", "KmsDataKeyReusePeriodSeconds": "600"}
    sqs.set_queue_attributes(QueueUrl=queue, Attributes=both)
    assert encryption(sqs, queue) == both
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"KmsMasterKeyId": ""})
    assert encryption(sqs, queue) == {}
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"KmsMasterKeyId": "k"})
    assert encryption(sqs, queue) == {**both, "KmsDataKeyReusePeriodSeconds": "300"}


def test_sequence_numbers_are_large_and_grow(sqs: Any, either: str) -> None:
    numbers = [sent["SequenceNumber"] for sent in put(sqs, either, "g", "a", "b", "c")]
    got = [message["Attributes"]["SequenceNumber"] for message in take(sqs, either)]

    assert all(re.fullmatch("[1-9][0-9]{19}", number) for number in numbers)
    assert got == numbers == sorted(set(numbers))


def test_what_a_dead_letter_says_of_its_source_is_a_string_like_all_else(sqs: Any, up: Up | Running, name: str) -> None:
    sqs.create_queue(QueueName=f"{name}-dead")
    policy = json.dumps({"deadLetterTargetArn": arn(f"{name}-dead"), "maxReceiveCount": 1})
    url = sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    receive_all(sqs, url, 1, VisibilityTimeout=0)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    answer = httpx.post(f"{up.endpoint}/v1/queues/{name}-dead/receive", json={"wait_seconds": 5, "lease_seconds": 0})
    (letter,) = answer.json()["messages"]

    assert letter["attributes"] == {"DLQ.sourceQueue": {"type": "string", "value": name}}


def test_the_count_of_a_cancelled_task_is_final(sqs: Any, name: str) -> None:
    """A task saves its count once a second: what it moved since is in the answer too."""
    dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    target = sqs.create_queue(QueueName=f"{name}-target")["QueueUrl"]
    policy = json.dumps({"deadLetterTargetArn": arn(f"{name}-dead"), "maxReceiveCount": 1})
    sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})
    for _ in range(30):
        sqs.send_message_batch(QueueUrl=dead, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(10)])
    asked = {
        "SourceArn": arn(f"{name}-dead"),
        "DestinationArn": arn(f"{name}-target"),
        "MaxNumberOfMessagesPerSecond": 40,
    }
    told, final = [], []
    for wait_s in (0.6, 1.5, 0.3):
        handle = sqs.start_message_move_task(**asked)["TaskHandle"]
        time.sleep(wait_s)
        told.append(sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"])
        time.sleep(1.5)
        final.append(
            sqs.list_message_move_tasks(SourceArn=arn(f"{name}-dead"))["Results"][0]["ApproximateNumberOfMessagesMoved"]
        )

    assert told == final
    assert counts(sqs, target)[0] == sum(final) > 0
