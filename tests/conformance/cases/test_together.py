"""One queue, and a dialect for each who uses it."""

from __future__ import annotations

import itertools

import pytest

from tests.conformance.cases.client import Counts, QueueClient
from tests.conformance.cases.conftest import CLIENTS

PAIRS = list(itertools.permutations([make.name for make in CLIENTS], 2))


@pytest.mark.parametrize(("sender", "receiver"), PAIRS)
def test_what_one_dialect_sends_another_receives(clients: dict[str, QueueClient], name: str, sender: str, receiver: str) -> None:
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
