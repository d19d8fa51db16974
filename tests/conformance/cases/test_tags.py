"""Tags: several readers of one queue, each with what it wants."""

from __future__ import annotations

import pytest

from tests.conformance.cases.client import Counts, QueueClient, Refused
from tests.conformance.cases.conftest import bodies, receive_all


def test_each_tag_has_every_message_for_itself(client: QueueClient, queue: str) -> None:
    client.create_tag(queue, "billing")
    client.send(queue, "a", "b")
    mine = receive_all(client, queue, 2, tag="billing")
    client.ack(queue, *(message.handle for message in mine), tag="billing")

    assert sorted(bodies(mine)) == ["a", "b"]
    assert (client.counts(queue), client.counts(queue, "billing")) == (Counts(2, 0, 0), Counts(0, 0, 0))
    assert sorted(bodies(receive_all(client, queue, 2))) == ["a", "b"]


def test_a_new_tag_has_what_is_sent_from_now_on(client: QueueClient, queue: str) -> None:
    client.send(queue, "before")
    client.create_tag(queue, "late")
    client.send(queue, "after")

    assert bodies(receive_all(client, queue, 2, tag="late")) == ["after"]


@pytest.mark.needs("filters of several values")
def test_a_tag_has_what_its_filter_wants(client: QueueClient, queue: str) -> None:
    client.create_tag(queue, "some", ("retail", "trade"))
    for kind in ("retail", "own", "trade"):
        client.send(queue, kind, attributes={"kind": kind})
    client.send(queue, "none")

    assert sorted(bodies(receive_all(client, queue, 3, tag="some"))) == ["retail", "trade"]
    assert client.counts(queue).ready == 4


def test_a_lease_under_one_tag_is_none_under_another(client: QueueClient, queue: str) -> None:
    client.create_tag(queue, "billing")
    client.send(queue, "x")
    (default,) = client.receive(queue, wait_s=1)
    (billing,) = client.receive(queue, wait_s=1, tag="billing")

    assert (default.id, default.count, billing.count) == (billing.id, 1, 1)
    assert default.handle != billing.handle


def test_a_deleted_tag_is_gone_and_its_queue_stays(client: QueueClient, queue: str) -> None:
    client.create_tag(queue, "billing")
    client.send(queue, "x")
    client.delete_tag(queue, "billing")

    with pytest.raises(Refused, match="no_queue"):
        client.receive(queue, tag="billing")
    assert bodies(client.receive(queue, wait_s=1)) == ["x"]


def test_a_tag_that_is_not_there_is_refused(client: QueueClient, queue: str) -> None:
    with pytest.raises(Refused, match="no_queue"):
        client.receive(queue, tag="nobody")
