"""What happens in the end-to-end test: traffic, dead letters, two ways to redrive them, a live job
killed in mid-work.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Producer

from schemas.records import BatchMark, Message
from schemas.wire import encode
from tests.services import Up
from tests.spark.conftest import QUICK_SQL
from tests.spark.drive import DEAD, QUEUE, Books
from tests.tiers import QUICK_JVM

NATIVE = ["raw", "also raw"]
# One process for all commands: a JVM takes seconds to start.
SCRIPT = """
import json, sys
from facade.programs.cli.cli import main
for line in sys.stdin:
    print("status", main(json.loads(line)), flush=True)
"""
HOSTILE = "<script>document.title = 'owned'</script><img src='http://127.0.0.1:1/x'>"


class Jobs:
    """A process that runs `leaseway` commands, one after the other, against the service in a
    folder.
    """

    def __init__(self, conf: Path, data: Path) -> None:
        self._data = str(data)
        (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in QUICK_SQL.items()))
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "SPARK_CONF_DIR": str(conf), "JAVA_TOOL_OPTIONS": QUICK_JVM},
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, command: str, *options: str) -> None:
        """Begins a command and does not wait."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([command, "--data", self._data, *options]) + "\n")
        self._process.stdin.flush()

    def run(self, command: str, *options: str) -> list[str]:
        """Runs a command; the lines that it printed, and its status at the end."""
        self.begin(command, *options)
        assert self._process.stdout is not None
        found = []
        for line in self._process.stdout:
            found.append(line.strip())
            if line.startswith("status"):
                break
        return found

    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL to the process and its JVM."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


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


def redrive_some(books: Books, jobs: Jobs) -> list[list[str]]:
    """Sends two of the dead letters back by SQL; what the command said, dry, wet, again, and asked
    with a wrong condition.
    """
    time.sleep(1)
    selected = ("--queue", DEAD, "--where", "reason = 'killed' AND source_offset % 2 = 0")
    said = [
        jobs.run("redrive", *selected, "--dry-run"),
        jobs.run("redrive", *selected, "--rate", "500"),
        jobs.run("redrive", *selected),
    ]
    books.redriven(2)
    books.wait_dead(5)
    return [*said, jobs.run("redrive", "--where", "no_such_column = 1")]


def report_two_days(jobs: Jobs, out: Path) -> list[list[str]]:
    """Two reports into one folder; what the command said."""
    days = ("2026-02-01", "2026-02-02", "2026-02-03")
    return [
        jobs.run("report", "--out", str(out), "--from", begin, "--to", end) for begin, end in itertools.pairwise(days)
    ]


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


def kill_live_job_in_mid_work(jobs: Jobs, folder: Path) -> None:
    """`leaseway live` in small micro-batches, killed with its JVM as soon as each stream has
    counted something.
    """
    jobs.begin("live", "--out", str(folder), "--every", "0", "--batch-records", "5")
    end = time.monotonic() + 180
    streams = [folder / "tallies" / f"stream={name}" / "batch=0" / "_SUCCESS" for name in ("sends", "events")]
    while not all(path.exists() for path in streams):
        assert jobs.alive() and time.monotonic() < end
        time.sleep(0.02)
    jobs.kill()
