"""What owners of queues are told, as JSON for programs and as text for people.

Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.meters.shapes import DayStatistics
from schemas.records.watching import AlertEvent
from schemas.vocabulary import AlertChange, Measurement

_HAPPENED = {
    str(AlertChange.FIRED): "fires",
    str(AlertChange.GOES_ON): "still fires",
    str(AlertChange.CLEARED): "has cleared",
}


def payload(queue: str, owner: str, event: AlertEvent) -> dict[str, Any]:
    """The body of a webhook's request."""
    return {
        "event": event.id,
        "change": event.change,
        "queue": queue,
        "owner": owner,
        "tag": event.tag or None,
        "subject": event.subject,
        "measurement": event.measurement,
        "threshold": event.threshold,
        "value": event.value,
        "at_ms": event.at_ms,
    }


def alert_text(queue: str, event: AlertEvent) -> tuple[str, str]:
    """Subject and text of a mail."""
    of = f"tag {event.tag} of queue {queue}" if event.tag else f"queue {queue}"
    unit = "" if event.measurement == Measurement.COUNT else " ms"
    happened = _HAPPENED.get(event.change, event.change)
    subject = f"[Leaseway] {event.subject} {event.measurement} of {of} {happened}"
    at = datetime.fromtimestamp(event.at_ms / 1000, UTC)
    text = (
        f"The alert policy on {event.subject} {event.measurement} of {of} {happened}.\n\n"
        f"Measured:  {event.value:g}{unit}, in the minute that ended at {at:%Y-%m-%d %H:%M:%S} UTC\n"
        f"Threshold: {event.threshold:g}{unit}\n"
        f"Event:     {event.id}\n"
    )
    return subject, text


def statistics_text(day: DayStatistics) -> tuple[str, str]:
    """Subject and text of the mail with a day's numbers."""
    rows = [("tag", "requests of", "requests", "messages", "mean ms", "p99.9 ms", "longest ms")]
    rows += [
        (
            row.tag or "-",
            row.subject,
            str(row.requests),
            str(row.messages),
            f"{row.mean_us / 1000:.3f}",
            f"{row.p999_us / 1000:.3f}",
            f"{row.max_us / 1000:.3f}",
        )
        for row in day.rows
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    text = "\n".join(lines) if day.rows else "There was no request."
    return (
        f"[Leaseway] queue {day.queue} on {day.day}",
        f"Requests to queue {day.queue} on {day.day} (UTC).\n\n{text}\n",
    )
