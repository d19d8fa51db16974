"""Create, delete, purge and the settings of a queue."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.conformance.cases.client import Counts, QueueClient, QueueSpec, Refused
from tests.conformance.cases.conftest import bodies, receive_all

NO_QUEUE: dict[str, Callable[[QueueClient, str], object]] = {
    "send": lambda client, queue: client.send(queue, "x"),
    "send several": lambda client, queue: client.send(queue, "x", "y"),
    "receive": lambda client, queue: client.receive(queue),
    "delete": lambda client, queue: client.delete(queue),
    "purge": lambda client, queue: client.purge(queue),
    "counts": lambda client, queue: client.counts(queue),
    "set": lambda client, queue: client.set_lease(queue, 5),
}


def test_a_queue_that_was_made_is_listed(client: QueueClient, name: str) -> None:
    client.create(name)

    assert client.queues(name) == [name]
    assert client.counts(name) == Counts(0, 0, 0)


@pytest.mark.needs("equal queues")
def test_an_equal_queue_may_be_made_again(client: QueueClient, name: str) -> None:
    for _ in range(2):
        client.create(name, QueueSpec(lease_s=7))
    client.send(name, "x")
    client.create(name, QueueSpec(lease_s=7))

    assert client.counts(name).ready == 1


def test_a_queue_with_other_settings_is_refused(client: QueueClient, name: str) -> None:
    client.create(name, QueueSpec(lease_s=7))

    with pytest.raises(Refused, match="exists"):
        client.create(name, QueueSpec(lease_s=8))


@pytest.mark.parametrize("bad", ["", "a b", "a/b", "ä", "x" * 151])
def test_a_name_that_no_queue_may_have_is_refused(client: QueueClient, bad: str) -> None:
    with pytest.raises(Refused, match="invalid"):
        client.create(bad)


@pytest.mark.parametrize(
    "spec",
    [QueueSpec(lease_s=43_201), QueueSpec(lease_s=-1), QueueSpec(delay_s=30 * 86_400 + 1), QueueSpec(max_bytes=0)],
)
def test_a_setting_out_of_range_is_refused(client: QueueClient, name: str, spec: QueueSpec) -> None:
    with pytest.raises(Refused, match="invalid"):
        client.create(name, spec)
    assert client.queues(name) == []


@pytest.mark.parametrize("verb", NO_QUEUE)
def test_a_queue_that_is_not_there_is_refused(client: QueueClient, name: str, verb: str) -> None:
    with pytest.raises(Refused, match="no_queue"):
        NO_QUEUE[verb](client, name)


def test_a_deleted_queue_is_gone_and_its_name_is_free(client: QueueClient, queue: str) -> None:
    client.send(queue, "old")
    client.delete(queue)

    assert client.queues(queue) == []
    with pytest.raises(Refused, match="no_queue"):
        client.send(queue, "x")
    client.create(queue)
    client.send(queue, "new")
    assert bodies(receive_all(client, queue, 2)) == ["new"]


def test_a_purge_takes_what_is_there_and_not_what_comes(client: QueueClient, queue: str) -> None:
    client.send(queue, "a", "b", "c")
    leased = client.receive(queue, 1)[0]
    client.purge(queue)
    client.ack(queue, leased.handle)
    client.send(queue, "new")

    assert bodies(receive_all(client, queue, 2)) == ["new"]


def test_a_changed_lease_is_that_of_the_next_receive(client: QueueClient, queue: str) -> None:
    client.set_lease(queue, 1)
    client.send(queue, "x")
    first = client.receive(queue)[0]
    began = time.monotonic()
    again = client.receive(queue, wait_s=5)[0]

    assert (again.id, again.count) == (first.id, 2)
    assert 0.5 < time.monotonic() - began < 3
