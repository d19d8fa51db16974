"""Dead letters and their way back."""

from __future__ import annotations

import time

import pytest

from tests.conformance.cases.client import Counts, Got, QueueClient, QueueSpec, Refused
from tests.conformance.cases.conftest import bodies, receive_all


@pytest.fixture
def dead(client: QueueClient, name: str) -> str:
    """The dead-letter queue of the queue of that name, which allows two receives."""
    client.create(f"{name}-dead")
    client.create(name, QueueSpec(dead=(f"{name}-dead", 2)))
    return f"{name}-dead"


def kill(client: QueueClient, queue: str, count: int) -> None:
    """Receives each message as often as it may be."""
    for _ in range(2):
        for got in receive_all(client, queue, count):
            client.release(queue, got.handle)
    assert client.receive(queue) == []


def wait_counts(client: QueueClient, queue: str, counts: Counts) -> None:
    end = time.monotonic() + 10
    while client.counts(queue) != counts:
        assert time.monotonic() < end, f"{client.counts(queue)} in {queue}, not {counts}"
        time.sleep(0.1)


def test_a_message_dies_when_it_was_received_too_often(client: QueueClient, name: str, dead: str) -> None:
    client.send(name, "x", attributes={"kind": "retail"})
    kill(client, name, 1)
    (letter,) = receive_all(client, dead, 1)

    assert (letter.body, letter.attributes) == ("x", {"kind": "retail"})
    wait_counts(client, name, Counts(0, 0, 0))  # it is acked in its queue after it has a copy
    client.ack(dead, letter.handle)
    assert client.counts(dead) == Counts(0, 0, 0)


def test_a_message_that_is_acked_in_time_does_not_die(client: QueueClient, name: str, dead: str) -> None:
    client.send(name, "x")
    (first,) = client.receive(name, wait_s=1)
    client.release(name, first.handle)
    (second,) = client.receive(name, wait_s=1)
    client.ack(name, second.handle)

    assert client.receive(name, wait_s=1) == []
    assert (client.counts(name), client.counts(dead)) == (Counts(0, 0, 0), Counts(0, 0, 0))


def test_dead_letters_go_back_to_where_they_came_from(client: QueueClient, name: str, dead: str) -> None:
    client.send(name, *"abc")
    kill(client, name, 3)
    wait_counts(client, dead, Counts(3, 0, 0))
    client.redrive(dead)
    wait_counts(client, name, Counts(3, 0, 0))
    wait_counts(client, dead, Counts(0, 0, 0))

    assert sorted(bodies(receive_all(client, name, 3))) == ["a", "b", "c"]


def test_a_message_that_came_back_may_be_received_as_often_again(client: QueueClient, name: str, dead: str) -> None:
    client.send(name, "x")
    kill(client, name, 1)
    wait_counts(client, dead, Counts(1, 0, 0))
    client.redrive(dead)
    wait_counts(client, name, Counts(1, 0, 0))
    got: list[Got] = []
    for _ in range(2):
        (one,) = client.receive(name, wait_s=2)
        got.append(one)
        client.release(name, one.handle)

    assert bodies(got) == ["x", "x"]
    wait_counts(client, dead, Counts(1, 0, 0)) if client.receive(name) == [] else pytest.fail(
        "it was received three times"
    )


@pytest.mark.parametrize("count", [0, 1001])
def test_a_number_of_receives_out_of_range_is_refused(client: QueueClient, name: str, count: int) -> None:
    client.create(f"{name}-dead")

    with pytest.raises(Refused, match="invalid"):
        client.create(name, QueueSpec(dead=(f"{name}-dead", count)))
    assert client.queues(name) == [f"{name}-dead"]
