"""Jobs with executors of their own: they find the classes of Kafka's source, Avro and Iceberg, and
an executor that is killed in the midst of a copy, and of a report, takes nothing away.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.spark_log import fill
from facade.programs.stack.processes.spark_submit import ONE_COMPILER, submit_arguments
from spark.frames.log import Log
from tests.services import Services
from tests.spark.conftest import QUICK_SQL
from tests.spark.lake_log import BEGIN_MS, lake, same_as_kafka
from tests.tiers import QUICK_JVM

MASTER = "local-cluster[2,1,1024]"
# Makes a copy and what a report is made of, in one session, and kills an executor in the midst of
# both: when the records of a commit have been read and are kept by the executors, and when the
# journal is in files and deliveries are to be made of it. What a report writes then is small.
PROGRAM = """
import json, os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
from spark.__main__ import main
from spark.frames.log import Log
from spark.lake.tables.table import Table
from spark.reports.counts import events, sends
from spark.reports.sources.log import LogSource

EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
master, bootstrap, prefix, folder = sys.argv[1:]
stop, SparkSession.stop = SparkSession.stop, lambda _: None
append = Table.append

def executors():
    for path in Path("/proc").glob("[0-9]*"):
        try:
            # The group of this process: of no other session of Spark.
            ours = os.getpgid(int(path.name)) == os.getpgid(0)
            if ours and EXECUTOR in (path / "cmdline").read_bytes().split(b"\\0"):
                yield int(path.name)
        except OSError:
            pass

def kill_oldest():
    os.kill(min(executors()), signal.SIGKILL)
    print("killed", flush=True)

def appended(table, rows, held):
    if table.name == "messages":
        kill_oldest()
        Table.append = append
    return append(table, rows, held)

Table.append = appended
where = ["--bootstrap", bootstrap, "--prefix", prefix, "--master", master]
print(main(["lake", "--warehouse", f"{folder}/tables", "--bodies", "all", *where]), flush=True)
made = SparkSession.builder.getOrCreate()
source = LogSource(made, Log(bootstrap, prefix), datetime.fromtimestamp(0, UTC), datetime.now(UTC))
staged = source.staging(f"{folder}/staged", lambda name: name == "deliveries" and kill_oldest())
counts = sends(staged.messages).unionByName(events(staged.journal))
print(json.dumps({
    "counts": dict(map(tuple, counts.groupBy("measure").agg(F.sum("messages")).collect())),
    "deliveries": staged.deliveries.count(),
}), flush=True)
stop(made)
"""


def run(*given: str) -> list[str]:
    """What the program printed."""
    quick = {**QUICK_SQL, "spark.sql.shuffle.partitions": "2", "spark.executor.extraJavaOptions": QUICK_JVM}
    settings = [word for key, value in quick.items() for word in ("--conf", f"{key}={value}")]
    words = submit_arguments(*ONE_COMPILER, master=MASTER).removesuffix("pyspark-shell")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, MASTER, *given],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"{words}{shlex.join(settings)} pyspark-shell"},
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = program.communicate(timeout=840)
        return printed.splitlines()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux'")
def test_a_cluster_finds_all_classes_and_loses_nothing_with_an_executor(
    spark_session: SparkSession, stack: Services, tmp_path: Path
) -> None:
    log = Log(stack.bootstrap, f"k{secrets.token_hex(3)}")
    written = fill(log.bootstrap, log.prefix, 640, 64, BEGIN_MS, partitions=2)

    *steps, told = run(log.bootstrap, log.prefix, str(tmp_path))

    assert steps == ["killed", "0", "killed"]
    assert json.loads(told) == {
        "counts": {"sent": written.messages, "arrived": written.dead_letters, **written.by_kind},
        "deliveries": written.by_kind["leased"],
    }
    copied = lake(spark_session, log, tmp_path / "tables")
    assert same_as_kafka(spark_session, log, copied, ("messages", "journal")) == {
        "messages": written.messages + written.dead_letters,
        "journal": written.transitions,
    }
