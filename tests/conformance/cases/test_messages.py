"""Send and receive."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.cases.client import Counts, QueueClient, QueueSpec, Refused
from tests.conformance.cases.conftest import bodies, receive_all

# Send


def test_a_message_comes_as_it_was_sent(client: QueueClient, queue: str) -> None:
    body, attributes = "zwölf\n\t<&> \U0001f600", {"colour": "grün", "price.net": "-12.50"}
    (sent,) = client.send(queue, body, attributes=attributes)
    (got,) = client.receive(queue, wait_s=2)

    assert (got.id, got.body, got.attributes, got.count) == (sent, body, attributes, 1)


def test_each_message_of_a_request_has_an_id_and_comes_once(client: QueueClient, queue: str) -> None:
    texts = [str(number) for number in range(10)]
    sent = client.send(queue, *texts)
    got = receive_all(client, queue, 10)

    assert len(set(sent)) == 10
    assert {message.id: message.body for message in got} == dict(zip(sent, texts, strict=True))
    assert client.counts(queue) == Counts(0, 10, 0)


def test_a_message_that_is_too_large_is_refused_and_not_stored(client: QueueClient, name: str) -> None:
    client.create(name, QueueSpec(max_bytes=1024))
    client.send(name, "ü" * 512)

    with pytest.raises(Refused, match="invalid"):
        client.send(name, "ü" * 512 + "x")
    assert client.counts(name).ready == 1


def test_attributes_count_as_bytes_of_a_message(client: QueueClient, name: str) -> None:
    client.create(name, QueueSpec(max_bytes=1024))

    with pytest.raises(Refused, match="invalid"):
        client.send(name, "x" * 1020, attributes={"ab": "cd"})
    assert client.counts(name).ready == 0


def test_a_delayed_message_comes_when_its_delay_is_over(client: QueueClient, queue: str) -> None:
    client.send(queue, "later", delay_s=1)
    began = time.monotonic()

    assert client.counts(queue) == Counts(0, 0, 1)
    assert client.receive(queue) == []
    assert bodies(client.receive(queue, wait_s=5)) == ["later"]
    assert 0.5 < time.monotonic() - began < 3.5


def test_a_message_without_a_delay_has_that_of_the_queue(client: QueueClient, name: str) -> None:
    client.create(name, QueueSpec(delay_s=60))
    client.send(name, "later")
    client.send(name, "now", delay_s=0)

    assert bodies(receive_all(client, name, 2)) == ["now"]
    assert client.counts(name) == Counts(0, 1, 1)


@pytest.mark.parametrize("delay_s", [-1, 30 * 86_400 + 1])
def test_a_delay_out_of_range_is_refused(client: QueueClient, queue: str, delay_s: int) -> None:
    with pytest.raises(Refused, match="invalid"):
        client.send(queue, "x", delay_s=delay_s)
    assert client.counts(queue) == Counts(0, 0, 0)


# Receive


def test_a_receive_of_an_empty_queue_ends_at_once(client: QueueClient, queue: str) -> None:
    began = time.monotonic()

    assert client.receive(queue) == []
    assert time.monotonic() - began < 1.5


def test_a_receive_that_waits_for_nothing_ends_with_its_wait(client: QueueClient, queue: str) -> None:
    began = time.monotonic()

    assert client.receive(queue, wait_s=1) == []
    assert 0.9 < time.monotonic() - began < 3


def test_a_receive_that_waits_gets_what_is_sent_meanwhile(client: QueueClient, queue: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        waiting = pool.submit(client.receive, queue, wait_s=20)
        time.sleep(0.3)
        client.send(queue, "x")

        assert bodies(waiting.result(10)) == ["x"]
    assert time.monotonic() - began < 5


def test_a_receive_gives_no_more_than_was_asked_for(client: QueueClient, queue: str) -> None:
    client.send(queue, *"abcde")

    assert len(client.receive(queue, 1, wait_s=1)) == 1
    assert 1 <= len(client.receive(queue, 3, wait_s=1)) <= 3


@pytest.mark.parametrize("most", [0, -1, 101])
def test_a_receive_of_no_number_is_refused(client: QueueClient, queue: str, most: int) -> None:
    with pytest.raises(Refused, match="invalid"):
        client.receive(queue, most)


def test_a_leased_message_is_with_nobody_else(client: QueueClient, queue: str) -> None:
    client.send(queue, "x")

    assert len(client.receive(queue, wait_s=1)) == 1
    assert client.receive(queue, wait_s=1) == []
    assert client.counts(queue) == Counts(0, 1, 0)


def test_a_message_whose_lease_is_over_comes_again(client: QueueClient, queue: str) -> None:
    client.send(queue, "x")
    (first,) = client.receive(queue, wait_s=1, lease_s=1)
    (second,) = client.receive(queue, wait_s=5)

    assert (second.id, second.body, second.count) == (first.id, "x", 2)
    assert second.handle != first.handle


def test_the_lease_of_a_receive_goes_before_that_of_the_queue(client: QueueClient, name: str) -> None:
    client.create(name, QueueSpec(lease_s=1))
    client.send(name, "x")
    client.receive(name, wait_s=1, lease_s=60)
    time.sleep(1.3)

    assert client.counts(name) == Counts(0, 1, 0)


# Moved from the suite of SQS: peers have it so, and tests of clients ask for it.


@pytest.mark.parametrize(("most", "wait_s"), [(1, 0), (3, 0), (10, 1)])
def test_messages_come_in_the_order_in_which_they_were_sent(
    client: QueueClient, queue: str, most: int, wait_s: int
) -> None:
    for turn in range(2):
        texts = [f"{turn}-{number}" for number in range(30)]
        for text in texts:
            client.send(queue, text)
        assert _in_turn(client, queue, most, wait_s) == texts


def test_batches_come_in_the_order_of_their_entries(client: QueueClient, queue: str) -> None:
    """25 batches, so that they are in several partitions."""
    texts = [f"{number:03d}" for number in range(250)]
    for at in range(0, 250, 10):
        client.send(queue, *texts[at : at + 10])

    assert _in_turn(client, queue, 7, 0) == texts


def _in_turn(client: QueueClient, queue: str, most: int, wait_s: int) -> list[str]:
    """What receives for `most` give, each acked before the next is asked for."""
    found: list[str] = []
    while messages := client.receive(queue, most, wait_s=wait_s):
        found += bodies(messages)
        client.ack(queue, *(message.handle for message in messages))
    return found
