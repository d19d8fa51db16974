"""Signals tell all listeners in order; alarms say when they begin."""

from __future__ import annotations

from runtime.counters import Alarms, Counters
from runtime.signals import Signal


def test_every_listener_hears_in_the_order_of_connection() -> None:
    heard: list[tuple[str, int]] = []
    signal: Signal[[int]] = Signal()
    signal(0)  # nobody listens
    signal.connect(lambda number: heard.append(("a", number)))
    signal.connect(lambda number: heard.append(("b", number)))
    signal(1)
    signal(2)
    assert heard == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_an_alarm_begins_once_and_again_after_it_was_over() -> None:
    alarms = Alarms()
    assert [alarms.set("kind", "q", number) for number in (0, 3, 4, 0, 1)] == [False, True, False, False, True]
    assert alarms.values == {("kind", "q"): 1}


def test_counters_add_up_and_what_was_never_counted_is_zero() -> None:
    counters = Counters()
    counters.count("a")
    counters.count("a", 2)
    assert (counters.get("a"), counters.get("b"), counters.values) == (3, 0, {"a": 3})
