"""The requests of a day of a queue: from Spark's tables, or where Spark has not run, from what the
workers counted. `spark.reports.daily_statistics` comes to the same numbers.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from engine.errors import InvalidValue
from engine.meters.day_tables import DayTables
from engine.meters.history import History
from engine.meters.meters import Cell
from engine.meters.shapes import DayStatistics, StatisticsRow
from engine.rules.queue import Queue
from runtime.clock import now_ms
from schemas.records.watching import MeterRecord
from schemas.topics import METER_DAYS
from schemas.vocabulary import LATE_MS, OPERATIONS

DAY_MS = 86_400_000
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_SUBJECTS = {
    str(operation): [str(s) for s, some in OPERATIONS.items() if operation in some]
    for some in OPERATIONS.values()
    for operation in some
}


def day_of(at_ms: int) -> str:
    """The UTC day of a moment."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d}"


def begin_of(day: str, *, told: bool = False) -> int:
    """Epoch ms of the beginning of a day. Raises InvalidValue for what is no day, is not yet, or is
    longer ago than the meters are kept; of what Spark has `told` that is no bound.
    """
    try:
        if _DAY.match(day) is None:
            raise ValueError
        begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidValue(
            f"day must be YYYY-MM-DD, given {day[:40]!r}", field="day", limit="YYYY-MM-DD", given=day[:40]
        ) from None
    today = datetime.fromtimestamp(now_ms() // DAY_MS * DAY_MS / 1000, UTC)
    oldest = today - timedelta(days=METER_DAYS - 1)
    if begin > today or (begin < oldest and not told):
        limit = [f"{oldest:%Y-%m-%d}", f"{today:%Y-%m-%d}"]
        raise InvalidValue(f"day must be {limit[0]} to {limit[1]}, given {day}", field="day", limit=limit, given=day)
    return int(begin.timestamp()) * 1000


class Statistics:
    """Statistics of days. Memory: a cell for each tag and subject."""

    def __init__(self, history: History, tables: DayTables) -> None:
        self._history = history
        self._tables = tables

    async def day(self, queue: Queue, day: str) -> DayStatistics:
        """The requests of a day, as far as they are written. Raises InvalidValue,
        LogUnavailable.
        """
        begin_of(day, told=True)
        told = await self._tables.day(queue.incarnation, day)
        if told is not None:
            return DayStatistics(queue.name, day, True, told)
        begin = begin_of(day)
        cells: dict[tuple[str, str], Cell] = {}

        def add(record: MeterRecord) -> None:
            for row in record.rows:
                for subject in _SUBJECTS.get(row.operation, ()):
                    cells.setdefault((row.tag, subject), Cell()).add_row(row)

        await self._history.read(queue.incarnation, begin, begin + DAY_MS, add)
        rows = [
            StatisticsRow(tag, subject, cell.requests, cell.messages, cell.mean_us, cell.p999_us, cell.max_us)
            for (tag, subject), cell in sorted(cells.items())
        ]
        return DayStatistics(queue.name, day, now_ms() >= begin + DAY_MS + LATE_MS, rows)
