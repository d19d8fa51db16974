"""A report of tables beside that of the log they were copied from: the same rows."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.__main__ import main
from spark.frames.log import Log
from spark.lake.answers.stored import Stored
from spark.lake.places.warehouse import Warehouse
from spark.reports.report import report, written
from spark.reports.sources.log import LogSource
from spark.reports.sources.tables import TablesSource
from tests.spark.lake_log import BEGIN_MS, LAST_MS, whole

# Rounds of a copy plan for long, and longer beside others.
pytestmark = pytest.mark.timeout(900)

HOUR_MS = 3_600_000


def told(summary: dict[str, Any]) -> dict[str, Any]:
    """What a summary says of its time."""
    return {name: value for name, value in summary.items() if name not in ("made_at", "seconds")}


def test_a_report_of_tables_is_that_of_the_log(
    spark_session: SparkSession, log: Log, warehouse: Warehouse, tmp_path: Path
) -> None:
    # Leases are open then, and messages had come before.
    begin, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (BEGIN_MS + 12 * HOUR_MS, LAST_MS + 500))
    of_log = report(LogSource(spark_session, log, begin, end), begin, end, tmp_path / "log")
    stored = Stored(spark_session, warehouse, None)
    of_tables = report(TablesSource(stored, begin, end), begin, end, tmp_path / "tables")
    expected, found = (written(spark_session, tmp_path / name) for name in ("log", "tables"))
    assert {name for name in expected if whole(expected[name]) != whole(found[name])} == set()
    assert set(found) == set(expected) and {"tallies", "backlog", "dead_letters", "audit", "metering"} < set(found)
    assert json.dumps(told(of_tables), default=str) == json.dumps(told(of_log), default=str)


def test_what_tables_do_not_tell_is_said(
    spark_session: SparkSession,
    warehouse: Warehouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # The session of all tests goes on.
    monkeypatch.setattr("spark.frames.session.job", lambda *_: contextlib.nullcontext(spark_session))
    for words, about in (
        (["--to", "2999-01-01"], "--to is behind what the tables tell, 20"),
        (["--oldest", "2026-01-01"], "--oldest is about the log"),
    ):
        given = ["report", "--warehouse", str(warehouse.folder), "--out", str(tmp_path), "--from", "2026-03-01", *words]
        assert main(given) == 2
        assert about in capfd.readouterr().err
    assert main(["report", "--out", str(tmp_path), "--catalog", "https://catalog"]) == 2
    assert "--catalog is about tables: give --warehouse" in capfd.readouterr().err
