"""Which share of the requests of SDKs the plane serves, as they send them. Those of frameworks are
asserted where their programs run.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from tests.clients import NotFetched
from tests.conformance.conftest import Running
from tests.conformance.shares import shared
from tests.conformance.sqs.conftest import PROTOCOL
from tests.conformance.sqs.test_consumer import ran
from tests.conformance.sqs.test_watermill import program
from tests.conftest import absent
from tests.java import NoMaven, classpath
from tests.services import Up

pytestmark = [
    pytest.mark.skipif(PROTOCOL == "query", reason="the plane reads JSON"),
    pytest.mark.skipif(os.environ.get("LEASEWAY_NATIVE") == "off", reason="there is no plane without the library"),
    pytest.mark.usefixtures("library"),
]

JAVA = Path(__file__).parent / "clients" / "java"
ROUNDS = 60
ATTRIBUTES = {
    "colour": {"DataType": "String", "StringValue": "grün"},
    "price.net": {"DataType": "Number.eur", "StringValue": "-12.50"},
    "logo": {"DataType": "Binary.PNG", "BinaryValue": b"\x89\x00"},
}
KEYS = {"aws_access_key_id": "shop", "aws_secret_access_key": "x", "region_name": "eu-central-1"}

# What a receive asks for: boto3 and the SDKs of Java and Go by themselves; sqs-consumer and Spring;
# kombu, of which Celery stands; the samples of AWS.
ASKS: list[dict[str, Any]] = [
    {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 1},
    {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 1, "AttributeNames": ["All"], "MessageAttributeNames": ["All"]},
    {
        "MaxNumberOfMessages": 10,
        "WaitTimeSeconds": 1,
        "MessageSystemAttributeNames": ["All"],
        "MessageAttributeNames": ["All"],
    },
    {"MaxNumberOfMessages": 1, "WaitTimeSeconds": 1, "AttributeNames": ["ApproximateReceiveCount"]},
    {
        "MaxNumberOfMessages": 10,
        "VisibilityTimeout": 30,
        "AttributeNames": ["SentTimestamp"],
        "MessageAttributeNames": ["colour", "price.*"],
    },
]


@pytest.mark.parametrize("asks", ASKS)
def test_boto3(up: Up | Running, sqs: Any, queue: str, asks: dict[str, Any]) -> None:
    with shared(up, f"boto3 client, {asks}"):
        for n in range(ROUNDS):
            sent = sqs.send_message(QueueUrl=queue, MessageBody=f"{n}", MessageAttributes=ATTRIBUTES if n % 2 else {})
            assert ("MD5OfMessageAttributes" in sent) == bool(n % 2)
            messages = sqs.receive_message(QueueUrl=queue, **{"WaitTimeSeconds": 5, **asks})["Messages"]
            assert [message["Body"] for message in messages] == [f"{n}"]
            handle = messages[0]["ReceiptHandle"]
            sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=30)
            assert "Failed" not in sqs.delete_message_batch(
                QueueUrl=queue, Entries=[{"Id": "0", "ReceiptHandle": handle}]
            )


def test_boto3_with_resources(up: Up | Running, queue: str) -> None:
    at = boto3.resource("sqs", endpoint_url=up.endpoint, **KEYS).Queue(queue)
    with shared(up, "boto3 resource"):
        for n in range(ROUNDS):
            at.send_messages(
                Entries=[{"Id": f"{k}", "MessageBody": f"{n}", "MessageAttributes": ATTRIBUTES} for k in range(3)]
            )
            messages = at.receive_messages(
                MaxNumberOfMessages=10, WaitTimeSeconds=5, AttributeNames=["All"], MessageAttributeNames=["All"]
            )
            at.change_message_visibility_batch(
                Entries=[
                    {"Id": f"{k}", "ReceiptHandle": one.receipt_handle, "VisibilityTimeout": 20}
                    for k, one in enumerate(messages)
                ]
            )
            for message in messages:
                message.change_visibility(VisibilityTimeout=60)
                message.delete()


def test_the_javascript_sdk(up: Up | Running, queue: str) -> None:
    with shared(up, "JavaScript SDK v3"):
        assert ran(up.endpoint, "rounds.mjs", str(ROUNDS), QUEUE_URL=queue) == {"rounds": ROUNDS}


def test_the_go_sdk(up: Up | Running, queue: str) -> None:
    with shared(up, "Go SDK v2"):
        done = program(up.endpoint, "-test.run=^TestRounds$", QUEUE_URL=queue, ROUNDS=str(ROUNDS))
    assert b"--- PASS: TestRounds" in done.stdout


def test_the_java_sdk(up: Up | Running, queue: str) -> None:
    try:
        jars = classpath(JAVA)
    except NoMaven as error:
        pytest.skip(str(error))
    except NotFetched as error:
        absent(str(error))
    with shared(up, "Java SDK v2"):
        command = ["java", "-cp", jars, str(JAVA / "Rounds.java"), up.endpoint, queue, str(ROUNDS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == f"rounds {ROUNDS}\n", done.stderr[-3000:]


def test_the_native_api(up: Up | Running, queue: str) -> None:
    base = f"{up.endpoint}/v1/queues/{queue.rpartition('/')[2]}"
    with shared(up, "native API, httpx"), httpx.Client() as client:
        for n in range(ROUNDS):
            client.post(
                f"{base}/messages", json={"messages": [{"body": f"{n}", "attributes": {"a": "v"}}]}
            ).raise_for_status()
            (message,) = client.post(f"{base}/receive", json={"max": 10, "wait_seconds": 5}).json()["messages"]
            extended = client.post(
                f"{base}/extend", json={"entries": [{"handle": message["handle"], "lease_seconds": 30}]}
            )
            assert [one["status"] for one in extended.json()["results"]] == ["ok"]
            released = client.post(f"{base}/release", json={"handles": [message["handle"]]}).json()["results"]
            assert [one["status"] for one in released] == ["ok"]
            (message,) = client.post(f"{base}/receive", json={"max": 10, "wait_seconds": 5}).json()["messages"]
            acked = client.post(f"{base}/ack", json={"handles": [message["handle"]]}).json()["results"]
            assert [one["status"] for one in acked] == ["ok"]
