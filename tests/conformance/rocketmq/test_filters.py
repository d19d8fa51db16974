"""Filters over RocketMQ and the other dialects: an attribute of type text is the same in each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.cases.client import QueueClient
from tests.conformance.cases.conftest import CLIENTS
from tests.conformance.rocketmq.client import Rocketmq
from tests.services import Up


@pytest.fixture(params=CLIENTS, ids=[make.name for make in CLIENTS])
def other(rocketmq_up: Up, request: pytest.FixtureRequest) -> Iterator[QueueClient]:
    """A client of each other dialect."""
    made: QueueClient = request.param(rocketmq_up.endpoint)
    yield made
    made.close()


def test_a_group_filters_what_another_dialect_sends(client: Rocketmq, topic: str, other: QueueClient) -> None:
    consumer = client.simple("orders", topic, "red", wait_s=2)
    assert client.receive(consumer) == []  # the group is there
    for colour in ("red", "blue"):
        other.send(topic, colour, attributes={"TAGS": colour})

    assert [one["body"] for one in client.received(consumer, 1)] == ["red"]
    assert client.receive(consumer) == []


def test_a_tag_of_another_dialect_filters_what_rocketmq_sends(client: Rocketmq, topic: str, other: QueueClient) -> None:
    other.create_tag(topic, "retail", ("retail",))
    producer = client.producer(topics=[topic])
    for kind in ("retail", "trade"):
        client.send(producer, topic, kind, properties={"kind": kind})

    assert [message.body for message in other.receive(topic, tag="retail", wait_s=5)] == ["retail"]
    assert other.receive(topic, tag="retail") == []
