"""Transactions over HTTP while workers die and Redis loses all: the small size of the bar, and one
kill at each of its steps is in test_failpoints.py.
"""

from __future__ import annotations

from tests.acceptance.transactions_bar import SETTINGS, run
from tests.conftest import StartUp


def test_what_is_visible_is_what_was_committed_each_once(leaseway_up: StartUp) -> None:
    up = leaseway_up("--workers", "2", environment=SETTINGS)
    up.wait_ready()
    found = run(up, 600, kill_every_s=1, within_s=150)
    print(found)
    assert found["broken"] == []
    assert found["faults"]["worker killed"] >= 1
    assert found["counts"]["answered a check"] >= 10
