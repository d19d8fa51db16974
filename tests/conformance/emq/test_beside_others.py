"""EMQ's own Python client on queues that boto3 and native clients use too; `cases/test_together.py`
has all other pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.cases.client import Counts, QueueClient
from tests.conformance.cases.native import NativeClient
from tests.conformance.cases.sqs import JsonClient
from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Galaxy
from tests.services import Up

OTHERS: tuple[Callable[[str], QueueClient], ...] = (NativeClient, JsonClient)
RETAIL = {"kind": {"type": "string", "stringValue": "retail"}}


@pytest.fixture(params=OTHERS)
def other(up: Up | Running, request: pytest.FixtureRequest) -> Iterator[QueueClient]:
    """A client of another dialect."""
    client: QueueClient = request.param(up.endpoint)
    yield client
    client.close()


def test_the_sdk_receives_what_others_sent_and_settles_it_for_them(
    galaxy: Galaxy, other: QueueClient, name: str
) -> None:
    other.create(name)
    (sent,) = other.send(name, "hello", attributes={"kind": "retail"})
    (queue,) = galaxy.call("listQueue", queueNamePrefix=name)["queueName"]
    (got,) = galaxy.call("receiveMessage", queueName=queue, maxReceiveMessageWaitSeconds=2)
    assert (got["messageID"], got["messageBody"]) == (sent, "hello")
    kind = got["messageAttributes"]["kind"]
    assert (kind["type"].lower(), kind["stringValue"]) == ("string", "retail")
    assert other.counts(name) == Counts(0, 1, 0)
    galaxy.call("deleteMessage", queueName=queue, receiptHandle=got["receiptHandle"])
    assert other.counts(name) == Counts(0, 0, 0)


def test_others_receive_what_the_sdk_sent_also_under_its_tags(galaxy: Galaxy, other: QueueClient, name: str) -> None:
    queue = galaxy.call("createQueue", queueName=name)["queueName"]
    galaxy.call("createTag", queueName=queue, tagName="retail", attributeName="kind", attributeValue=RETAIL["kind"])
    galaxy.call("sendMessage", queueName=queue, messageBody="wanted", messageAttributes=RETAIL)
    galaxy.call("sendMessage", queueName=queue, messageBody="not wanted")
    (got,) = other.receive(name, tag="retail", wait_s=2)
    assert (got.body, got.attributes) == ("wanted", {"kind": "retail"})
    other.ack(name, got.handle, tag="retail")
    assert galaxy.call("getTagInfo", queueName=queue, tagName="retail")["tagState"]["approximateMessageNumber"] == 0
    # The default tag has both, and a lease of the other client hides them from the SDK.
    assert len(other.receive(name, wait_s=2)) + len(other.receive(name)) == 2
    assert galaxy.call("receiveMessage", queueName=queue) == []
