"""Which share of the hot calls of EMQ's clients the plane serves, as they send them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.bench.ways import ways_of
from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Galaxy
from tests.conformance.emq.thrift_client import ThriftClient
from tests.services import Up

pytestmark = [
    pytest.mark.skipif(os.environ.get("LEASEWAY_NATIVE") == "off", reason="there is no plane without the library"),
    pytest.mark.usefixtures("library"),
]

ROUNDS = 40
# The first call of each kind goes to Python, which says then what the plane may serve.
LEAST = 0.95


@pytest.fixture(params=["sdk", "binary", "compact", "json"])
def client(request: pytest.FixtureRequest, up: Up | Running) -> Iterator[Galaxy | ThriftClient]:
    """The SDK, and Thrift's own library in each protocol."""
    if request.param == "sdk":
        yield request.getfixturevalue("galaxy")
        return
    found = ThriftClient(up.endpoint, request.param)
    yield found
    found.close()


def round_trip(client: Galaxy | ThriftClient, queue: str, n: int) -> int:
    """Sends, receives and deletes messages; how many hot calls that took."""
    if n % 4:
        sent = client.call("sendMessage", queueName=queue, messageBody=f"{n}")
        assert sent["messageID"] and sent["bodyLength"] == len(f"{n}")
    else:
        entries = [{"entryId": f"{place}", "messageBody": f"{n}"} for place in range(3)]
        told = client.call("sendMessageBatch", queueName=queue, sendMessageBatchRequestEntryList=entries)
        assert [one["entryId"] for one in told["successful"]] == ["0", "1", "2"]
    left, calls = 1 if n % 4 else 3, 1
    while left:
        found: list[Any] = client.call(
            "receiveMessage", queueName=queue, maxReceiveMessageNumber=10, maxReceiveMessageWaitSeconds=5
        )
        assert found and {one["messageBody"] for one in found} == {f"{n}"}
        handles = [one["receiptHandle"] for one in found]
        if len(handles) == 1:
            client.call("deleteMessage", queueName=queue, receiptHandle=handles[0])
        else:
            asked = [{"receiptHandle": handle} for handle in handles]
            told = client.call("deleteMessageBatch", queueName=queue, deleteMessageBatchRequestEntryList=asked)
            assert told["successful"] == handles
        left, calls = left - len(found), calls + 2
    return calls


def test_the_plane_serves_what_clients_ask_for(up: Up | Running, client: Galaxy | ThriftClient, queue: str) -> None:
    for n in (1, 4):
        round_trip(client, queue, n)
    before = ways_of(up.endpoint).plane
    calls = sum(round_trip(client, queue, n) for n in range(ROUNDS))
    by_plane = ways_of(up.endpoint).plane - before
    assert by_plane / calls >= LEAST, f"{by_plane} of {calls}"
