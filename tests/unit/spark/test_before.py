"""Which report is that of the day before."""

from __future__ import annotations

import json
from pathlib import Path

from spark.page.before import summary_before


def test_the_day_before_is_the_report_beside_it_that_ends_where_it_begins(tmp_path: Path) -> None:
    days = ["2026-03-01T000500--2026-03-02T000400", "2026-03-02T000000--2026-03-03T000000",
            "2026-03-01T120000--2026-03-02T000000", "2026-02-28T000000--2026-03-01T000000", "notes"]  # fmt: skip
    for name in days:
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps({"of": name}))
    assert summary_before(tmp_path / days[1]) == {"of": days[0]}
    assert summary_before(tmp_path / days[0]) == {"of": days[3]}
    assert summary_before(tmp_path / days[3]) is None and summary_before(tmp_path / "notes") is None
    (tmp_path / days[0] / "summary.json").write_text("{")
    assert summary_before(tmp_path / days[1]) is None
