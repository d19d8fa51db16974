"""What happens to the service: traffic, dead letters, two ways to redrive them, a live job killed
in mid-work; and how its commands are run.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from facade.programs.cli.cli import main
from schemas.records import BatchMark, Message
from schemas.wire import encode
from tests.services import Up
from tests.spark.conftest import QUICK_SQL
from tests.spark.drive import DEAD, QUEUE, Books
from tests.tiers import QUICK_JVM

NATIVE = ["raw", "also raw"]
HOSTILE = "<script>document.title = 'owned'</script><img src='http://127.0.0.1:1/x'>"


def run_here(data: Path, command: str, *options: str) -> list[str]:
    """Runs a `leaseway` command about the stack in a folder in the session of all tests, which must
    have begun: what it printed, and its status. A JVM of its own would cost more than the command.
    """
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(SparkSession, "stop", lambda _: None)
        for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON"):  # It sets them.
            patch.setenv(name, "")
        status = main([command, "--data", str(data), *options])
    return [*printed.getvalue().splitlines(), f"status {status}"]


def send_and_kill(books: Books, up: Up) -> None:
    """35 messages: three are received too often, four killed."""
    books.make_queues()
    for number in range(12):
        colour = "red" if number < 5 else "blue"
        books.send("alice", [HOSTILE if number == 3 else f"single {number}"], attributes={"colour": colour})
        if number == 2:
            # Alone in the queue: what is released goes behind what else is there.
            books.exhaust(3)
    books.send("bob", [f"batch {number} grün" for number in range(20)])
    books.send("bob", ["later"], delay_seconds=0.3)
    producer = Producer({"bootstrap.servers": up.run["kafka"]["bootstrap"]})
    for body in NATIVE:
        producer.produce(f"lw.q.{QUEUE}", body.encode())
    assert producer.flush(10) == 0
    books.kill(books.receive(4))
    books.wait_dead(7)


def redrive_some(books: Books, data: Path) -> list[list[str]]:
    """Sends two of the dead letters back by SQL; what the command said, dry, wet, again, and asked
    with a wrong condition.
    """
    time.sleep(1)
    selected = ("--queue", DEAD, "--where", "reason = 'killed' AND source_offset % 2 = 0")
    said = [
        run_here(data, "redrive", *selected, "--dry-run"),
        run_here(data, "redrive", *selected, "--rate", "500"),
        run_here(data, "redrive", *selected),
    ]
    books.redriven(2)
    books.wait_dead(5)
    return [*said, run_here(data, "redrive", "--where", "no_such_column = 1")]


def receive_the_rest(books: Books, up: Up) -> None:
    """All but one are acknowledged at last, which stays leased."""
    held = books.receive(10)
    books.extend(held[:2])
    books.ack(held[:9])
    left = 35 - 9
    while left > 1:
        few = books.receive(min(left - 1, 6))
        books.ack(few)
        left -= len(few)
    # Five were red; they died, and came again to all tags when they were sent back.
    for _ in range(2):
        books.ack(books.receive(5, tag="audit"), tag="audit")
    # A record that never becomes part of a whole batch, behind everything else.
    producer = Producer({"bootstrap.servers": up.run["kafka"]["bootstrap"]})
    producer.produce(f"lw.q.{QUEUE}", encode(Message(b"torn", sender="alice", batch=BatchMark("torn", 0, 2))))
    assert producer.flush(10) == 0


def kill_live_job_in_mid_work(conf: Path, data: Path, folder: Path) -> None:
    """`leaseway live` in small micro-batches, killed with its JVM as soon as one of its streams has
    counted something: on a quick machine both end within a second of that.
    """
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in QUICK_SQL.items()))
    words = ["live", "--data", str(data), "--out", str(folder), "--every", "0", "--batch-records", "2"]
    job = subprocess.Popen(
        [sys.executable, "-m", "facade", *words],
        env={**os.environ, "SPARK_CONF_DIR": str(conf), "JAVA_TOOL_OPTIONS": QUICK_JVM},
        start_new_session=True,
    )
    end = time.monotonic() + 180
    streams = [folder / "tallies" / f"stream={name}" / "batch=0" / "_SUCCESS" for name in ("sends", "events")]
    try:
        while not any(path.exists() for path in streams):
            assert job.poll() is None and time.monotonic() < end
            time.sleep(0.02)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
