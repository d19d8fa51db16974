"""`leaseway spark-server`: sessions of Spark Connect over tables, of a client without Spark."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from facade.programs.stack.processes.ports import free_port
from spark.lake.places.warehouse import Warehouse
from tests.spark.conftest import client_of

STARTED_S = 180.0
LOCK = Path(__file__).with_name("connect.lock")
# Prints the rows of each statement as a list, and what others with wrong tokens are told.
PROGRAM = """
import sys
from pyspark.sql import SparkSession

right, *wrong = sys.argv[1].split()
session = SparkSession.builder.remote(right).create()
for statement in sys.argv[2:]:
    print([tuple(row) for row in session.sql(statement).collect()], flush=True)
for address in wrong:
    try:
        print(SparkSession.builder.remote(address).create().sql("SELECT 1").collect())
    except Exception as error:
        print(" ".join(str(error).split()))
"""


@pytest.fixture(scope="module")
def client() -> Path:
    return client_of(LOCK)


@pytest.fixture
def address(warehouse: Warehouse) -> Iterator[str]:
    """What the server says of how it is reached."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONNECT_AUTHENTICATE_TOKEN"}
    words = ["spark-server", "--warehouse", str(warehouse.folder), "--port", str(port), "--master", "local[1]"]
    server = subprocess.Popen(
        [sys.executable, "-m", "facade", *words], env=environment, stderr=subprocess.PIPE, text=True
    )
    assert server.stderr is not None
    said: list[str] = []
    try:
        # Spark says its own things meanwhile; the address is said when it takes connections.
        for line in server.stderr:
            said.append(line)
            if found := re.search(rf"sc://localhost:{port}/;token=\S+", line):
                break
        else:
            pytest.fail("".join(said))
        socket.create_connection(("127.0.0.1", port), 5).close()
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield found[0]
    finally:
        server.terminate()
        assert server.wait(60) in (0, 143)


def asked(client: Path, addresses: list[str], *statements: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    return subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, " ".join(addresses), *statements],
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
    without = address.partition("/;")[0] + "/"
    found = asked(
        client,
        [address, without, f"{without};token=guessed"],
        "SELECT queue, count(*) FROM messages WHERE queue = 'orders' GROUP BY 1",
        "SELECT decode(body, 'UTF-8') AS text FROM messages WHERE queue = 'mails' AND status = 'torn'",
    )
    *rows, nobody, guessed = found.stdout.splitlines() or [found.stderr[-2000:]] * 2
    assert rows == ["[('orders', 448)]", "[('torn-0',)]"], found.stderr[-2000:]
    assert "UNAUTHENTICATED" in nobody and "Invalid authentication token" in guessed


def test_a_port_that_is_taken_starts_nothing(warehouse: Warehouse) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["spark-server", "--warehouse", str(warehouse.folder), "--port", port]
        ran = subprocess.run([sys.executable, "-m", "facade", *words], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert (
        f"port {port} of 127.0.0.1 is in use or not permitted; stop what uses it, or give --port another number"
        in ran.stderr
    )


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
