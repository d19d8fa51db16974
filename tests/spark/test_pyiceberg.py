"""PyIceberg over the same catalog: what it reads is what Spark reads."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from schemas.records import Attribute, QueueRecord
from tests.services import Services
from tests.spark.conftest import client_of
from tests.spark.lake_log import UNIT, Written, commit, entry, lake, part, text

LOCK = Path(__file__).with_name("pyiceberg.lock")
# Prints the columns of each table, then its rows as JSON.
PROGRAM = """
import json, sys
from pyiceberg.catalog.sql import SqlCatalog

def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat(timespec="microseconds") if hasattr(value, "isoformat") else value

folder, *names = sys.argv[1:]
catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
for name in names:
    rows = catalog.load_table(f"leaseway.{name}").scan().to_arrow()
    print(json.dumps([name, rows.column_names]))
    for row in rows.to_pylist(maps_as_pydicts="strict"):
        print(json.dumps(plain(row), sort_keys=True))
"""


@pytest.fixture(scope="module")
def client() -> Path:
    return client_of(LOCK)


def plain(value: Any) -> Any:
    """As the program prints it. PySpark gives times of the machine's zone without naming it."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else value


def read(client: Path, folder: Path, *names: str) -> dict[str, tuple[list[str], list[str]]]:
    """The columns and the sorted rows of tables, by PyIceberg in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, str(folder), *names],
        env={"PYTHONPATH": str(client), "TZ": "Asia/Kolkata"},
        cwd=client,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, tuple[list[str], list[str]]] = {}
    rows: list[str] = []
    for line in done.stdout.splitlines():
        if line.startswith("["):
            name, columns = json.loads(line)
            found[name] = (columns, rows := [])
        else:
            rows.append(line)
    return {name: (columns, sorted(rows)) for name, (columns, rows) in found.items()}


def test_pyiceberg_reads_every_column_as_spark_does(
    client: Path, spark_session: SparkSession, stack: Services, tmp_path: Path
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails")
    queue = QueueRecord("mails", UNIT, "olga", 1, 1, partitions=1, tags=[], next_tag_id=1, fifo=True)
    log.put("control", queue, key=b"queue/mails")
    fields = {"group": "g", "dedup_id": "d", "priority": 3, "delay_ms": 1500, "lease_ms": 9000}
    attributes = {"kind": Attribute("String", "größe".encode()), "bytes": Attribute("Binary", b"\x00\xff")}
    log.put("q.mails", part("whole", 0, 2), part("whole", 1, 2), commit("c", 0), b"raw", b"\x00\x00\x00\x00\x63newer")
    log.put("q.mails", text('über, "all"\n', attributes=attributes, **fields), b"\x00\x00\x00\x00\x01\x02", ms=500)
    log.put("journal", entry(1, 5, 6), entry(2, 7), ms=50_000)
    copy = lake(spark_session, log.log, tmp_path)
    copy.round()

    found = read(client, tmp_path, "messages", "journal")

    for name in ("messages", "journal"):
        frame = copy.tables[name].rows()
        collected = [plain(row.asDict(recursive=True)) for row in frame.collect()]
        empty = {column for column in frame.columns if all(row[column] is None for row in collected)}
        assert not empty, f"nothing is compared in {empty}"
        for row in collected:
            if "attributes" in row:
                # PyIceberg 0.12 has an empty map where there is none.
                row["attributes"] = row["attributes"] or {}
        assert found[name] == (frame.columns, sorted(json.dumps(row, sort_keys=True) for row in collected)), name
