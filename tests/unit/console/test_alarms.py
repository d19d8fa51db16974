"""Alarms among metrics."""

from __future__ import annotations

from facade.programs.console.routes.overview import Alarm, alarms_of


def test_alarms_are_read_from_metrics() -> None:
    text = (
        "# HELP leaseway_alarm Needs attention.\n"
        'leaseway_alarm{kind="retention_near",queue="b"} 1.0\n'
        'leaseway_alarm{kind="messages_lost",queue="a"} 1e+06\n'
        'leaseway_alarm{kind="clock_skew",queue="",worker="1"} 1.0\n'
        'leaseway_other{kind="x",queue="y"} 1.0\n'
    )

    assert alarms_of(text) == [
        Alarm("clock_skew", "", 1),
        Alarm("messages_lost", "a", 1_000_000),
        Alarm("retention_near", "b", 1),
    ]
