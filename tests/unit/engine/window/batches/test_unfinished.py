"""Since when a worker knows unfinished batches: by a steady clock, and of a bounded number."""

from __future__ import annotations

import pytest

from engine.window.batches import message_log as module
from engine.window.batches.message_log import Unfinished


def test_batches_that_are_met_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    at = [1000.0]
    monkeypatch.setattr(module, "boot_s", lambda: at[0])
    monkeypatch.setattr(module, "MOST", 2)
    unfinished = Unfinished()
    for name in "abc":
        unfinished.note(("i", 0, name))
    at[0] += 41
    assert [unfinished.is_over(("i", 0, name)) for name in "abc"] == [False, True, True]
    unfinished.forget(("i", 0, "b"))
    assert not unfinished.is_over(("i", 0, "b"))
