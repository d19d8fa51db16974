"""RocketMQ's push consumer: what it is pushed, retries, the dead-letter queue of a group."""

from __future__ import annotations

import time

from tests.conformance.rocketmq.client import Rocketmq
from tests.conformance.rocketmq.conftest import Native


def test_messages_are_pushed_once(client: Rocketmq, topic: str) -> None:
    producer, consumer = client.producer(topics=[topic]), client.push("pushed", topic)
    for number in range(50):
        client.send(producer, topic, f"m{number}")

    got = client.pushed(consumer, 50)
    assert sorted(one["body"] for one in got) == sorted(f"m{number}" for number in range(50))
    assert {one["attempt"] for one in got} == {1}
    time.sleep(2)
    assert len(client.pushed(consumer, 51, seconds=1)) == 50


def test_a_failure_is_retried_later_and_dies_after_the_last_attempt(
    client: Rocketmq, topic: str, native: Native
) -> None:
    producer, consumer = client.producer(topics=[topic]), client.push("retried", topic)
    sent = client.send(producer, topic, "99 times")
    client.send(producer, topic, "1 time")

    got = client.pushed(consumer, 5, seconds=60)
    by_body = {body: [one for one in got if one["body"] == body] for body in ("99 times", "1 time")}
    assert [one["attempt"] for one in by_body["99 times"]] == [1, 2, 3]
    assert [one["attempt"] for one in by_body["1 time"]] == [1, 2]
    first, second, third = (one["at"] for one in by_body["99 times"])
    assert 0.8 < second - first < 10 and 4.5 < third - second < 20  # 1 s and 5 s

    dead = client.simple("dead_reader", "%DLQ%retried", wait_s=5)
    (letter,) = client.received(dead, 1, seconds=60)
    assert (letter["id"], letter["body"]) == (sent["id"], "99 times")
    assert native("GET", "/v1/queues/dlq.retried")["source_queues"] == [topic]
    assert len(client.pushed(consumer, 6, seconds=1)) == 5


def test_each_group_has_dead_letters_of_its_own(client: Rocketmq, topic: str) -> None:
    producer, failing, other = (
        client.producer(topics=[topic]),
        client.push("failing", topic),
        client.push("working", topic, "none"),
    )
    client.send(producer, topic, "99 times", tag="none")

    assert len(client.pushed(failing, 3, seconds=60)) == 3
    dead = client.simple("dead_reader", "%DLQ%failing", wait_s=5)
    assert [one["body"] for one in client.received(dead, 1, seconds=60)] == ["99 times"]
    assert len(client.pushed(other, 3, seconds=60)) == 3
    dead = client.simple("dead_reader", "%DLQ%working", wait_s=5)
    assert [one["body"] for one in client.received(dead, 1, seconds=60)] == ["99 times"]


def test_an_ordered_group_waits_for_its_head_and_goes_on_after_its_death(client: Rocketmq, ordered: str) -> None:
    producer, consumer = client.producer(topics=[ordered]), client.push("ordered", ordered)
    for body in ("a1", "99 a2", "a3"):
        client.send(producer, ordered, body, group="a")
    client.send(producer, ordered, "b1", group="b")

    got = client.pushed(consumer, 6, seconds=60)
    assert [one["body"] for one in got if one["group"] == "a"] == ["a1", "99 a2", "99 a2", "99 a2", "a3"]
    dead = client.simple("dead_reader", "%DLQ%ordered", wait_s=5)
    (letter,) = client.received(dead, 1, seconds=60)
    assert (letter["body"], letter["group"]) == ("99 a2", "a")
