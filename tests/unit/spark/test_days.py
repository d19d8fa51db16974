"""Whole days of a report, of which nothing more comes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spark.reports.days import whole_days

LATER = datetime(2026, 3, 1, tzinfo=UTC)


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("begin", "end", "now", "days"),
    [
        (at(3), at(5), LATER, ["2026-01-03", "2026-01-04"]),
        (at(3, 1), at(5), LATER, ["2026-01-04"]),
        (at(3), at(4, 23), LATER, ["2026-01-03"]),
        (at(3, 1), at(4), LATER, []),
        (at(3), at(5), at(5), ["2026-01-03"]),
        (at(3), at(5), at(5, 2), ["2026-01-03", "2026-01-04"]),
    ],
    ids=["two", "begins within", "ends within", "none", "late minutes may come", "no minute comes later"],
)
def test_days_are_whole_and_over(begin: datetime, end: datetime, now: datetime, days: list[str]) -> None:
    assert whole_days(begin, end, now) == days
