"""What `report`, the first copy of `lake`, and a question of `sql` over Kafka cost by the size of
the log, and by the number of other queues beside it.

    python -m benchmarks.spark_scale [--messages 100000 200000 400000 800000] [--queues 0 1000]

Starts a Kafka of its own in a temporary folder and fills one log per size (1 KiB a message, 2.5
transitions of the journal each), with so many other queues of one partition and one message beside
it. Runs each command with 2 threads and a driver of 2 GiB, as users do; `again` is a second round
of `lake` that finds nothing new. Prints a line of JSON per command: wall and CPU with the start of
the JVM. Talks to 127.0.0.1 only; ends by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks.spark_log import DAY_MS, fill
from benchmarks.spark_report import BEGIN_MS, tree
from schemas.records import Message, QueueRecord, TagRecord
from schemas.wire import encode
from tests.services import running_services

QUERY = "SELECT sender, count(*), sum(body_bytes) FROM messages WHERE queue = 'bills' GROUP BY sender"
SPAN = ("--from", str(BEGIN_MS), "--to", str(BEGIN_MS + DAY_MS + 3_600_000))
AT_ONCE = 200  # Topics that are made by one call.


def add_queues(bootstrap: str, prefix: str, count: int) -> None:
    """Makes queues of one partition with one message each; ends when Kafka has all."""
    names = [f"other-{number}" for number in range(count)]
    admin, producer = AdminClient({"bootstrap.servers": bootstrap}), Producer({"bootstrap.servers": bootstrap})
    config = {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}
    for first in range(0, count, AT_ONCE):
        some = [NewTopic(f"{prefix}.q.{name}", 1, 1, config=config) for name in names[first : first + AT_ONCE]]
        for made in admin.create_topics(some).values():
            made.result(120)
    for number, name in enumerate(names):
        tags = [TagRecord(0, "default", BEGIN_MS, 0, [0])]
        record = QueueRecord(
            name,
            f"ff{number:010x}",
            "olga",
            BEGIN_MS,
            BEGIN_MS,
            partitions=1,
            lease_ms=30_000,
            tags=tags,
            next_tag_id=1,
        )
        producer.produce(f"{prefix}.control", encode(record), f"queue/{name}".encode(), 0)
        producer.produce(
            f"{prefix}.q.{name}", encode(Message(b"x" * 1024, sender="alice")), None, 0, timestamp=BEGIN_MS
        )
        producer.poll(0)
    left = producer.flush(300)
    if left:
        raise SystemExit(f"Kafka did not take {left} records")


def spent(words: list[str]) -> dict[str, float]:
    """Runs a command of `leaseway`; the wall and CPU seconds that it took."""
    began, cpu_s = time.monotonic(), 0.0
    with subprocess.Popen([sys.executable, "-m", "facade", *words], stdout=subprocess.DEVNULL) as job:
        while job.poll() is None:
            cpu_s = max(cpu_s, tree(job.pid)[1])
            time.sleep(0.2)
    if job.returncode:
        raise SystemExit(f"leaseway {words[0]} ended with {job.returncode}")
    return {"wall_s": round(time.monotonic() - began, 1), "cpu_s": round(cpu_s, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[100_000, 200_000, 400_000, 800_000])
    parser.add_argument("--queues", type=int, nargs="+", default=[0], help="other queues beside each log")
    parser.add_argument(
        "--jobs", nargs="+", default=["sql", "lake", "report"], choices=["sql", "lake", "again", "report"]
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running_services(Path(name, "services")) as services:
        for number, (messages, queues) in enumerate((m, q) for m in options.messages for q in options.queues):
            prefix, tables = f"b{number}", str(Path(name, f"tables-{number}"))
            fill(services.bootstrap, prefix, messages, 1_024, BEGIN_MS)
            add_queues(services.bootstrap, prefix, queues)
            words = {
                "sql": ["sql", QUERY],
                "lake": ["lake", "--warehouse", tables],
                "again": ["lake", "--warehouse", tables],
                "report": ["report", "--out", str(Path(name, f"report-{number}")), *SPAN],
            }
            for job in options.jobs:
                found = spent([*words[job], "--bootstrap", services.bootstrap, "--prefix", prefix])
                line = {"job": job, "messages": messages, "queues": queues, "load": round(os.getloadavg()[0], 1)}
                print(json.dumps({**line, **found}), flush=True)


if __name__ == "__main__":
    main()
