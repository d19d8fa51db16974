"""Whole days of statistics as small files, for the service to tell: one for each day and life of a
queue.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.vocabulary import DAYS_FOLDER, LATE_MS

FIELDS = ("tag", "subject", "requests", "messages", "mean_us", "p999_us", "max_us")


def whole_days(begin: datetime, end: datetime, now: datetime) -> list[str]:
    """The UTC days within begin <= time < end of which nothing more is written by `now`."""
    day = begin.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if day < begin:
        day += timedelta(days=1)
    days = []
    while (next_day := day + timedelta(days=1)) <= end:
        if next_day + timedelta(milliseconds=LATE_MS) <= now:
            days.append(f"{day:%Y-%m-%d}")
        day = next_day
    return days


def write_days(statistics: DataFrame, days: list[str], out: Path) -> None:
    """Writes the rows of these days below `out`. Memory: those of a task, whatever the number of
    queues.
    """
    if not days:
        return
    told = statistics.where(F.col("date").cast("string").isin(days)).orderBy("date", "incarnation")
    lives = groupby(told.toLocalIterator(), key=lambda row: (str(row["date"]), row["incarnation"]))
    for (day, incarnation), rows in lives:
        some = [{name: row[name] for name in FIELDS} for row in rows]
        folder = out / DAYS_FOLDER / day
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{incarnation}.json.part"
        part.write_text(json.dumps(sorted(some, key=lambda one: (one["tag"], one["subject"]))) + "\n", encoding="utf-8")
        part.replace(folder / f"{incarnation}.json")
