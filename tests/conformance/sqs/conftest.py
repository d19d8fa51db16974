"""boto3 against a real `leaseway up`, one for all files of this folder; each test has a queue of its own.

Neighbours: tests/services.py starts it. The suite knows SQS alone: it would pass against the real service but for names.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.services import Up

_numbers = itertools.count(1)
Refused = Callable[..., tuple[str, str, int]]


@pytest.fixture(scope="session")
def up(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The service."""
    process = Up(tmp_path_factory.mktemp("sqs"))
    try:
        process.wait_ready()
        yield process
    finally:
        process.close()


@pytest.fixture(scope="session")
def sqs(up: Up) -> Iterator[Any]:
    """An SQS client that differs from any other by its endpoint alone."""
    client = boto3.client(
        "sqs",
        endpoint_url=up.endpoint,
        region_name="eu-central-1",
        aws_access_key_id="shop",
        aws_secret_access_key="not-looked-at",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=30),
    )
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    """The name of a queue that does not exist."""
    return f"q{next(_numbers)}"


@pytest.fixture
def queue(sqs: Any, name: str) -> str:
    """The URL of a new queue."""
    return str(sqs.create_queue(QueueName=name)["QueueUrl"])


@pytest.fixture
def refused() -> Refused:
    """Calls and returns how it was refused: (code, shape, status)."""

    def call(action: Callable[..., Any], **arguments: Any) -> tuple[str, str, int]:
        with pytest.raises(ClientError) as caught:
            action(**arguments)
        response = caught.value.response
        shape = response["Error"].get("QueryErrorCode", response["Error"]["Code"])
        return response["Error"]["Code"], shape, response["ResponseMetadata"]["HTTPStatusCode"]

    return call


def receive_all(sqs: Any, queue: str, count: int, **arguments: Any) -> list[dict[str, Any]]:
    """Receives until `count` messages are there; fewer when a wait of 2 s brings nothing."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=2, **arguments).get("Messages")
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
