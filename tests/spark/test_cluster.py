"""Jobs on a standalone cluster of a master and two workers: executors find the classes of Kafka's
source, Avro and Iceberg, and one that is killed in the midst of a copy, or of any stage of a
report, takes nothing away.
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
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.spark_log import fill
from facade.programs.stack.processes.spark_submit import ONE_COMPILER, submit_arguments
from spark.dead_letters.clusters import LEAST_DEAD_LETTERS
from spark.frames.log import Log
from spark.reports.report import folder_of, report, written
from spark.reports.sources.log import LogSource
from tests.services import Services
from tests.spark.conftest import QUICK_SQL
from tests.spark.lake_log import BEGIN_MS, LAST_MS, lake, same_as_kafka, whole
from tests.spark.servers.standalone import standalone
from tests.tiers import QUICK_JVM

# In these stages of a report an executor is killed: when Kafka is read, when what was staged is
# read, when it is counted, and when rows are kept (`persist`).
STAGES = ["messages", "deliveries", "tallies", "dead_letter_clusters"]
PERCENTILES = ["p50_ms", "p95_ms", "p99_ms", "p999_ms"]
# Makes a copy, a report and an answer in one session. In the midst of the copy an executor is
# killed when the records of a commit have been read and are kept by the executors; in the midst of
# the report, while it has a task, until a task has failed by it.
PROGRAM = """
import json, os, queue, signal, sys, threading, time
from pathlib import Path
from pyspark import SparkContext
from pyspark.sql import SparkSession
from spark.__main__ import main
from spark.lake.tables.table import Table
from spark.progress import Stages

master, bootstrap, prefix, folder, begin, end, *stages = sys.argv[1:]
stop, SparkSession.stop = SparkSession.stop, lambda _: None
append, begin_stage, begun = Table.append, Stages.begin, queue.Queue()

def executors():
    ours = {b"--app-id", SparkContext.getOrCreate().applicationId.encode()}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\\0")
            if ours <= set(words):
                yield words[words.index(b"--executor-id") + 1].decode(), int(path.name)
        except OSError:
            pass

def appended(table, rows, held):
    if table.name == "messages":
        Table.append = append
        os.kill(min(pid for _, pid in executors()), signal.SIGKILL)
        print("killed", flush=True)
    return append(table, rows, held)

def busy(made):
    told = made._jsc.sc().statusStore().executorList(True)
    return {told.apply(n).id() for n in range(told.size()) if told.apply(n).activeTasks()}

def killed_with_a_task(made):
    tracker = made.statusTracker()
    wanted = busy(made)
    running = tracker.getActiveStageIds()
    pids = [pid for name, pid in executors() if name in wanted]
    if not pids or not running:
        return False
    os.kill(pids[0], signal.SIGKILL)
    while True:
        over = not set(running) & set(tracker.getActiveStageIds())
        told = [tracker.getStageInfo(stage) for stage in running]
        if any(one is not None and one.numFailedTasks for one in told):
            return True
        if over:
            return False
        time.sleep(0.01)

def kill_in_stages(made):
    while (name := begun.get()):
        while not killed_with_a_task(made):
            time.sleep(0.01)
        print("killed in", name, flush=True)

def stage_begun(self, name, about=""):
    begin_stage(self, name, about)
    if name in stages:
        begun.put(name)

Table.append, Stages.begin = appended, stage_begun
where = ["--bootstrap", bootstrap, "--prefix", prefix, "--master", master]
print(main(["lake", "--warehouse", f"{folder}/tables", "--bodies", "all", *where]), flush=True)
killer = threading.Thread(target=kill_in_stages, args=[SparkContext.getOrCreate()], daemon=True)
killer.start()
print(main(["report", "--out", f"{folder}/out", "--from", begin, "--to", end, *where]), flush=True)
begun.put(None)
killer.join(60)
asked = "SELECT kind, count(*) AS n FROM journal GROUP BY kind"
print(main(["sql", asked, "--format", "json", *where]), flush=True)
stop(SparkSession.builder.getOrCreate())
"""


def run(environment: Mapping[str, str], master: str, *given: str) -> list[str]:
    """What the program printed."""
    quick = {**QUICK_SQL, "spark.sql.shuffle.partitions": "2", "spark.executor.extraJavaOptions": QUICK_JVM}
    settings = [word for key, value in quick.items() for word in ("--conf", f"{key}={value}")]
    words = submit_arguments(*ONE_COMPILER, master=master).removesuffix("pyspark-shell")
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, master, *given],
        env={**os.environ, **environment, "PYSPARK_SUBMIT_ARGS": f"{words}{shlex.join(settings)} pyspark-shell"},
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = program.communicate(timeout=1_500)
        return printed.splitlines()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux'")
def test_a_cluster_finds_all_classes_and_loses_nothing_with_executors(
    spark_session: SparkSession, stack: Services, tmp_path: Path
) -> None:
    log = Log(stack.bootstrap, f"k{secrets.token_hex(3)}")
    written_log = fill(log.bootstrap, log.prefix, 2_800, 64, BEGIN_MS, partitions=2)
    assert written_log.dead_letters >= LEAST_DEAD_LETTERS, "they have causes"
    begin, end = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (BEGIN_MS, LAST_MS))

    with standalone(tmp_path / "cluster", secrets.token_hex(16)) as cluster:
        where = [log.bootstrap, log.prefix, str(tmp_path), str(BEGIN_MS), str(LAST_MS)]
        printed = run(cluster.environment, cluster.master, *where, *STAGES)

    out = tmp_path / "out" / folder_of(begin, end)
    rows = [json.loads(line) for line in printed if line.startswith("{")]
    steps = [line.partition(" (made in ")[0] for line in printed if not line.startswith("{")]
    kills = [f"killed in {name}" for name in STAGES]
    assert steps == ["killed", "0", *kills, str(out / "report.html"), "0", "0"]
    assert {row["kind"]: row["n"] for row in rows} == written_log.by_kind
    copied = lake(spark_session, log, tmp_path / "tables")
    assert same_as_kafka(spark_session, log, copied, ("messages", "journal")) == {
        "messages": written_log.messages + written_log.dead_letters,
        "journal": written_log.transitions,
    }
    report(LogSource(spark_session, log, begin, end), begin, end, tmp_path / "here")
    assert exact(spark_session, out) == exact(spark_session, tmp_path / "here")


def exact(spark_session: SparkSession, out: Path) -> dict[str, list[str]]:
    """The rows of all reports below a folder, by the name of the report; without percentiles, which
    are approximate: how many tasks there were decides which of two neighbours is told.
    """
    return {name: whole(frame.drop(*PERCENTILES)) for name, frame in written(spark_session, out).items()}
