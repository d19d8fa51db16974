"""Which share of the requests of clients the plane serves, as they send them: the count of requests
that Python served besides is that of set-up.
"""

from __future__ import annotations

import os
import re
from typing import Any

import httpx
import pytest

from tests.conformance.conftest import Running
from tests.conformance.sqs.conftest import PROTOCOL
from tests.services import Up

pytestmark = [
    pytest.mark.skipif(PROTOCOL == "query", reason="the plane reads JSON"),
    pytest.mark.skipif(os.environ.get("LEASEWAY_NATIVE") == "off", reason="there is no plane without the library"),
    pytest.mark.usefixtures("library"),
]

HOT = ("SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage", "DeleteMessageBatch")
ROUNDS = 60
ATTRIBUTES = {
    "colour": {"DataType": "String", "StringValue": "grün"},
    "price.net": {"DataType": "Number.eur", "StringValue": "-12.50"},
    "logo": {"DataType": "Binary.PNG", "BinaryValue": b"\x89\x00"},
}
# The first request of a lane goes to Python, which says then what the plane may serve.
LEAST = 0.95


def counted(up: Up | Running) -> tuple[float, float]:
    """How many hot requests were served, and how many of them by the plane."""
    text = httpx.get(f"{up.endpoint}/metrics").text
    verbs = "|".join(HOT)
    served = sum(map(float, re.findall(rf'^leaseway_requests_total{{[^}}]*verb="sqs\.(?:{verbs})"[^}}]*}} (\S+)', text, re.MULTILINE)))
    by_plane = sum(
        float(n) for labels, n in re.findall(r"^leaseway_plane_requests_total(\S*) (\S+)", text, re.MULTILINE) if "python" not in labels
    )
    return served, by_plane


# What a receive asks for: boto3 and the SDKs of Java and Go by themselves; sqs-consumer and Spring;
# kombu, of which Celery stands; the samples of AWS.
ASKS: list[dict[str, Any]] = [
    {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 1},
    {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 1, "AttributeNames": ["All"], "MessageAttributeNames": ["All"]},
    {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 1, "MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"]},
    {"MaxNumberOfMessages": 1, "WaitTimeSeconds": 1, "AttributeNames": ["ApproximateReceiveCount"]},
    {
        "MaxNumberOfMessages": 10,
        "VisibilityTimeout": 30,
        "AttributeNames": ["SentTimestamp"],
        "MessageAttributeNames": ["colour", "price.*"],
    },
]


@pytest.mark.parametrize("asks", ASKS)
def test_the_plane_serves_what_clients_ask_for(up: Up | Running, sqs: Any, queue: str, asks: dict[str, Any]) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="first")
    for message in sqs.receive_message(QueueUrl=queue, **asks).get("Messages", ()):
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    before, by_plane_before = counted(up)
    for n in range(ROUNDS):
        sent = sqs.send_message(QueueUrl=queue, MessageBody=f"{n}", MessageAttributes=ATTRIBUTES if n % 2 else {})
        assert ("MD5OfMessageAttributes" in sent) == bool(n % 2)
        messages = sqs.receive_message(QueueUrl=queue, **{"WaitTimeSeconds": 5, **asks})["Messages"]
        assert [message["Body"] for message in messages] == [f"{n}"]
        entries = [{"Id": f"{place}", "ReceiptHandle": message["ReceiptHandle"]} for place, message in enumerate(messages)]
        assert "Failed" not in sqs.delete_message_batch(QueueUrl=queue, Entries=entries)
    after, by_plane = counted(up)
    assert after - before >= 3 * ROUNDS
    share = (by_plane - by_plane_before) / (after - before)
    assert share >= LEAST, f"{by_plane - by_plane_before} of {after - before}"
