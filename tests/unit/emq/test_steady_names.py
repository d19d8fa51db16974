"""Which names of queues the plane may keep: those that mean one queue, whatever others are made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine.shapes import Principal
from facade.dialects.emq.queues.names import steady_record_of
from schemas.vocabulary import ANONYMOUS

OWNERS = {"alice-orders": "alice", "orders": "bob", "mine": "alice", "bob-theirs": "bob"}


class Known:
    """An engine that knows some queues."""

    def __init__(self) -> None:
        self.queues = self

    def known(self, name: str, by: Principal | None = None) -> Any:
        return SimpleNamespace(name=name, owner=OWNERS[name]) if name in OWNERS else None


@pytest.mark.parametrize(
    ("by", "text", "found"),
    [
        ("alice", "orders", "alice-orders"),
        ("alice", "alice/orders", "alice-orders"),
        ("bob", "alice/orders", "alice-orders"),
        ("alice", "bob/theirs", "bob-theirs"),
        (ANONYMOUS, "orders", "orders"),
        (ANONYMOUS, "-/mine", "mine"),
        ("alice", "-/mine", "mine"),
        # alice-mine may be made, and bob-orders.
        ("alice", "mine", None),
        ("alice", "alice/mine", None),
        ("bob", "orders", None),
        ("alice", "bob/orders", None),
        # So may alice-theirs; nobody else's is meant.
        ("alice", "bob-theirs", None),
        ("alice", "theirs", None),
    ],
)
def test_names_that_mean_one_queue_whatever_is_made(by: str, text: str, found: str | None) -> None:
    record = steady_record_of(Known(), text, Principal(by))  # type: ignore[arg-type]
    assert (record and record.name) == found
