"""Questions over tables: the same rows by DuckDB, by Spark over tables, and by Spark over Kafka."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.frames.log import BadOption
from spark.frames.source import ALL, Span
from spark.frames.tables import Tables
from spark.lake.answers.question import answered, found
from spark.lake.answers.small import answer, tables_of
from spark.lake.answers.stored import Stored
from spark.lake.warehouse import Warehouse
from spark.sql_job import lines
from tests.services import Services
from tests.spark.lake_log import LAST_MS, Written, asked, commit, entry, lake, minute, part, text

BOTH = [
    "SELECT count(*) FROM messages",
    """SELECT queue, status, count(*) AS n, sum(body_bytes) AS bytes, max(sent_at) AS last FROM messages
       WHERE queue LIKE 'mails%' AND sent_at >= '2026-03-01T12:00'
       GROUP BY queue, status ORDER BY n DESC, queue, status""",
    """SELECT queue, partition, offset, sent_at, body, body_text, native, schema_id FROM messages
       WHERE queue = 'mails' AND partition = 0 ORDER BY schema_id, offset DESC""",
    "SELECT kind, tag, reason, count(*), min(seq), avg(seq) FROM journal GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT date_trunc('hour', sent_at) AS hour, count(DISTINCT queue) AS queues FROM messages GROUP BY 1 ORDER BY 1",
    """SELECT q.queue, q.owner, q.dead_letter_queue, q.created_at, count(m.offset) AS n FROM queues q
       LEFT JOIN messages m ON m.queue = q.queue AND m.body_bytes > 60
       GROUP BY 1, 2, 3, 4 ORDER BY q.dead_letter_queue, 1""",
    "SELECT minute, worker, operation, requests, max_us FROM meters ORDER BY minute",
    "SELECT at, number, principal, status FROM audit WHERE at < TIMESTAMP '2026-03-03' ORDER BY number DESC LIMIT 1",
    """WITH last AS (SELECT queue, offset, row_number() OVER (PARTITION BY queue ORDER BY sent_at DESC, offset) AS place
       FROM messages WHERE partition = 1)
       SELECT queue, offset FROM last WHERE place <= 2 AND NOT queue = 'x' ORDER BY 1, 2""",
    "SELECT origin.reason, count(*) AS n FROM messages GROUP BY 1 ORDER BY 1 DESC",
    "SELECT queue, sender FROM messages WHERE 1 = 0",
]
SPARK = {
    "SELECT how, count(*) FROM deliveries GROUP BY 1 ORDER BY 1": "deliveries",
    "SELECT attributes FROM messages LIMIT 1": "a column of type MAP",
    "SELECT counts[0] AS first FROM meters ORDER BY minute": "array_extract",
    "SELECT cast(seq * 1.5 AS INT) AS n FROM journal ORDER BY 1": "a cast to INTEGER",
    "SELECT \"queue\" FROM messages LIMIT 1": "quotation marks",
    "SELECT percentile(seq, 0.5) FROM journal": "the function percentile",
    "SELECT count(*) + 1 FROM messages": "a column without a name",
    "SELECT settled_how, count(*) AS n FROM dead_letters GROUP BY 1 ORDER BY 1": "dead_letters",
}  # fmt: skip


@pytest.fixture(scope="module")
def log(stack: Services) -> Written:
    made = Written(stack.bootstrap, 1200)
    made.put("q.mails", part("torn", 0, 2), part("whole", 0, 2), part("whole", 1, 2), commit("c", 0), b"raw", b"")
    made.put("q.mails", text('über, "all"\n'), b"\x00\x00\x00\x00\x63newer", ms=500)
    made.put("journal", entry(1, 5, 6), entry(2, 7), ms=50_000)
    made.put("meter", minute(0), minute(1))
    made.put("audit", asked(0), asked(1))
    return made


@pytest.fixture(scope="module")
def warehouse(spark_session: SparkSession, log: Written, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder = tmp_path_factory.mktemp("lake")
    lake(spark_session, log.log, folder).round()
    return Warehouse(folder)


def read(form: str, printed: list[str]) -> Any:
    if form == "json":
        return [json.loads(line) for line in printed]
    return list(csv.reader(io.StringIO("\n".join(printed)))) if form == "csv" else printed


def by_kafka(spark_session: SparkSession, log: Written, query: str, form: str, span: Span = ALL) -> Any:
    Tables(spark_session, log.log, span).create_views(query)
    return read(form, list(lines(spark_session.sql(query), form, 1000)))


def by_tables(stored: Stored, query: str, form: str) -> Any:
    for name in ("messages", "journal", "meters", "audit", "queues", "deliveries", "dead_letters"):
        if name in query:
            stored.frame(name).createOrReplaceTempView(name)
    return read(form, list(lines(stored.spark_session.sql(query), form, 1000)))


def test_both_engines_answer_as_kafka_does(spark_session: SparkSession, log: Written, warehouse: Warehouse) -> None:
    tables = tables_of(warehouse)
    stored = Stored(spark_session, warehouse, tables.as_of_ms or 0)
    for place, query in enumerate(BOTH):
        form = ("json", "csv", "table")[place % 3]
        expected = by_kafka(spark_session, log, query, form)
        small = read(form, list(answer(tables, query, 1000, (None, None)).lines(form)))
        assert small == expected, query
        assert by_tables(stored, query, form) == expected, query
    for query, about in SPARK.items():
        with pytest.raises(Exception, match=about):
            answer(tables, query, 1000, (None, None))
        expected = by_kafka(spark_session, log, query, "json")
        assert expected and by_tables(stored, query, "json") == expected, query


def test_a_span_cuts_tables_as_it_cuts_the_log(spark_session: SparkSession, log: Written, warehouse: Warehouse) -> None:
    query = "SELECT count(*) AS n, min(sent_at) AS first, max(sent_at) AS last FROM messages"
    for span in (Span(LAST_MS + 1), Span(None, LAST_MS + 3), Span(LAST_MS, LAST_MS + 600)):
        tables = tables_of(warehouse)
        small = read("csv", list(answer(tables, query, 10, (span.from_ms, span.to_ms)).lines("csv")))
        assert small == by_kafka(spark_session, log, query, "csv", span)
        assert small == by_tables(Stored(spark_session, warehouse, tables.as_of_ms or 0, span), query, "csv")


def given(**fields: Any) -> Namespace:
    plain = {"warehouse": None, "engine": "auto", "begin": None, "end": None, "limit": 10, "format": "csv", "query": ""}
    return Namespace(**{**plain, **fields})


def test_auto_asks_spark_where_duckdb_may_mean_something_else(
    warehouse: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = warehouse.folder
    assert answered(given(query="SELECT 1 FROM queues")) is None
    assert answered(given(query="SELECT counts[1] AS n FROM meters", warehouse=folder)) is None
    assert "DuckDB is not asked: array_extract" in capsys.readouterr().err
    assert answered(given(query="SELECT counts[1] AS n FROM meters ORDER BY 1", warehouse=folder, engine="duckdb")) == 0
    assert capsys.readouterr().out == "n\n1\n2\n"
    assert answered(given(query="SELECT queue FROM queues ORDER BY 1", warehouse=folder, engine="spark")) is None
    assert answered(given(query="SELECT queue FROM queues ORDER BY 1", warehouse=folder, limit=2)) == 0
    out = capsys.readouterr()
    assert out.out == "queue\nbills\nbills-dead\n" and "answered by DuckDB from tables, as of 20" in out.err
    assert answered(given(query="SELECT nothing FROM queues", warehouse=folder, engine="duckdb")) == 2
    assert "nothing" in capsys.readouterr().err
    with pytest.raises(BadOption, match="give --warehouse"):
        answered(given(engine="duckdb"))
    with pytest.raises(BadOption, match="has no tables that can be read"):
        found(given(warehouse=tmp_path))


def test_a_small_question_needs_no_jvm_and_no_pyspark(warehouse: Warehouse) -> None:
    """Over a folder that nobody writes, with nothing but this program; it must not take long."""
    program = (
        "import sys; from facade.programs.cli.cli import main\n"
        "try: status = main(sys.argv[1:])\n"
        "except SystemExit as end: status = end.code\n"
        "unwanted = ('pyspark', 'py4j', 'engine.engine', 'confluent_kafka', 'redis')\n"
        "print([name for name in unwanted if name in sys.modules], status)"
    )
    query = "SELECT queue, count(*) AS n FROM messages WHERE queue = 'orders' GROUP BY 1"
    words = ["sql", query, "--warehouse", str(warehouse.folder), "--format", "csv"]
    began, before = time.monotonic(), os.times()
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{time.monotonic() - began:.2f} s, {spent:.2f} CPU-s")
    assert done.stdout.splitlines() == ["queue,n", "orders,840", "[] 0"], done
    assert spent < 2
