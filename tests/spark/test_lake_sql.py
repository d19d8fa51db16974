"""Questions over tables: the same rows by DuckDB, by Spark over tables, and by Spark over Kafka."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.__main__ import main
from spark.dead_letters.selection import FILES
from spark.frames.log import BadOption, Log
from spark.frames.session import beside
from spark.frames.source import Span
from spark.frames.tables import Tables
from spark.lake.answers.question import answered, found
from spark.lake.answers.small import answer, tables_of
from spark.lake.answers.stored import Stored
from spark.lake.commits import Wish
from spark.lake.places.warehouse import Warehouse
from spark.sql_job import lines
from tests.services import Services
from tests.spark.conftest import as_users
from tests.spark.lake_log import LAST_MS, Written, counts_of, lake, text
from tests.spark.plans import files_read

# Rounds of a copy plan for long, and longer beside others.
pytestmark = pytest.mark.timeout(900)

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
    """SELECT principal, queue, verb, dialect, outcome, sum(requests) AS requests, max(max_us) AS longest FROM requests
       WHERE queue = 'mails' GROUP BY 1, 2, 3, 4, 5 ORDER BY dialect""",
    "SELECT at, number, principal, status FROM audit WHERE at < TIMESTAMP '2026-03-03' ORDER BY number DESC LIMIT 1",
    """WITH last AS (SELECT queue, offset, row_number() OVER (PARTITION BY queue ORDER BY sent_at DESC, offset) AS place
       FROM messages WHERE partition = 1)
       SELECT queue, offset FROM last WHERE place <= 2 AND NOT queue = 'x' ORDER BY 1, 2""",
    "SELECT origin.reason, count(*) AS n FROM messages GROUP BY 1 ORDER BY 1 DESC",
    "SELECT queue, sender FROM messages WHERE 1 = 0",
    "SELECT how, count(*), min(received_at), max(wait_ms) FROM deliveries GROUP BY 1 ORDER BY 1",
    """SELECT state, settled_reason, last_how, count(*), sum(deliveries), min(first_received_at), max(last_received_at)
       FROM lives GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
    """SELECT queue, address, dead_at, reason, note, source_queue, source_incarnation, source_tag, source_partition,
       source_offset, original_id, original_queue, original_tag, original_sent_at, first_received_at, receive_count,
       lived_ms, body_text, body_bytes, sender, settled_how, settled_at FROM dead_letters ORDER BY address""",
    "SELECT settled_how, count(*) AS n FROM dead_letters GROUP BY 1 ORDER BY 1",
    """SELECT minute, queue, tag, principal, measure, requests, messages, bytes FROM queue_minutes
       WHERE queue LIKE 'mails%' ORDER BY 1, 2, 3, 4, 5""",
]
# Of tables alone; beside it the same in minutes.
DAILY = """SELECT date, queue, tag, principal, sent, sent_bytes, arrived, leased, acked, released, lapsed, dead, moved
    FROM usage_daily WHERE queue <> 'bills' ORDER BY 1, 2, 3, 4"""
