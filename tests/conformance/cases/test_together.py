"""One queue, and a dialect for each who uses it."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from state.clock.keeper import AGREE_MS
from tests.conformance.cases.client import Counts, QueueClient
from tests.conformance.cases.conftest import CLIENTS
from tests.conformance.cases.native import NativeClient

PAIRS = list(itertools.permutations([make.name for make in CLIENTS], 2))


@pytest.mark.parametrize(("sender", "receiver"), PAIRS)
def test_what_one_dialect_sends_another_receives(
    clients: dict[str, QueueClient], name: str, sender: str, receiver: str
) -> None:
    one, other = clients[sender], clients[receiver]
    one.create(name)
    (sent,) = one.send(name, "zwölf", attributes={"kind": "retail"})
    (got,) = other.receive(name, wait_s=2)

    assert (got.id, got.body, got.attributes) == (sent, "zwölf", {"kind": "retail"})
    assert one.counts(name) == other.counts(name) == Counts(0, 1, 0)
    one.ack(name, got.handle)
    assert other.counts(name) == Counts(0, 0, 0)
    other.delete(name)
    assert one.queues(name) == []


@pytest.mark.parametrize(("sender", "receiver"), PAIRS)
def test_a_tag_of_one_dialect_filters_what_another_sends(
    clients: dict[str, QueueClient], name: str, sender: str, receiver: str
) -> None:
    one, other = clients[sender], clients[receiver]
    other.create(name)
    other.create_tag(name, "retail", ("retail",))
    one.send(name, "wanted", attributes={"kind": "retail"})
    one.send(name, "not wanted", attributes={"kind": "trade"})
    one.send(name, "wanted too", attributes={"kind": "retail", "more": "x"})

    got = [*other.receive(name, tag="retail", wait_s=2), *other.receive(name, tag="retail", wait_s=0)]
    assert sorted(message.body for message in got) == ["wanted", "wanted too"]
    assert {message.attributes["kind"] for message in got} == {"retail"}


@pytest.mark.parametrize("sender", [make.name for make in CLIENTS])
def test_a_receive_and_a_redrive_filter_what_any_dialect_sends(
    clients: dict[str, QueueClient], name: str, sender: str
) -> None:
    one, native = clients[sender], clients["native"]
    assert isinstance(native, NativeClient)
    for queue in (name, f"{name}-other"):
        one.create(queue)
    for kind in ("retail", "trade"):
        one.send(name, kind, attributes={"kind": kind})
    wanted = {"conditions": [{"name": "kind", "value": "retail"}]}

    assert [
        message["body"]
        for message in native.ask("POST", f"/queues/{name}/receive", {"filter": wanted, "lease_seconds": 0})["messages"]
    ] == ["retail"]
    native.ask("POST", f"/queues/{name}/redrive", {"filter": wanted, "destination": f"{name}-other"})
    assert [message.body for message in one.receive(f"{name}-other", wait_s=10)] == ["retail"]
    assert [message.body for message in one.receive(name, wait_s=2)] == ["trade"]


@pytest.mark.parametrize(("sender", "receiver"), PAIRS)
def test_a_lease_that_a_third_changes_lapses_for_all(
    clients: dict[str, QueueClient], name: str, sender: str, receiver: str
) -> None:
    """Ids, counts and times are the same in each dialect; the third is any that is neither."""
    one, other, native = clients[sender], clients[receiver], clients["native"]
    third = next(client for client in clients.values() if client not in (one, other, native))
    one.create(name)
    (sent,) = one.send(name, "zwölf", attributes={"kind": "retail"})
    (first,) = other.receive(name, wait_s=2)
    native.extend(name, first.handle, 2)
    assert {str(client.counts(name)) for client in clients.values()} == {str(Counts(0, 1, 0))}
    (again,) = third.receive(name, wait_s=5)

    assert (first.id, first.count, first.body) == (sent, 1, "zwölf")
    assert (again.id, again.count, again.body, again.attributes) == (sent, 2, "zwölf", first.attributes)
    assert (again.sent_ms, again.first_ms) == (first.sent_ms, first.first_ms)
    # The clock of the log, and the time of the service.
    assert first.sent_ms <= first.first_ms + AGREE_MS
    other.ack(name, first.handle)
    assert {str(client.counts(name)) for client in clients.values()} == {str(Counts(0, 1, 0))}
    third.ack(name, again.handle)
    assert {str(client.counts(name)) for client in clients.values()} == {str(Counts(0, 0, 0))}


@pytest.mark.parametrize("receiver", [make.name for make in CLIENTS])
def test_no_more_are_in_flight_than_the_queue_says(clients: dict[str, QueueClient], name: str, receiver: str) -> None:
    """Also where the native library served the queue before, and may have leased some ahead."""
    one, native = clients[receiver], clients["native"]
    assert isinstance(native, NativeClient)
    one.create(name)
    one.send(name, *map(str, range(10)))
    (first,) = one.receive(name, 1, wait_s=2)
    native.set_in_flight(name, 3)

    got = [first, *one.receive(name, 10, wait_s=2)]
    assert len(got) == 3 and native.counts(name) == Counts(7, 3, 0)
    assert one.receive(name, 10) == []
    one.ack(name, got[0].handle)
    assert len(one.receive(name, 10, wait_s=2)) == 1
    assert one.receive(name, 10, wait_s=1) == []
    native.set_in_flight(name, 0)
    assert len(one.receive(name, 10, wait_s=2)) == 6


@pytest.mark.parametrize("receiver", [make.name for make in CLIENTS])
def test_a_paused_queue_is_empty_for_who_receives_and_goes_on_for_all_else(
    clients: dict[str, QueueClient], name: str, receiver: str
) -> None:
    one, native = clients[receiver], clients["native"]
    assert isinstance(native, NativeClient)
    one.create(name)
    one.send(name, "first")
    (held,) = one.receive(name, 1, wait_s=2)
    one.send(name, "second")
    native.pause(name)
    native.pause(name)
    assert one.receive(name) == []
    one.ack(name, held.handle)
    one.send(name, "third")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.receive, name, wait_s=15)
        assert wait([waiting], timeout=1).not_done, "it waits as at an empty queue"
        native.resume(name)
        woken = waiting.result()
    assert woken, "it is served when the queue is resumed"
    got = [*woken, *one.receive(name, wait_s=1 if len(woken) < 2 else 0)]
    assert sorted(message.body for message in got) == ["second", "third"]
