"""Messages by RocketMQ's own Python client: normal, ordered and timed ones; a simple consumer."""

from __future__ import annotations

import math
import time

import pytest

from tests.conformance.rocketmq.client import Refused, Rocketmq
from tests.conformance.rocketmq.conftest import Native

BAD_EXPRESSION, BAD_TIME, BAD_HANDLE, TOO_LARGE = 40010, 40012, 40013, 41301


def test_a_message_is_sent_received_and_acked(client: Rocketmq, topic: str) -> None:
    producer, consumer = client.producer(topics=[topic]), client.simple("orders", topic, wait_s=2)
    sent = client.send(
        producer, topic, "hello\xff", tag="red", keys=["k1", "k2"], properties={"colour": "röd", "n": "7"}
    )

    (got,) = client.receive(consumer)
    assert (got["id"], got["body"], got["tag"], got["keys"]) == (sent["id"], "hello\xff", "red", ["k1", "k2"])
    assert (
        got["properties"] == {"colour": "röd", "n": "7"}
        and got["attempt"] == 1
        and not got["corrupted"]
        and got["born_host"]
    )
    client.ask("ack", by=consumer, number=got["number"])
    client.ask("ack", by=consumer, number=got["number"])  # again: it is settled
    assert client.receive(consumer) == []


def test_many_are_sent_at_once_and_each_is_received_once(client: Rocketmq, topic: str) -> None:
    producer, consumer = client.producer(), client.simple("orders", topic, wait_s=2)
    sent = [client.ask("send_async", by=producer, topic=topic, body=f"m{n}")["id"] for n in range(100)]

    got = client.received(consumer, 100)
    assert sorted(one["id"] for one in got) == sorted(sent)


def test_each_group_has_every_message(client: Rocketmq, topic: str) -> None:
    producer = client.producer()
    one, two = client.simple("one", topic, wait_s=2), client.simple("two", topic, wait_s=2)
    client.send(producer, topic, "m")

    assert [client.received(consumer, 1)[0]["body"] for consumer in (one, two)] == ["m", "m"]


def test_a_long_poll_ends_with_a_message_or_with_nothing(client: Rocketmq, topic: str, native: Native) -> None:
    consumer = client.simple("orders", topic, wait_s=2)
    began = time.monotonic()
    assert client.receive(consumer) == []
    assert 1.5 < time.monotonic() - began < 10


def test_a_lease_is_given_another_length(client: Rocketmq, topic: str) -> None:
    producer, consumer = client.producer(), client.simple("orders", topic, wait_s=5)
    client.send(producer, topic, "m")

    (first,) = client.receive(consumer, lease_s=60)
    assert client.ask("change", by=consumer, number=first["number"], seconds=1)
    (second,) = client.receive(consumer)
    assert (second["id"], second["attempt"]) == (first["id"], 2)
    with pytest.raises(Refused) as over:
        client.ask("ack", by=consumer, number=first["number"])
    assert over.value.code == BAD_HANDLE
    client.ask("ack", by=consumer, number=second["number"])


def test_a_message_is_delivered_at_its_time_and_not_before(client: Rocketmq, topic: str) -> None:
    producer, consumer = client.producer(), client.simple("orders", topic, wait_s=10)
    at = math.ceil(time.time()) + 3
    client.send(producer, topic, "timed", at=at)
    client.send(producer, topic, "past", at=at - 100)

    got = {one["body"]: one for one in client.received(consumer, 2)}
    assert got["past"]["at"] < at <= got["timed"]["at"] < at + 10
    assert got["timed"]["type"] == 3 and abs(got["timed"]["delivery_timestamp"] - at * 1000) < 1000


def test_too_far_a_time_is_refused(client: Rocketmq, topic: str) -> None:
    producer = client.producer()
    with pytest.raises(Refused) as far:
        client.send(producer, topic, "m", at=int(time.time()) + 259_200 + 60)
    assert far.value.code == BAD_TIME
    client.send(producer, topic, "m", at=int(time.time()) + 259_200 - 60)


def test_a_group_is_received_in_order_and_its_head_keeps_the_rest(client: Rocketmq, ordered: str) -> None:
    producer, consumer = client.producer(), client.simple("orders", ordered, wait_s=2)
    groups = ("a", "b", "gr\u00fcn 1")
    for number in range(10):
        for group in groups:
            client.send(producer, ordered, str(number), group=group)

    seen: dict[str, list[int]] = {group: [] for group in groups}
    for one in client.received(consumer, 30, most=4):
        assert one["type"] == 2
        seen[one["group"]].append(int(one["body"]))
    assert seen == {group: list(range(10)) for group in groups}


