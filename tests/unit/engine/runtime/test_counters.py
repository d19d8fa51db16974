"""Counters grow; an alarm tells when it begins."""

from __future__ import annotations

from runtime.counters import Alarms, Counters


def test_what_was_never_counted_is_nothing_and_what_was_is_summed() -> None:
    counters = Counters()
    assert counters.get("sends_total") == 0 and counters.values == {}
    counters.count("sends_total")
    counters.count("sends_total", 2.5)
    assert counters.get("sends_total") == 3.5


def test_an_alarm_begins_once_and_again_after_it_was_off() -> None:
    alarms = Alarms()
    assert [alarms.set("lag", "orders", number) for number in (0, 5, 7, 0, 0, 1)] == [
        False,
        True,
        False,
        False,
        False,
        True,
    ]
    assert alarms.values == {("lag", "orders"): 1}


def test_alarms_of_two_subjects_are_two() -> None:
    alarms = Alarms()
    assert alarms.set("lag", "orders", 1) and alarms.set("lag", "mails", 1) and alarms.set("full", "orders", 1)
    alarms.set("lag", "orders", 0)
    assert set(alarms.values) == {("lag", "mails"), ("full", "orders")}
