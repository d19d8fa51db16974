"""`leaseway lake` as a process that is killed at each step of a commit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from facade.programs.stack.processes.spark_submit import CONNECTORS, ONE_COMPILER, submit_arguments
from tests.services import Services
from tests.spark.lake_log import Written, asked, entry, lake, minute, same_as_kafka, text

BROKEN = b"\x00\x00\x00\x00\x01\x02"  # The head of a message, and no message.

# Runs the job, and says on stdout when it is about to commit, and when it has committed; it then
# waits to be killed at the step that is given.
PROGRAM = """
import sys, time
from spark.lake.tables import Table
from spark.__main__ import main

step, append = sys.argv[1], Table.append

def watched(table, rows, held):
    def at(name):
        print(name, flush=True)
        if name == step:
            time.sleep(600)
    at(f"before {table.name}")
    print(f"during {table.name}", flush=True)
    added = append(table, rows, held)
    at(f"after {table.name}")
    return added

Table.append = watched
sys.exit(main(["lake", *sys.argv[2:]]))
"""


def start(log: Written, folder: Path, step: str) -> subprocess.Popen[str]:
    words = [
        "--warehouse",
        str(folder),
        "--bootstrap",
        log.log.bootstrap,
        "--prefix",
        log.log.prefix,
        "--bodies",
        "all",
    ]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, step, *words],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": submit_arguments(*ONE_COMPILER, sets=(*CONNECTORS, "lake"))},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_job_that_is_killed_at_any_step_of_a_commit_loses_nothing_and_doubles_nothing(
    spark_session: SparkSession, stack: Services, tmp_path: Path
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails", partitions=2)
    steps = ("before undecodable", "after undecodable", "during messages", "after messages", "after journal", "none")
    for number, step in enumerate(steps):
        log.put("q.mails", text(f"{number} a"), BROKEN, text(f"{number} b"), partition=number % 2)
        log.put("journal", entry(number + 1, number))
        log.put("meter", minute(number))
        log.put("audit", asked(number))
        job = start(log, tmp_path, step)
        assert job.stdout is not None
        try:
            for line in job.stdout:
                if line.strip() == step:
                    # In the midst of a commit, somewhere.
                    time.sleep(0.4 if step.startswith("during") else 0)
                    break
            else:
                assert (step, job.wait(60)) == ("none", 0)
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait(60)

    copy = lake(spark_session, log.log, tmp_path)
    found = same_as_kafka(spark_session, log.log, copy)
    count = len(steps)
    assert found == {"messages": 3 * count, "journal": count, "meters": count, "audit": count}
    assert copy.tables["undecodable"].rows().count() == count