def test_what_a_topic_does_not_take_is_refused(client: Rocketmq, topic: str, native: Native) -> None:
    producer = client.producer()
    with pytest.raises(Refused):
        client.send(producer, topic, "m", group="a")  # the client knows from the route
    with pytest.raises(Refused, match="failed to fetch topic"):  # the client keeps the code to itself
        client.send(producer, f"{topic}_none", "m")
    native("POST", "/v1/queues", {"name": f"{topic}_delay", "user_attributes": {"message.type": "DELAY"}})
    with pytest.raises(Refused):
        client.send(producer, f"{topic}_delay", "m")
    client.send(producer, f"{topic}_delay", "m", at=int(time.time()))


def test_a_body_above_the_queues_limit_is_refused(client: Rocketmq, topic: str) -> None:
    producer = client.producer()
    with pytest.raises(Refused) as large:
        client.send(producer, topic, "x" * 262_145)
    assert large.value.code == TOO_LARGE


def test_other_dialects_read_what_was_sent_and_the_other_way_round(
    client: Rocketmq, topic: str, native: Native
) -> None:
    producer, consumer = client.producer(), client.simple("orders", topic, wait_s=2)
    sent = client.send(producer, topic, "from RocketMQ", tag="red", keys=["k"], properties={"colour": "blue"})
    (got,) = native("POST", f"/v1/queues/{topic}/receive", {"max": 1, "wait_seconds": 5})["messages"]
    assert (got["id"], got["body"]) == (sent["transaction_id"], "from RocketMQ")
    values = {name: attribute["value"] for name, attribute in got["attributes"].items()}
    assert (
        values["TAGS"] == "red"
        and values["KEYS"] == "k"
        and values["colour"] == "blue"
        and values["UNIQ_KEY"] == sent["id"]
    )

    made = native(
        "POST",
        f"/v1/queues/{topic}/messages",
        {
            "messages": [
                {
                    "body": "from the native API",
                    "attributes": {"TAGS": "green", "size": {"type": "number", "value": "7"}},
                }
            ]
        },
    )
    bodies = {one["body"]: one for one in client.received(consumer, 2)}
    other = bodies["from the native API"]
    assert (other["tag"], other["properties"], other["id"]) == ("green", {"size": "7"}, made["messages"][0]["id"])


def test_an_expression_picks_messages_by_their_tag(client: Rocketmq, topic: str) -> None:
    producer = client.producer()
    some, every = client.simple("some", topic, "red || blue", wait_s=2), client.simple("every", topic, wait_s=2)
    for tag in ("red", "green", "blue"):
        client.send(producer, topic, tag, tag=tag)
    client.send(producer, topic, "none")

    assert sorted(one["body"] for one in client.received(some, 2)) == ["blue", "red"]
    assert client.receive(some) == []
    assert sorted(one["body"] for one in client.received(every, 4)) == ["blue", "green", "none", "red"]
    again = client.simple("some", topic, "blue||red", wait_s=2)  # the same expression
    assert client.receive(again) == []
    other = client.simple("some", topic, "green", wait_s=2)
    with pytest.raises(Refused) as changed:
        client.receive(other)
    assert changed.value.code == BAD_EXPRESSION


def test_a_timed_message_is_taken_back_before_it_is_due_and_not_later(client: Rocketmq, topic: str) -> None:
    producer, consumer = client.producer(), client.simple("orders", topic, wait_s=8)
    at = math.ceil(time.time()) + 8
    back, kept = (client.send(producer, topic, body, at=at) for body in ("back", "kept"))
    far = client.send(producer, topic, "far", at=at + 86_400)
    assert client.send(producer, topic, "now", at=at - 100)["recall_handle"] in (None, "")
    for one in (back, back, far):  # one of them again
        assert client.ask("recall", by=producer, topic=topic, handle=one["recall_handle"]) == one["id"]

    assert [one["body"] for one in client.received(consumer, 2)] == ["now", "kept"]
    for handle in (kept["recall_handle"], "none", ""):
        with pytest.raises(Refused):
            client.ask("recall", by=producer, topic=topic, handle=handle)
    assert client.receive(consumer) == []
