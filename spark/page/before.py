"""The report of the day before, where one lies beside a report: what it said in total."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SUMMARY = "summary.json"
_FORMS = ("%Y-%m-%dT%H%M%S", "%Y-%m-%dT%H%M%S.%f")
# Reports that cron makes of the last day do not begin to the second.
_ABOUT = 1 / 24


def summary_before(out: Path) -> dict[str, Any] | None:
    """The summary of the report beside `out`, the folder of a report, that is as long and ends
    about where this one begins; None = there is none that can be read.
    """
    mine = span_of(out.name)
    if mine is None:
        return None
    begin, end = mine
    most = (end - begin) * _ABOUT
    near: list[tuple[timedelta, Path]] = []
    for folder in out.parent.iterdir():
        span = span_of(folder.name)
        if span is None or folder == out or abs((span[1] - span[0]) - (end - begin)) > most:
            continue
        if (apart := abs(span[1] - begin)) <= most:
            near.append((apart, folder))
    for _, folder in sorted(near):
        try:
            found: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return found
    return None


def span_of(name: str) -> tuple[datetime, datetime] | None:
    """The time of a report by the name of its folder; None = it is no report's."""
    first, _, last = name.partition("--")
    begin, end = _moment(first), _moment(last)
    return None if begin is None or end is None else (begin, end)


def _moment(text: str) -> datetime | None:
    for form in _FORMS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None
