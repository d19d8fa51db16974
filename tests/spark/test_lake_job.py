"""A copy into tables that ends at each step of a commit, and one that is killed in a commit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from facade.programs.stack.processes.spark_submit import ONE_COMPILER, submit_arguments
from spark.lake.offsets import Held
from spark.lake.tables.table import Table
from tests.services import Services
from tests.spark.lake_log import Written, asked, counted, entry, lake, minute, same_as_kafka, text

BROKEN = b"\x00\x00\x00\x00\x01\x02"  # The head of a message, and no message.

# Runs the job, and says on stdout when a commit to `messages` begins.
PROGRAM = """
import sys
from spark.lake.tables.table import Table
from spark.__main__ import main

append = Table.append

def watched(table, rows, held):
    if table.name == "messages":
        print("during", flush=True)
    return append(table, rows, held)

Table.append = watched
sys.exit(main(["lake", *sys.argv[1:]]))
"""


class Ended(Exception):
    """A job has ended at a step: between two commits nothing is under way, so what a killed process
    leaves there is what an exception leaves.
    """


def start(log: Written, folder: Path) -> subprocess.Popen[str]:
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
        [sys.executable, "-c", PROGRAM, *words],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": submit_arguments(*ONE_COMPILER, master="local[2]")},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip


def end_at(step: str, patch: pytest.MonkeyPatch) -> None:
    """Has whatever job comes to this step of a commit end there."""
    append = Table.append

    def watched(table: Table, rows: DataFrame, held: Mapping[str, Held]) -> int:
        if step == f"before {table.name}":
            raise Ended
        added = append(table, rows, held)
        if step == f"after {table.name}":
            raise Ended
        return added

    patch.setattr(Table, "append", watched)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_job_that_ends_at_any_step_of_a_commit_or_is_killed_in_one_loses_nothing_and_doubles_nothing(
    spark_session: SparkSession, stack: Services, tmp_path: Path
) -> None:
    log = Written(stack.bootstrap)
    log.make("q.mails", partitions=2)
    steps = ("before undecodable", "after undecodable", "during messages", "after messages", "after journal", "none")
    for number, step in enumerate(steps):
        log.put("q.mails", text(f"{number} a"), BROKEN, text(f"{number} b"), partition=number % 2)
        log.put("journal", entry(number + 1, number))
        log.put("meter", minute(number))
        log.put("requests", counted(number))
        log.put("audit", asked(number))
        if step.startswith("during"):
            kill_in_a_commit(start(log, tmp_path))
        elif step != "none":
            with pytest.MonkeyPatch.context() as patch:
                end_at(step, patch)
                with pytest.raises(Ended):
                    lake(spark_session, log.log, tmp_path).round()

    copy = lake(spark_session, log.log, tmp_path)
    copy.round()

    found = same_as_kafka(spark_session, log.log, copy)
    count = len(steps)
    assert found == {"messages": 3 * count, "journal": count, "meters": count, "requests": 2 * count, "audit": count}
    assert copy.tables["undecodable"].rows().count() == count


def kill_in_a_commit(job: subprocess.Popen[str]) -> None:
    """SIGKILL to a job and its JVM in the midst of a commit to `messages`, somewhere."""
    assert job.stdout is not None
    try:
        assert job.stdout.readline() == "during\n"
        time.sleep(0.4)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(60)
