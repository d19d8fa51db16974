"""What people who look at many queues wait for: a page of the list, a scrape, `queue ls`.

    python -m benchmarks.desk [--scraped 2000] [--listed 10000]

Starts a Kafka, a Redis and a worker of its own in a temporary folder; talks to 127.0.0.1 only; ends
by itself. Each queue has one partition, each tenth a message. Prints JSON, times in ms over HTTP,
medians and worst of so many rounds with a second between them:

1. With the `scraped` queues: GET /metrics/queues.
2. The CPU of `leaseway queue ls -o json`, its start and its page of 100.
3. With the `listed` queues: a page of 100 by each order, and one of 1,000 by the oldest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from benchmarks.console import make
from engine.rules.limits import SORTS
from tests.services import running_services
from tests.stack.serving import serving

ROUNDS = 10
WITHIN_S = 1800.0


def times(call: Callable[[], object], rounds: int = ROUNDS) -> dict[str, float]:
    """How long a call takes, in ms."""
    found = []
    for _ in range(rounds):
        time.sleep(1)
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1000)
    return {"median": round(statistics.median(found), 1), "worst": round(max(found), 1)}


def wait_counted(client: httpx.Client, count: int) -> None:
    """Returns when every queue was counted. Raises AssertionError."""
    end = time.monotonic() + WITHIN_S
    while True:
        counted = 0
        cursor: str | None = ""
        while cursor is not None:
            asked: dict[str, str | int] = {"counts": "true", "limit": 1000, "cursor": cursor}
            page = client.get("/v1/queues", params=asked).raise_for_status().json()
            counted += sum(bool(row["as_of_ms"]) for row in page["counts"])
            cursor = page["next"]
        if counted == count:
            return
        assert time.monotonic() < end, f"{counted} of {count} queues were counted"
        time.sleep(2)


def scraped(client: httpx.Client, count: int) -> dict[str, Any]:
    """A scrape of every series of every queue."""
    text = client.get("/metrics/queues").raise_for_status().text
    assert text.count("leaseway_queue_oldest_message_age_seconds{") == count
    return {"queues": count, "bytes": len(text), "ms": times(lambda: client.get("/metrics/queues").raise_for_status())}


def listed(client: httpx.Client, count: int) -> dict[str, Any]:
    """Pages by each order."""

    def page(sort: str, limit: int) -> Callable[[], object]:
        asked: dict[str, str | int] = {"counts": "true", "sort": sort, "limit": limit}
        return lambda: client.get("/v1/queues", params=asked).raise_for_status()

    by_sort = {sort: times(page(sort, 100), 5) for sort in SORTS}
    return {"queues": count, "page_of_100": by_sort, "page_of_1000_by_oldest": times(page("oldest", 1000))}


def command_line(endpoint: str) -> dict[str, Any]:
    """CPU seconds of `queue ls -o json`."""
    command = [sys.executable, "-m", "facade", "queue", "ls", "-o", "json"]
    environment, used = {**os.environ, "LEASEWAY_ENDPOINT": endpoint}, []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return {"median": round(statistics.median(used), 3), "worst": round(max(used), 3)}


def measured(endpoint: str, few: int, many: int) -> dict[str, Any]:
    """The figures."""
    with httpx.Client(base_url=endpoint, timeout=120) as client:
        make(endpoint, few)
        wait_counted(client, few)
        found = {"scrape": scraped(client, few), "queue_ls_cpu_s": command_line(endpoint)}
        print(json.dumps(found), file=sys.stderr, flush=True)
        make(endpoint, many, few)
        wait_counted(client, many)
        return {**found, "list": listed(client, many)}


def main() -> None:
    """Runs it, and prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scraped", type=int, default=2000)
    parser.add_argument("--listed", type=int, default=10_000)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_services(Path(folder)) as services,
        serving(services, "lwdesk") as endpoint,
    ):
        print(json.dumps(measured(endpoint, given.scraped, given.listed), indent=2))


if __name__ == "__main__":
    main()
