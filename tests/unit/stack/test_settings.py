"""How many copies a record has, by the number of brokers."""

from __future__ import annotations

import pytest

from facade.programs.stack.processes.settings import BROKER_PROPERTIES, replication


@pytest.mark.parametrize(("brokers", "copies", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (7, "3", "2")])
def test_three_brokers_keep_three_copies_and_need_two(brokers: int, copies: str, in_sync: str) -> None:
    found = replication(brokers)
    assert {name: value for name, value in found.items() if "factor" in name} == dict.fromkeys(
        (name for name in found if "factor" in name), copies
    )
    assert (found["default.replication.factor"], found["min.insync.replicas"]) == (copies, in_sync)


def test_no_property_is_given_twice() -> None:
    assert not BROKER_PROPERTIES.keys() & replication(1).keys()
