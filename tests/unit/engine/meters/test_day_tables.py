"""Days that Spark has written, as the service finds them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from engine.meters.day_tables import DayTables
from engine.meters.shapes import StatisticsRow

ROW = {"tag": "", "subject": "send_request", "requests": 2, "messages": 3, "mean_us": 4, "p999_us": 5, "max_us": 6}


def write(folder: Path, requests: int, mtime: int) -> None:
    path = folder / "days" / "2026-01-03" / "abc.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{**ROW, "requests": requests}]))
    os.utime(path, (mtime, mtime))


async def test_the_newest_report_counts_and_other_days_are_not_told(tmp_path: Path) -> None:
    write(tmp_path / "older", 1, 100)
    write(tmp_path / "newer", 2, 200)
    tables = DayTables(str(tmp_path))
    assert await tables.day("abc", "2026-01-03") == [StatisticsRow("", "send_request", 2, 3, 4, 5, 6)]
    assert await tables.day("abc", "2026-01-04") is None
    assert await tables.day("abd", "2026-01-03") is None
    assert await DayTables("").day("abc", "2026-01-03") is None
    assert await DayTables(str(tmp_path / "newer")).day("abc", "2026-01-03") is not None


async def test_a_file_that_is_broken_is_as_none(tmp_path: Path) -> None:
    write(tmp_path, 1, 100)
    (tmp_path / "days" / "2026-01-03" / "abc.json").write_text('[{"tag": 1}')
    assert await DayTables(str(tmp_path)).day("abc", "2026-01-03") is None
