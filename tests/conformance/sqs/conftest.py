"""boto3 against a real `leaseway up`, one for all files; each test has a queue of its own.

The suite knows SQS alone: it would pass against the real service but for names.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.conformance.beside import ADMIN_SECRET, beside
from tests.conformance.conftest import Running
from tests.services import Up

PROTOCOL = os.environ.get("SQS_PROTOCOL", "json")
# Both names of the same parameter of ReceiveMessage; old clients know the first alone.
SYSTEM_NAMES = ["AttributeNames"] if PROTOCOL == "query" else ["AttributeNames", "MessageSystemAttributeNames"]
# Codes of the query protocol whose shape is not their last part.
SHAPES = {
    "AWS.SimpleQueueService.NonExistentQueue": "QueueDoesNotExist",
    "QueueAlreadyExists": "QueueNameExists",
    "InvalidParameterValue": "InvalidParameterValueException",
    "MissingParameter": "MissingRequiredParameterException",
    "AccessDenied": "AccessDeniedException",
}
_numbers = itertools.count(1)
Refused = Callable[..., tuple[str, str, int]]

INVALID = ("InvalidParameterValue", "InvalidParameterValueException", 400)
EXISTS = ("QueueAlreadyExists", "QueueNameExists", 400)
ABSENT = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", 400)
ATTRIBUTES = {
    "colour": {"DataType": "String", "StringValue": "grün"},
    "price.net": {"DataType": "Number.eur", "StringValue": "-12.50"},
    "price.gross": {"DataType": "Number", "StringValue": "1e3"},
    "logo": {"DataType": "Binary.PNG", "BinaryValue": b"\x89\x00"},
}


@pytest.fixture(scope="session")
def strict(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A second service over the same Kafka and Redis, with names of its own and every setting of
    this dialect changed.
    """
    if "SQS_STRICT_ENDPOINT" in os.environ:
        yield Running(os.environ["SQS_STRICT_ENDPOINT"])
        return
    settings = {"SQS_ACCOUNT": "123456789012", "SQS_REGION": "eu-west-1", "SQS_LIMITS": "wide", "SQS_COOL_DOWN_S": "60"}
    yield from beside(up, "strict", settings, tmp_path_factory)


@pytest.fixture(scope="session")
def spaces(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A third service, where account and region tell queues apart, behind a proxy that is
    trusted.
    """
    if "SQS_SPACES_ENDPOINT" in os.environ:
        yield Running(os.environ["SQS_SPACES_ENDPOINT"])
        return
    yield from beside(up, "spaces", {"SQS_NAMESPACES": "account,region", "TRUST_PROXY": "yes"}, tmp_path_factory)


def client_of(endpoint: str, key_id: str = "shop", secret: str = "not-looked-at", region: str = "eu-central-1") -> Any:
    """An SQS client that differs from any other by its endpoint alone."""
    config = Config(retries={"total_max_attempts": 1}, read_timeout=30)
    client = boto3.client(
        "sqs",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        config=config,
    )
    assert client.meta.service_model.metadata["protocol"] == PROTOCOL
    return client


@pytest.fixture(scope="session")
def sqs(up: Up | Running) -> Iterator[Any]:
    """A client of the service that lets everybody in."""
    client = client_of(up.endpoint)
    yield client
    client.close()


@pytest.fixture(scope="session")
def admin(strict: Running) -> Iterator[Any]:
    """The administrator of the strict service."""
    client = client_of(strict.endpoint, "admin", ADMIN_SECRET)
    yield client
    client.close()


@pytest.fixture(scope="session")
def shop(strict: Running) -> Iterator[Any]:
    """A client of the strict service whose principal is `shop`."""
    yield from _with_key(strict, "shop")


@pytest.fixture(scope="session")
def partner(strict: Running) -> Iterator[Any]:
    """Another, whose principal is `partner`."""
    yield from _with_key(strict, "partner")


def _with_key(strict: Running, principal: str) -> Iterator[Any]:
    key_id = f"{principal}-{os.getpid()}"
    client = client_of(strict.endpoint, key_id, secret_of(strict, key_id, principal))
    yield client
    client.close()


def secret_of(service: Running, key_id: str, principal: str) -> str:
    """The secret of a new key."""
    made = httpx.post(
        f"{service.endpoint}/v1/keys", json={"key_id": key_id, "principal": principal}, auth=("admin", ADMIN_SECRET)
    )
    made.raise_for_status()
    return str(made.json()["secret"])


@pytest.fixture
def name() -> str:
    """The name of a queue that does not exist."""
    return f"{PROTOCOL}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def queue(sqs: Any, name: str) -> str:
    """The URL of a new queue."""
    return str(sqs.create_queue(QueueName=name)["QueueUrl"])


MakeFifo = Callable[..., str]


@pytest.fixture
def make_fifo(sqs: Any, name: str) -> MakeFifo:
    """Makes a FIFO queue named after the test's, with these attributes; its URL."""

    def make(suffix: str = "", **attributes: str) -> str:
        return str(
            sqs.create_queue(QueueName=f"{name}{suffix}.fifo", Attributes={"FifoQueue": "true", **attributes})[
                "QueueUrl"
            ]
        )

    return make


@pytest.fixture
def fifo(make_fifo: MakeFifo) -> str:
    """The URL of a new FIFO queue with the defaults."""
    return make_fifo()


HIGH = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}


