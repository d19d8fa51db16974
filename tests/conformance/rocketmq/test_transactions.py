"""Transactional messages by RocketMQ's own Python client: commit, rollback, and being asked."""

from __future__ import annotations

import time

from tests.conformance.rocketmq.client import Rocketmq
from tests.conformance.rocketmq.conftest import Native


def test_a_message_is_there_when_it_is_committed_and_never_when_rolled_back(client: Rocketmq, topic: str) -> None:
    producer, consumer = client.producer(topics=[topic], checks=[]), client.simple("orders", topic, wait_s=1)
    committed = client.ask("begin", by=producer, topic=topic, body="committed", tag="t", properties={"a": "b"})
    dropped = client.ask("begin", by=producer, topic=topic, body="rolled back")
    assert client.receive(consumer) == []
    client.ask("end", number=committed["number"], commit=True)
    client.ask("end", number=dropped["number"], commit=False)

    (got,) = client.received(consumer, 1)
    assert (got["id"], got["body"], got["tag"], got["properties"]) == (committed["id"], "committed", "t", {"a": "b"})
    time.sleep(5)
    assert client.receive(consumer) == [] and client.ask("checked", by=producer) == []


def test_a_producer_is_asked_until_it_knows(client: Rocketmq, topic: str) -> None:
    producer, consumer = (
        client.producer(topics=[topic], checks=["UNSPECIFIED", "COMMIT"]),
        client.simple("orders", topic, wait_s=1),
    )
    half = client.ask("begin", by=producer, topic=topic, body="asked")
    began = time.time()

    (got,) = client.received(consumer, 1, seconds=60)
    checks = client.ask("checked", by=producer)
    assert got["id"] == half["id"] and [one["id"] for one in checks] == [half["id"]] * 2
    # From the beginning: what comes late to the client is sooner followed by what comes in time.
    assert 2 <= checks[0]["at"] - began < 12 and checks[1]["at"] - began >= 4.5


def test_another_producer_of_the_topic_is_asked_when_the_first_is_gone(
    client: Rocketmq, topic: str, native: Native
) -> None:
    first = client.producer(topics=[topic], checks=[])
    half = client.ask("begin", by=first, topic=topic, body="orphan")
    client.shutdown(first)
    second, consumer = client.producer(topics=[topic], checks=["ROLLBACK"]), client.simple("orders", topic, wait_s=1)

    end = time.monotonic() + 60
    while not (checks := client.ask("checked", by=second)) and time.monotonic() < end:
        time.sleep(0.5)
    assert [one["body"] for one in checks] == ["orphan"]
    time.sleep(2)
    assert native("GET", f"/v1/transactions/{half['transaction_id']}")["status"] == "rolled_back"
    assert client.receive(consumer) == []


def test_a_transaction_of_the_native_api_is_asked_about_here(client: Rocketmq, topic: str, native: Native) -> None:
    producer, consumer = client.producer(topics=[topic], checks=["COMMIT"]), client.simple("orders", topic, wait_s=1)
    messages = [{"body": "one"}, {"body": "two"}]
    native("POST", f"/v1/queues/{topic}/transactions", {"producer_group": topic, "messages": messages})

    assert sorted(one["body"] for one in client.received(consumer, 2, seconds=60)) == ["one", "two"]
    assert [one["body"] for one in client.ask("checked", by=producer)] == ["one"]
