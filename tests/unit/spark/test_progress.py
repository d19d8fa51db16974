"""What a job says of its stages, and how long each took."""

from __future__ import annotations

import pytest

from spark.progress import Stages


def test_each_stage_is_timed_and_the_last_ends_with_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([100.0, 100.0, 102.5, 106.0])
    monkeypatch.setattr("spark.progress.time.monotonic", lambda: next(now))
    stages = Stages("report")
    stages.begin("journal", "reading journal")
    stages.begin("page")
    assert stages.seconds() == {"journal": 2.5, "page": 3.5, "all": 6.0}
    assert (
        capsys.readouterr().err == "leaseway report: reading journal, 0 s so far\nleaseway report: page, 2 s so far\n"
    )