@pytest.fixture(params=[{}, HIGH], ids=["queue scope", "group scope"])
def either(make_fifo: MakeFifo, request: pytest.FixtureRequest) -> str:
    """The URL of a new FIFO queue, of each scope in turn."""
    return make_fifo(**request.param)


@pytest.fixture
def refused() -> Refused:
    """Calls and returns how it was refused: (code, shape, status). The query protocol has no
    shapes: there it follows from the code.
    """

    def call(action: Callable[..., Any], **arguments: Any) -> tuple[str, str, int]:
        with pytest.raises(ClientError) as caught:
            action(**arguments)
        response = caught.value.response
        code = response["Error"]["Code"]
        shape = (
            SHAPES.get(code, code.rpartition(".")[2])
            if PROTOCOL == "query"
            else response["Error"].get("QueryErrorCode", code)
        )
        return code, shape, response["ResponseMetadata"]["HTTPStatusCode"]

    return call


def receive_all(sqs: Any, queue: str, count: int, **arguments: Any) -> list[dict[str, Any]]:
    """Receives until `count` messages are there; fewer when a wait of 2 s brings nothing."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=2, **arguments).get(
            "Messages"
        )
        if not messages:
            break
        found += messages
    return found


def counts(sqs: Any, queue: str) -> tuple[int, int, int]:
    """Ready, in flight, delayed."""
    names = ["", "NotVisible", "Delayed"]
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    ready, flying, delayed = (int(found[f"ApproximateNumberOfMessages{name}"]) for name in names)
    return ready, flying, delayed


def put(sqs: Any, queue: str, group: str, *bodies: str) -> list[dict[str, Any]]:
    """Sends to a group, one by one; the deduplication id is group and body."""
    ids = {"QueueUrl": queue, "MessageGroupId": group}
    return [sqs.send_message(MessageBody=body, MessageDeduplicationId=f"{group}.{body}", **ids) for body in bodies]


def take(sqs: Any, queue: str, most: int = 10, **arguments: Any) -> list[dict[str, Any]]:
    """What one receive gets, with all its attributes; it waits 0 s unless told."""
    asked = {"MaxNumberOfMessages": most, "AttributeNames": ["All"], "WaitTimeSeconds": 0, **arguments}
    return list(sqs.receive_message(QueueUrl=queue, **asked).get("Messages", ()))


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


def text(value: str) -> dict[str, str]:
    """A message attribute of type String."""
    return {"DataType": "String", "StringValue": value}
