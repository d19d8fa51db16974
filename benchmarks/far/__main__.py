"""A million messages, delayed at random over a day; the clock is moved.

    .venv/bin/python -m benchmarks.far [--messages N] [--hours H] [--wipe] [--keep] [--page]

Starts a Kafka and a Redis of its own in a temporary folder, and one engine in this process; talks
to 127.0.0.1 only; ends by itself. Each message must come once, none early, p99 less than a second
late, with less than 64 MiB in Redis. `--wipe` empties Redis half way, when the journal has all that
was acknowledged. It prints JSON, and ends with 1 if a bar is missed. `--keep` keeps the figures in
benchmarks/far/results and draws benchmarks/far.svg; `--page` measures nothing and draws it again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from benchmarks.far import outcome
from benchmarks.far.chart import svg
from benchmarks.far.day import BY, QUEUE, Day, Plan
from engine.engine import Engine
from engine.settings import Settings
from schemas.records.settings import QueueSettings
from tests.clock import ScriptClock
from tests.services import running_services

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "benchmarks" / "far.svg"


async def measured(plan: Plan, kafka: str, url: str, command: str) -> outcome.Outcome:
    """Runs the day, over a Kafka and a Redis that nobody else uses."""
    began, load = time.monotonic(), os.getloadavg()[0]
    settings = Settings(kafka_bootstrap=kafka, redis_url=url, topic_prefix=f"far{secrets.token_hex(3)}")
    with pytest.MonkeyPatch.context() as patch, contextlib.closing(redis.Redis.from_url(url)) as store:
        clock, engine = ScriptClock(patch), Engine(settings)
        await engine.start()
        try:
            await engine.queues.create_queue(BY, QUEUE, QueueSettings(partitions=1, lease_ms=600_000))
            day = Day(plan, engine, clock, store, store.flushall)
            await day.run()
        finally:
            await engine.stop()
    return outcome.Outcome(
        command, _machine(), _commit(), plan.messages, plan.hours, len(day.came), day.early, day.twice,
        day.ordinary_s, day.send_s, round(time.monotonic() - began, 1), (round(load, 1), round(os.getloadavg()[0], 1)),
        day.looks, sorted(day.memory.items()), day.wiped_at,
    )  # fmt: skip


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    day = time.strftime("%Y-%m-%d")
    return f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, Python {platform.python_version()}; {day}"


def _commit() -> str:
    """With a plus if the sources are others."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        head = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()
        changed = subprocess.check_output(
            ["git", "status", "--porcelain", "-uno", "engine", "state", "runtime", "schemas"], cwd=ROOT, text=True
        )
        return head + ("+" if changed else "")
    return "unknown"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=Plan.messages)
    parser.add_argument("--hours", type=float, default=Plan.hours)
    parser.add_argument(
        "--step-s", type=int, default=Plan.step_s, help="seconds by which the clock is moved (default %(default)s)"
    )
    parser.add_argument(
        "--looks", type=int, default=Plan.looks, help="how often lateness is measured (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--wipe", action="store_true", help="empty Redis half way")
    parser.add_argument("--keep", action="store_true", help="keep the figures and draw the picture")
    parser.add_argument("--page", action="store_true", help="only draw the picture again")
    parser.add_argument("--kafka", help="host:port of a Kafka that holds nothing else; with --redis")
    parser.add_argument("--redis", help="URL of a Redis that holds nothing else; it is emptied")
    return parser.parse_args()


@contextlib.contextmanager
def _services(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    if given.kafka and given.redis:
        yield given.kafka, given.redis
        return
    with tempfile.TemporaryDirectory(prefix="far-") as folder, running_services(Path(folder)) as services:
        yield services.bootstrap, services.redis_url


def main() -> int:
    given = _options()
    if not given.page:
        plan = Plan(
            given.messages, given.hours, step_s=given.step_s, looks=given.looks, wipe=given.wipe, seed=given.seed
        )
        command = " ".join(["python -m benchmarks.far", *sys.argv[1:]])
        with _services(given) as (kafka, url):
            found = asyncio.run(measured(plan, kafka, url, command))
        print(json.dumps(found.told(), indent=2))
        if given.keep:
            outcome.write(found)
    if given.keep or given.page:
        PICTURE.write_text(svg(outcome.read()))
    return 1 if not given.page and found.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