SUM = "sum({}) FILTER (WHERE measure = '{}')"
ENDS = ("arrived", "leased", "acked", "released", "lapsed", "dead", "moved")
OF_MINUTES = f"""SELECT to_date(minute) AS date, queue, tag, principal,
    {SUM.format("messages", "sent")} AS sent, {SUM.format("bytes", "sent")} AS sent_bytes,
    {", ".join(SUM.format("messages", name) + f" AS {name}" for name in ENDS)}
    FROM queue_minutes WHERE queue <> 'bills' GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""
SPARK = {
    "SELECT attributes FROM messages LIMIT 1": "a column of type MAP",
    "SELECT counts[0] AS first FROM meters ORDER BY minute": "array_extract",
    "SELECT cast(seq * 1.5 AS INT) AS n FROM journal ORDER BY 1": "a cast to INTEGER",
    "SELECT \"queue\" FROM messages LIMIT 1": "quotation marks",
    "SELECT percentile(seq, 0.5) FROM journal": "the function percentile",
    "SELECT count(*) + 1 FROM messages": "a column without a name",
}  # fmt: skip


def read(form: str, printed: list[str]) -> Any:
    if form == "json":
        return [json.loads(line) for line in printed]
    return list(csv.reader(io.StringIO("\n".join(printed)))) if form == "csv" else printed


def views_of(spark_session: SparkSession, frame: Callable[[str], DataFrame], query: str = "") -> SparkSession:
    """Makes the views that a query names, or all."""
    names = ("messages", "journal", "meters", "requests", "audit", "queues", "deliveries", "lives", "dead_letters")
    for name in (*names, "queue_minutes"):
        if name in query or not query:
            frame(name).createOrReplaceTempView(name)
    return spark_session


@pytest.fixture(scope="module")
def by_kafka(spark_session: SparkSession, log: Log) -> Iterator[SparkSession]:
    """A session with views of the whole log, each of which is read once for all questions."""
    frames: dict[str, DataFrame] = {}

    def kept(name: str) -> DataFrame:
        tables = Tables(spark_session, log)
        counted = name == "queue_minutes"
        frames[name] = (
            counts_of(tables.messages(), tables.journal()) if counted else getattr(tables, name)()
        ).persist()
        return frames[name]

    yield views_of(spark_session, kept)
    for frame in frames.values():
        frame.unpersist()


def by_spark(asked: SparkSession, query: str, form: str) -> Any:
    return read(form, list(lines(asked.sql(query), form, 1000)))


def test_both_engines_answer_as_kafka_does(
    spark_session: SparkSession, by_kafka: SparkSession, warehouse: Warehouse
) -> None:
    tables = tables_of(warehouse)
    stored = Stored(spark_session, warehouse, tables.as_of_ms or 0)
    by_tables = views_of(stored.spark_session, stored.frame)
    with as_users(by_kafka, by_tables):
        for place, query in enumerate(BOTH):
            form = ("json", "csv", "table")[place % 3]
            expected = by_spark(by_kafka, query, form)
            small = read(form, list(answer(tables, query, 1000, (None, None)).lines(form)))
            assert small == expected, query
            assert by_spark(by_tables, query, form) == expected, query
        # What no minute has is 0 in a day.
        expected = [[*row[:4], *(cell or "0" for cell in row[4:])] for row in by_spark(by_kafka, OF_MINUTES, "csv")]
        stored.frame("usage_daily").createOrReplaceTempView("usage_daily")
        assert read("csv", list(answer(tables, DAILY, 1000, (None, None)).lines("csv"))) == expected
        assert len(expected) > 5 and by_spark(by_tables, DAILY, "csv") == expected
    for query, about in SPARK.items():
        with pytest.raises(Exception, match=about):
            answer(tables, query, 1000, (None, None))
        expected = by_spark(by_kafka, query, "json")
        assert expected and by_spark(by_tables, query, "json") == expected, query


def test_a_span_cuts_tables_as_it_cuts_the_log(spark_session: SparkSession, log: Log, warehouse: Warehouse) -> None:
    query = "SELECT count(*) AS n, min(sent_at) AS first, max(sent_at) AS last FROM messages"
    for span in (Span(LAST_MS + 1), Span(None, LAST_MS + 3), Span(LAST_MS, LAST_MS + 600)):
        tables = tables_of(warehouse)
        small = read("csv", list(answer(tables, query, 10, (span.from_ms, span.to_ms)).lines("csv")))
        stored = Stored(spark_session, warehouse, tables.as_of_ms or 0, span)
        of_log = Tables(beside(spark_session), log, span)  # The views of the whole log stay.
        by_log = views_of(of_log.spark_session, lambda name: getattr(of_log, name)(), query)  # noqa: B023
        assert small == by_spark(by_log, query, "csv")
        assert small == by_spark(views_of(stored.spark_session, stored.frame, query), query, "csv")


def test_dead_letters_are_chosen_from_tables_as_from_the_log(
    spark_session: SparkSession,
    log: Log,
    warehouse: Warehouse,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The session of all tests goes on.
    for place in ("spark.dead_letters.selection.job", "spark.frames.session.job"):
        monkeypatch.setattr(place, lambda *_: contextlib.nullcontext(beside(spark_session)))
    words = ["--bootstrap", log.bootstrap, "--prefix", log.prefix]
    tables = ["--warehouse", str(warehouse.folder)]

    def chosen(where: str, *more: str) -> dict[str, list[str]]:
        out = tmp_path / "chosen"
        assert main(["choose", "--where", where, "--out", str(out), *words, *more]) == 0
        files = sorted(out.glob(FILES))
        return {str(path.relative_to(out).parent): path.read_text().split() for path in files}

    # In a subquery the condition asks another view too.
    of_letters = "settled_how IS NULL AND source_queue IN (SELECT queue FROM messages WHERE body_bytes >= 0)"
    expected = chosen(of_letters)
    assert expected and chosen(of_letters, *tables) == expected
    assert "answered by Spark from tables, as of 20" in capsys.readouterr().err
    assert chosen(of_letters, *tables, "--queue", "mails") == {}
    assert main(["choose", "--where", "none = 1", "--out", str(tmp_path / "none"), *words, *tables]) == 2
    assert main(["choose", "--where", "true", "--out", str(tmp_path), *words, "--warehouse", str(tmp_path)]) == 2
    assert "no `leaseway lake` has copied" in capsys.readouterr().err


def test_what_is_new_is_copied_first_where_it_is_asked_for(
    spark_session: SparkSession,
    stack: Services,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("spark.frames.session.job", lambda *_: contextlib.nullcontext(beside(spark_session)))
    written = Written(stack.bootstrap)
    written.make("q.mails")
    written.put("q.mails", text("one"))
    lake(spark_session, written.log, tmp_path, Wish("none")).round()
    written.put("q.mails", text("two"))

    def asked(*more: str) -> tuple[str, str]:
        query = "SELECT count(*) AS n, count(body_text) AS bodies FROM messages"
        words = ["--bootstrap", written.log.bootstrap, "--prefix", written.log.prefix, "--format", "csv"]
        assert main(["sql", query, *words, *more]) == 0
        printed = capsys.readouterr()
        return printed.out, printed.err

    tables = ["--warehouse", str(tmp_path)]
    assert asked(*tables, "--fresh", "3600")[0] == "n,bodies\n1,0\n"
    began = datetime.now(UTC)
    out, err = asked(*tables, "--fresh", "0")
    # The bodies that the warehouse has are none: who asks does not have them copied.
    assert out == "n,bodies\n2,0\n" and "messages: 1 rows added" in err
    [told] = re.findall("answered by DuckDB from tables, as of (.*)", err)
    assert datetime.fromisoformat(told) >= began.replace(microsecond=0)
    assert main(["sql", "SELECT 1", "--fresh", "0", "--bootstrap", written.log.bootstrap]) == 2
    assert "--fresh is about tables: give --warehouse" in capsys.readouterr().err


def test_conditions_choose_the_files_of_tables(spark_session: SparkSession, warehouse: Warehouse) -> None:
    asked = Stored(spark_session, warehouse, 0).frame("messages")

    # A file for each day; on the second, there are only mails.
    assert files_read(asked) == 2
    assert files_read(asked.where("sent_at < '2026-03-02' AND length(body) > 1")) == 1
    assert files_read(asked.where("queue = 'orders'")) == 1
    assert files_read(asked.where("queue = 'mails'")) == 2
    assert files_read(asked.where("queue = 'orders' AND sent_at >= '2026-03-02'")) == 0


def given(**fields: Any) -> Namespace:
    plain = {
        "warehouse": None,
        "catalog": None,
        "fresh": None,
        "engine": "auto",
        "begin": None,
        "end": None,
        "limit": 10,
        "format": "csv",
        "query": "",
    }
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
        found(Warehouse(tmp_path))


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
    assert done.stdout.splitlines() == ["queue,n", "orders,448", "[] 0"], done
    assert spent < 2
