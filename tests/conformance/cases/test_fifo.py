"""FIFO queues: order in a group, groups beside each other, messages that are sent again."""

from __future__ import annotations

import pytest

from tests.conformance.cases.client import Counts, QueueClient, QueueSpec, Refused
from tests.conformance.cases.conftest import bodies, receive_all
from tests.conformance.cases.native import NativeClient


@pytest.fixture
def fifo(client: QueueClient, name: str) -> str:
    """A new FIFO queue."""
    client.create(f"{name}.fifo", QueueSpec(fifo=True))
    return f"{name}.fifo"


def test_a_group_comes_in_the_order_sent(client: QueueClient, fifo: str) -> None:
    texts = [str(number) for number in range(12)]
    for text in texts:
        client.send(fifo, text, group="g")
    found: list[str] = []
    while got := client.receive(fifo, 5, wait_s=1):
        found += bodies(got)
        client.ack(fifo, *(message.handle for message in got))

    assert found == texts


def test_nothing_comes_behind_what_is_leased_in_its_group(client: QueueClient, fifo: str) -> None:
    client.send(fifo, "a1", "a2", group="a")
    (first,) = client.receive(fifo, 1, wait_s=1)

    assert client.receive(fifo, wait_s=1) == []
    client.ack(fifo, first.handle)
    assert bodies(client.receive(fifo, wait_s=2)) == ["a2"]


@pytest.mark.needs("several of a group")
def test_a_group_in_flight_stops_no_other(client: QueueClient, fifo: str) -> None:
    client.send(fifo, "a1", "a2", group="a")
    client.receive(fifo, 1, wait_s=1)
    client.send(fifo, "b1", "b2", group="b")

    assert bodies(receive_all(client, fifo, 2)) == ["b1", "b2"]


@pytest.mark.needs("several of a group")
def test_a_released_message_comes_before_those_behind_it(client: QueueClient, fifo: str) -> None:
    client.send(fifo, "1", "2", "3", group="g")
    (first,) = client.receive(fifo, 1, wait_s=1)
    client.release(fifo, first.handle)

    assert bodies(receive_all(client, fifo, 3)) == ["1", "2", "3"]


@pytest.mark.needs("deduplication")
def test_a_message_that_is_sent_again_comes_once(client: QueueClient, fifo: str) -> None:
    first = client.send_once(fifo, "x", "g", "order-17")
    again = client.send_once(fifo, "another body", "g", "order-17")
    client.send_once(fifo, "x", "g", "order-18")

    assert again == first
    assert bodies(receive_all(client, fifo, 3)) == ["x", "x"]


@pytest.mark.needs("deduplication")
def test_a_message_is_not_sent_again_after_it_was_acked(client: QueueClient, fifo: str) -> None:
    client.send_once(fifo, "x", "g", "order-17")
    client.ack(fifo, client.receive(fifo, wait_s=1)[0].handle)
    client.send_once(fifo, "x", "g", "order-17")

    assert client.receive(fifo, wait_s=1) == []


@pytest.mark.needs("deduplication")
def test_a_queue_may_take_the_content_for_the_id(client: QueueClient, name: str) -> None:
    client.create(f"{name}.fifo", QueueSpec(fifo=True, content_dedup=True))
    for body in ("x", "x", "y"):
        client.send_once(f"{name}.fifo", body, "g", None)

    assert bodies(receive_all(client, f"{name}.fifo", 3)) == ["x", "y"]


@pytest.mark.needs("deduplication")
def test_a_message_without_an_id_is_refused_where_none_is_made(client: QueueClient, fifo: str) -> None:
    with pytest.raises(Refused, match="invalid"):
        client.send_once(fifo, "x", "g", None)
    assert client.counts(fifo).ready == 0


@pytest.mark.needs("needed groups")
def test_a_message_without_a_group_is_refused(client: QueueClient, fifo: str) -> None:
    with pytest.raises(Refused, match="invalid"):
        client.send(fifo, "x")
    assert client.counts(fifo).ready == 0


def test_a_parked_group_is_held_back_whoever_asks(
    client: QueueClient, clients: dict[str, QueueClient], fifo: str
) -> None:
    native = clients["native"]
    assert isinstance(native, NativeClient)
    native.set_parks(fifo, 2)
    client.send(fifo, "a1", group="a")
    for _ in range(2):
        (got,) = client.receive(fifo, 1, wait_s=2)
        client.release(fifo, got.handle)
    assert client.receive(fifo, wait_s=1) == []
    client.send(fifo, "a2", group="a")
    client.send(fifo, "b1", group="b")
    (other,) = client.receive(fifo, wait_s=2)
    assert other.body == "b1"
    client.ack(fifo, other.handle)
    assert client.receive(fifo, wait_s=1) == []
    assert client.counts(fifo) == Counts(1, 1, 0)  # what is parked is not visible
    assert native.parked(fifo) == [("a", 1)]

    assert [native.unpark(fifo, "a"), native.unpark(fifo, "a")] == [True, False]
    found: list[str] = []
    while got_now := client.receive(fifo, wait_s=2):
        found += bodies(got_now)
        client.ack(fifo, *(message.handle for message in got_now))
    assert found == ["a1", "a2"]


def test_a_queue_does_not_change_its_kind(client: QueueClient, fifo: str) -> None:
    with pytest.raises(Refused, match=r"exists|invalid"):
        client.create(fifo, QueueSpec(fifo=False))
