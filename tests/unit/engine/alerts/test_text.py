"""What owners of queues are told."""

from __future__ import annotations

from engine.alerts.text import alert_text, payload, statistics_text
from engine.meters.shapes import DayStatistics, StatisticsRow
from schemas.records.watching import AlertEvent

MINUTE = 60_000


def test_what_is_told_names_the_numbers() -> None:
    event = AlertEvent("i-a2-60000", MINUTE, "fired", "pending", "t", "receive_request", "latency", 50.0, 61.5)
    subject, text = alert_text("orders", event)
    assert subject == "[Leaseway] receive_request latency of tag t of queue orders fires"
    assert "61.5 ms" in text and "50 ms" in text and "1970-01-01 00:01:00 UTC" in text and event.id in text
    assert payload("orders", "shop", event) == {
        "event": event.id, "change": "fired", "queue": "orders", "owner": "shop", "tag": "t",
        "subject": "receive_request",
        "measurement": "latency", "threshold": 50.0, "value": 61.5, "at_ms": MINUTE,
    }  # fmt: skip


def test_a_day_is_a_table() -> None:
    rows = [
        StatisticsRow("", "send_request", 3, 30, 1_500, 2_000, 2_500),
        StatisticsRow("t", "delete_request", 1, 1, 1, 1, 1),
    ]
    subject, text = statistics_text(DayStatistics("orders", "2026-01-31", True, rows))
    assert subject == "[Leaseway] queue orders on 2026-01-31"
    assert text.splitlines()[-2].split() == ["-", "send_request", "3", "30", "1.500", "2.000", "2.500"]
    assert "no request" in statistics_text(DayStatistics("orders", "2026-01-31", True, []))[1]
