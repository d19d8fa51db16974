"""The reports of earlier times that lie beside a report: what they said in total."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SUMMARY = "summary.json"
_FORMS = ("%Y-%m-%dT%H%M%S", "%Y-%m-%dT%H%M%S.%f")
# Reports that cron makes of the last day do not begin to the second.
_ABOUT = 1 / 24
_DAY, _WEEK = timedelta(days=1), timedelta(days=7)


def earlier(out: Path) -> list[tuple[str, dict[str, Any]]]:
    """When, and the summary, of the reports beside `out`, the folder of a report, that are as long:
    of the time right before, and of the same time a week before.
    """
    mine = span_of(out.name)
    if mine is None:
        return []
    begin, length = mine[0], mine[1] - mine[0]
    wanted = {_named(length): begin - length}
    if length < timedelta(days=6):
        wanted["a week before"] = begin - _WEEK
    found = ((when, _about(out, first, length)) for when, first in wanted.items())
    return [(when, summary) for when, summary in found if summary is not None]


def _named(length: timedelta) -> str:
    for name, whole in (("the day before", _DAY), ("the week before", _WEEK)):
        if abs(length - whole) <= whole * _ABOUT:
            return name
    return "the time before"


def _about(out: Path, begin: datetime, length: timedelta) -> dict[str, Any] | None:
    """The summary of another report than `out` that begins about then; None = there is none that
    can be read.
    """
    most = length * _ABOUT
    near: list[tuple[timedelta, Path]] = []
    for folder in out.parent.iterdir():
        span = span_of(folder.name)
        if span is None or folder == out or abs((span[1] - span[0]) - length) > most:
            continue
        if (apart := abs(span[0] - begin)) <= 2 * most:
            near.append((apart, folder))
    for _, folder in sorted(near):
        try:
            summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return summary
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
