"""Which reports are those of the day and of the week before."""

from __future__ import annotations

import json
from pathlib import Path

from spark.page.before import earlier


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir()
        (folder / name / "summary.json").write_text(json.dumps({"of": name}))


def test_the_day_before_is_the_report_beside_it_that_ends_where_it_begins(tmp_path: Path) -> None:
    days = ["2026-03-01T000500--2026-03-02T000400", "2026-03-02T000000--2026-03-03T000000",
            "2026-03-01T120000--2026-03-02T000000", "2026-02-28T000000--2026-03-01T000000", "notes"]  # fmt: skip
    made(tmp_path, *days)
    assert earlier(tmp_path / days[1]) == [("the day before", {"of": days[0]})]
    assert earlier(tmp_path / days[0]) == [("the day before", {"of": days[3]})]
    assert earlier(tmp_path / days[3]) == earlier(tmp_path / "notes") == []
    (tmp_path / days[0] / "summary.json").write_text("{")
    assert earlier(tmp_path / days[1]) == []


def test_a_day_is_compared_with_that_of_a_week_before_too_and_a_week_with_the_week_before(tmp_path: Path) -> None:
    days = ["2026-03-10T000000--2026-03-11T000000", "2026-03-09T000000--2026-03-10T000000",
            "2026-03-03T000200--2026-03-04T000200", "2026-03-04T000000--2026-03-05T000000"]  # fmt: skip
    weeks = ["2026-03-04T000000--2026-03-11T000000", "2026-02-25T000000--2026-03-04T000000"]
    hours = ["2026-03-10T060000--2026-03-10T120000", "2026-03-10T000000--2026-03-10T060000"]
    made(tmp_path, *days, *weeks, *hours)
    assert earlier(tmp_path / days[0]) == [("the day before", {"of": days[1]}), ("a week before", {"of": days[2]})]
    assert earlier(tmp_path / weeks[0]) == [("the week before", {"of": weeks[1]})]
    assert earlier(tmp_path / hours[0]) == [("the time before", {"of": hours[1]})]
