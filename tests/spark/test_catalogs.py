"""Tables on a served S3 with their catalog in a PostgreSQL, and those of a REST catalog."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from facade.programs.stack.processes.errors import StackError
from spark.frames.log import BadOption
from spark.frames.tables import Tables
from spark.lake.answers.question import answered
from spark.lake.answers.stored import Stored
from spark.lake.lake import Lake
from spark.lake.places.failures import table_failure
from spark.lake.places.warehouse import Warehouse, warehouse_of
from tests.clients import NotFetched
from tests.conftest import absent
from tests.jars import fetched
from tests.services import Services
from tests.spark.lake_log import ALL, Written, entry, text, whole
from tests.spark.servers.java import KEY, SECRET, serve_catalog, serve_s3, servers
from tests.spark.servers.postgres import PASSWORD, USER, NoPostgres, postgres

# Rounds of a copy plan for long, and longer beside others.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def jars() -> Path:
    try:
        return fetched(Path(__file__).with_name("servers"))
    except NotFetched as error:
        absent(str(error))


@pytest.fixture(scope="module")
def gateway(jars: Path) -> Iterator[Any]:
    try:
        with servers(jars) as made:
            yield made
    except StackError as error:
        absent(str(error))


@pytest.fixture(scope="module")
def database(jars: Path) -> Iterator[str]:
    """What comes behind the password in the URL of a database."""
    try:
        with postgres(jars) as port:
            yield f"127.0.0.1:{port}/postgres"
    except NoPostgres as error:
        absent(str(error))


@pytest.fixture(scope="module")
def bucket(gateway: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The address of a served S3, and the folder of its bucket `lake`."""
    folder = tmp_path_factory.mktemp("objects") / "s3"
    return serve_s3(gateway, folder, "lake"), folder / "lake"


@pytest.fixture
def log(stack: Services) -> Written:
    made = Written(stack.bootstrap)
    made.make("q.mails")
    made.put("q.mails", text("a"), text("ü"), b"raw")
    made.put("journal", entry(1, 0))
    return made


def named(place: str, catalog: str | None, **fields: Any) -> Namespace:
    plain = {"engine": "auto", "begin": None, "end": None, "limit": 10, "format": "csv"}
    return Namespace(warehouse=place, catalog=catalog, fresh=None, **{**plain, **fields})


def copied_twice(spark_session: SparkSession, log: Written, warehouse: Warehouse) -> Lake:
    """Copies what there is and then what came meanwhile, by a job each; asserts that the tables
    have what Kafka has.
    """
    Lake(spark_session, log.log, warehouse, ALL).round()
    log.put("q.mails", text("later"), ms=1_000)
    copy = Lake(spark_session, log.log, warehouse, ALL)
    copy.round()
    stored, tables = Stored(spark_session, warehouse, None), Tables(spark_session, log.log)
    rows = whole(stored.frame("messages"))
    assert len(rows) == 4 and rows == whole(tables.messages())
    assert whole(stored.frame("journal")) == whole(tables.journal())
    return copy


def asked(words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """`leaseway sql`, as a user has it."""
    query = "SELECT count(*) AS n, max(body_text) AS last FROM messages"
    return subprocess.run(
        [sys.executable, "-m", "facade", "sql", query, "--format", "csv", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.timeout(600)
def test_tables_on_s3_with_their_catalog_in_postgres(
    spark_session: SparkSession,
    log: Written,
    database: str,
    bucket: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address, objects = bucket
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", address)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    jvm: Any = spark_session._jvm
    # The variables of this JVM are those of its start.
    variables = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        # This S3Proxy knows no sums behind a body.
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
    }
    for name, value in zip(
        ("accessKeyId", "secretAccessKey", "requestChecksumCalculation"), variables.values(), strict=True
    ):
        jvm.System.setProperty(f"aws.{name}", value)
    place, catalog = "s3a://lake/some/tables/", f"postgresql://{USER}@{database}"
    warehouse = warehouse_of(named(place, catalog))

    with pytest.raises(BadOption, match="has copied a log into s3a://lake/some/tables yet"):
        Stored(spark_session, warehouse, None)
    copy = copied_twice(spark_session, log, warehouse)

    messages = objects / "some/tables/leaseway/messages"
    assert len(list(messages.rglob("*.parquet"))) == copy.tables["messages"].files() == 2
    assert copy.tables["messages"].compact(2) == 2
    kept = {file for file in messages.rglob("*") if file.is_file()}
    (messages / "data/of-a-job-that-was-killed.parquet").write_bytes(b"x")
    # Iceberg lists the bucket itself, for Hadoop knows no S3. S3Proxy shows it the folders too.
    assert copy.tables["messages"].remove_orphans(-60_000) >= 1
    assert {file for file in messages.rglob("*") if file.is_file()} == kept
    # By the command line, whose JVM takes keys and password from its variables.
    words = ["--warehouse", place, "--catalog", catalog]
    done = asked(words, variables)
    assert done.stdout == "n,last\n4,ü\n", done.stderr[-3000:]
    assert "it can't read tables with a catalog in PostgreSQL" in done.stderr and "answered by Spark" in done.stderr
    with pytest.raises(BadOption, match="--engine duckdb can't read tables with a catalog in PostgreSQL"):
        answered(named(place, catalog, engine="duckdb", query="SELECT 1"))

    wrong = f"postgresql://{USER}:{quote('no ' + PASSWORD, safe='')}@{database}"
    with pytest.raises(Py4JJavaError) as failed:
        Lake(spark_session, log.log, warehouse_of(named(place, wrong)), ALL)
    said = table_failure(failed.value)
    assert said is not None and "password authentication failed" in said and PASSWORD not in said + str(failed.value)


@pytest.mark.timeout(600)
def test_a_rest_catalog_says_where_its_tables_are(
    spark_session: SparkSession, log: Written, gateway: Any, tmp_path: Path
) -> None:
    given = named("analytics", serve_catalog(gateway, tmp_path))
    copied_twice(spark_session, log, warehouse_of(given))
    assert list(tmp_path.rglob("messages/data/**/*.parquet"))
    with pytest.raises(BadOption, match="--engine duckdb can't read tables with a catalog in a REST service"):
        answered(Namespace(**{**vars(given), "engine": "duckdb", "query": "SELECT 1"}))
