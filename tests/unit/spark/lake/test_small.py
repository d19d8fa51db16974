"""What the catalog says, and how an answer is printed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from spark.lake.answers.small import Answer, NoWarehouse, Tables, tables_of
from spark.lake.places.warehouse import Warehouse

US = 1_772_366_400_123_456  # 2026-03-01T12:00:00.123456Z


def test_the_catalog_says_where_tables_are_and_as_of_when(tmp_path: Path) -> None:
    with pytest.raises(NoWarehouse, match="has no tables"):
        tables_of(Warehouse(tmp_path))
    with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as catalog:
        catalog.execute("CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)")
        catalog.execute(
            "CREATE TABLE iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)"
        )
        places = [("lake", "leaseway", "messages", "file:///w/m.json"), ("lake", "leaseway", "audit", "file:/w/a.json")]
        catalog.executemany(
            "INSERT INTO iceberg_tables VALUES (?, ?, ?, ?)", [*places, ("x", "leaseway", "meters", "y")]
        )
        assert tables_of(Warehouse(tmp_path)) == Tables({"messages": "/w/m.json", "audit": "/w/a.json"}, None)
        catalog.execute("INSERT INTO iceberg_namespace_properties VALUES ('lake', 'leaseway', 'leaseway.as_of', '17')")
        assert tables_of(Warehouse(tmp_path)).as_of_ms == 17
        # Made, and empty until a copy has noted what it is made of.
        catalog.execute("INSERT INTO iceberg_tables VALUES ('lake', 'leaseway', 'deliveries', 'file:///w/d.json')")
        assert "deliveries" not in tables_of(Warehouse(tmp_path)).places
        noted = "INSERT INTO iceberg_namespace_properties VALUES ('lake', 'leaseway', 'leaseway.deliveries', '{}')"
        catalog.execute(noted)
    assert tables_of(Warehouse(tmp_path)).places["deliveries"] == "/w/d.json"


def test_rows_are_printed_as_spark_prints_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ["VARCHAR", "TIMESTAMP WITH TIME ZONE", "BLOB", "BOOLEAN", "HUGEINT"]
    found = Answer(
        ["a", "at", "body", "flag", "n"], kinds, [("ü", US, b"\x00a", True, 5), (None, None, None, None, None)]
    )
    assert list(found.lines("json")) == [
        '{"a":"ü","at":"2026-03-01T12:00:00.123Z","body":"AGE=","flag":true,"n":5}', "{}"
    ]  # fmt: skip
    assert list(found.lines("csv")) == ["a,at,body,flag,n", "ü,2026-03-01 12:00:00.123456,0061,True,5", ",,,,"]
    assert list(found.lines("table"))[-1] == "(2 rows)"
