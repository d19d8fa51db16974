"""Ack, extend and release."""

from __future__ import annotations

import time

import pytest

from tests.conformance.cases.client import Counts, Got, QueueClient, Refused
from tests.conformance.cases.conftest import receive_all


@pytest.fixture
def leased(client: QueueClient, queue: str) -> list[Got]:
    """Three messages that are with us."""
    client.send(queue, *"abc")
    return receive_all(client, queue, 3)


# Ack


def test_an_acked_message_is_gone_and_may_be_acked_again(client: QueueClient, queue: str, leased: list[Got]) -> None:
    for _ in range(2):
        client.ack(queue, leased[0].handle)

    assert client.counts(queue) == Counts(0, 2, 0)


def test_several_messages_are_acked_together(client: QueueClient, queue: str, leased: list[Got]) -> None:
    client.ack(queue, *(message.handle for message in leased))

    assert client.counts(queue) == Counts(0, 0, 0)


def test_an_acked_message_does_not_come_again_when_its_lease_would_be_over(client: QueueClient, queue: str) -> None:
    client.send(queue, "x")
    (got,) = client.receive(queue, wait_s=1, lease_s=1)
    client.ack(queue, got.handle)

    assert client.receive(queue, wait_s=2) == []


def test_an_old_handle_settles_nothing(client: QueueClient, queue: str) -> None:
    client.send(queue, "x")
    (old,) = client.receive(queue, wait_s=1, lease_s=1)
    (new,) = client.receive(queue, wait_s=5)

    client.ack(queue, old.handle)
    assert client.counts(queue) == Counts(0, 1, 0)
    client.ack(queue, new.handle)
    assert client.counts(queue) == Counts(0, 0, 0)


@pytest.mark.needs("late handles")
def test_a_late_handle_counts_until_the_message_is_delivered_again(client: QueueClient, queue: str) -> None:
    client.send(queue, "x")
    (got,) = client.receive(queue, wait_s=1, lease_s=1)
    time.sleep(1.3)
    client.ack(queue, got.handle)

    assert client.counts(queue) == Counts(0, 0, 0)


def test_a_handle_that_nobody_was_given_is_refused(client: QueueClient, queue: str, leased: list[Got]) -> None:
    for bad in ("nonsense", leased[0].id, leased[0].handle[:-2] + "AA"):
        with pytest.raises(Refused, match="bad_handle"):
            client.ack(queue, bad)
        with pytest.raises(Refused, match="bad_handle"):
            client.extend(queue, bad, 5)
        with pytest.raises(Refused, match="bad_handle"):
            client.release(queue, bad)
    assert client.counts(queue) == Counts(0, 3, 0)


def test_the_handle_of_another_queue_is_refused(client: QueueClient, queue: str, leased: list[Got]) -> None:
    client.create(f"{queue}-other")

    with pytest.raises(Refused, match="bad_handle"):
        client.ack(f"{queue}-other", leased[0].handle)
    assert client.counts(queue) == Counts(0, 3, 0)


def test_a_bad_handle_among_good_ones_is_told(client: QueueClient, queue: str, leased: list[Got]) -> None:
    with pytest.raises(Refused, match="bad_handle"):
        client.ack(queue, leased[0].handle, "nonsense")


# Extend


def test_an_extended_lease_counts_from_now(client: QueueClient, queue: str) -> None:
    client.send(queue, "x")
    (got,) = client.receive(queue, wait_s=1, lease_s=1)
    handle = client.extend(queue, got.handle, 60)
    time.sleep(1.3)

    assert client.counts(queue) == Counts(0, 1, 0)
    client.ack(queue, handle)
    assert client.counts(queue) == Counts(0, 0, 0)


def test_a_lease_can_be_made_shorter(client: QueueClient, queue: str, leased: list[Got]) -> None:
    client.extend(queue, leased[1].handle, 1)
    (again,) = client.receive(queue, wait_s=5)

    assert (again.id, again.count) == (leased[1].id, 2)


@pytest.mark.parametrize("seconds", [-1, 43_201])
def test_a_lease_out_of_range_is_refused(client: QueueClient, queue: str, leased: list[Got], seconds: int) -> None:
    with pytest.raises(Refused, match="invalid"):
        client.extend(queue, leased[0].handle, seconds)
    assert client.counts(queue) == Counts(0, 3, 0)


# Release


def test_a_released_message_comes_at_once_and_counts(client: QueueClient, queue: str, leased: list[Got]) -> None:
    client.release(queue, leased[1].handle)

    assert client.counts(queue) == Counts(1, 2, 0)
    (again,) = client.receive(queue, wait_s=2)
    assert (again.id, again.body, again.count) == (leased[1].id, "b", 2)
    assert again.handle != leased[1].handle


def test_a_handle_that_was_released_settles_nothing(client: QueueClient, queue: str, leased: list[Got]) -> None:
    client.release(queue, leased[0].handle)
    client.receive(queue, wait_s=2)
    client.ack(queue, leased[0].handle)

    assert client.counts(queue) == Counts(0, 3, 0)
