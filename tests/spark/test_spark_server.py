"""`leaseway spark-server`: sessions of Spark Connect over tables, of a client without Spark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from facade.programs.stack.processes.ports import free_port
from tests.clients import NotFetched, fetched
from tests.conftest import absent
from tests.services import Services
from tests.spark.lake_log import Written, lake, text

STARTED_S = 180.0
LOCK = Path(__file__).with_name("connect.lock")
# Prints the rows of each statement as a list.
PROGRAM = """
import sys
from pyspark.sql import SparkSession

session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
for statement in sys.argv[2:]:
    print([tuple(row) for row in session.sql(statement).collect()], flush=True)
"""


@pytest.fixture(scope="module")
def client() -> Path:
    try:
        return fetched(LOCK)
    except NotFetched as error:
        absent(str(error))


@pytest.fixture
def warehouse(spark_session: SparkSession, stack: Services, tmp_path: Path) -> Path:
    log = Written(stack.bootstrap)
    log.make("q.mails")
    log.put("q.mails", text("a"), text("b"), text("c"))
    lake(spark_session, log.log, tmp_path).run(None)
    return tmp_path


@pytest.fixture
def address(warehouse: Path) -> Iterator[str]:
    """What the server says of how it is reached."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONNECT_AUTHENTICATE_TOKEN"}
    words = ["spark-server", "--warehouse", str(warehouse), "--port", str(port), "--master", "local[1]"]
    server = subprocess.Popen(
        [sys.executable, "-m", "facade", *words], env=environment, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    said = server.stderr.readline()
    threading.Thread(target=server.stderr.read, daemon=True).start()
    found = re.search(rf"sc://localhost:{port}/;token=\S+", said)
    try:
        assert found is not None, said
        yield found[0]
    finally:
        server.terminate()
        assert server.wait(60) in (0, 143)


def asked(client: Path, address: str, *statements: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    return subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, address, *statements],
        env={**environment, "PYTHONPATH": str(client)},
        cwd=client,
        capture_output=True,
        text=True,
        timeout=STARTED_S,
        check=False,
    )


@pytest.mark.long
@pytest.mark.timeout(600)
def test_who_has_the_token_asks_tables_by_name_and_nobody_else_does(client: Path, address: str) -> None:
    found = asked(
        client,
        address,
        "SELECT count(*), max(queue) FROM messages",
        "SELECT decode(body, 'UTF-8') AS text FROM messages ORDER BY text",
    )
    assert found.stdout == "[(3, 'mails')]\n[('a',), ('b',), ('c',)]\n", found.stderr[-2000:]

    without = address.partition("/;")[0] + "/"
    refused = asked(client, without, "SELECT 1")
    assert (refused.stdout, "UNAUTHENTICATED" in refused.stderr) == ("", True)
    wrong = asked(client, f"{without};token=guessed", "SELECT 1")
    assert (wrong.stdout, "Invalid authentication token" in wrong.stderr) == ("", True), wrong.stderr[-2000:]


def test_a_folder_without_tables_starts_nothing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "facade", "spark-server", "--warehouse", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"{tmp_path} has no tables that can be read" in ran.stderr
