"""How long a killed broker is away, and whether a busy machine fences the only one, by its session
timeout.

    python -m benchmarks.broker_restart [--session MS ...] [--busy N] [--kills 3] [--topics 50]

Starts the embedded Kafka in a temporary folder; talks to 127.0.0.1 only; ends by itself.

1. Kill: kill -9 of the broker, start it again, seconds until it answers (`answers_s`) and until a
   record is appended (`appends_s`). It registers only when its session of before has ended.
2. Busy: N processes that only compute; meanwhile one topic after the other is made, for a minute.
   How long each took, and how often the controller fenced the broker, by its log.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.errors import LogUnavailable
from engine.log import Log, TopicSpec
from facade.programs.stack import broker
from facade.programs.stack.processes import settings
from tests.services import Services, running_services

BUSY_S = 60.0
LOG_SETTINGS = broker.LOG_SETTINGS


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Has `count` processes compute until the block ends, a quarter of an hour at most."""
    words = (sys.executable, "-c", "import time\nend = time.monotonic() + 900\nwhile time.monotonic() < end: pass")
    running = [subprocess.Popen(words) for _ in range(count)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


async def until(work: Any) -> None:
    """Repeats `work` until it raises nothing."""
    while True:
        with contextlib.suppress(LogUnavailable):
            await work()
            return
        await asyncio.sleep(0.02)


async def kill_once(services: Services, log: Log) -> dict[str, float]:
    began = time.monotonic()
    os.kill(services.kafka_pid, signal.SIGKILL)
    await asyncio.sleep(0.5)
    await until(log.reach)
    answered = time.monotonic() - began
    await until(lambda: log.append("t0", 0, b"x"))
    return {"answers_s": round(answered, 1), "appends_s": round(time.monotonic() - began, 1)}


async def make_topics(log: Log, count: int) -> dict[str, Any]:
    times, failed, end = [], 0, time.monotonic() + BUSY_S
    for number in range(count):
        if time.monotonic() > end:
            break
        began = time.monotonic()
        try:
            await log.create_topics([TopicSpec(f"busy{number}", 4, 1, {})])
        except LogUnavailable:
            failed += 1
        times.append(time.monotonic() - began)
    return {
        "topics": len(times),
        "failed": failed,
        "p50_s": round(statistics.median(times), 2),
        "longest_s": round(max(times), 2),
    }


def fenced(folder: Path) -> int:
    """How often the controller says that it fences the broker for a session that is over."""
    return sum(
        file.read_text(errors="replace").count("Fencing broker")
        for file in (folder / "logs").iterdir()
        if file.is_file()
    )


async def measure(services: Services, options: argparse.Namespace) -> dict[str, Any]:
    log = Log(services.bootstrap, 10_000, {})
    await log.start()
    try:
        await log.create_topics([TopicSpec("t0", 1, 1, {})])
        await log.append("t0", 0, b"x")
        kills = [await kill_once(services, log) for _ in range(options.kills)]
        before = fenced(services.folder)
        with busy(options.busy):
            made = await make_topics(log, options.topics)
    finally:
        await log.stop()
    return {"kills": kills, "busy": options.busy, "made": made, "fenced": fenced(services.folder) - before}


def told_of_fences(folder: Path) -> Path:
    """The folder, once the broker that starts there is to log what its controller does."""
    quiet = '"org.apache.kafka.controller" level="WARN"'
    broker.LOG_SETTINGS = folder / "log4j2.xml"
    broker.LOG_SETTINGS.write_text(LOG_SETTINGS.read_text().replace(quiet, quiet.replace("WARN", "INFO")))
    data = folder / "data"
    data.mkdir()
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--session",
        type=int,
        nargs="+",
        help="broker.session.timeout.ms of each life, one run each; as it is if left out",
    )
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--busy", type=int, default=30)
    parser.add_argument("--topics", type=int, default=50)
    options = parser.parse_args()
    for session in options.session or [0]:
        if session:
            settings.AFTER_KILL["broker.session.timeout.ms"] = str(session)
            settings.ONLY_SESSION_MS = str(session)  # type: ignore[misc]
        with tempfile.TemporaryDirectory() as folder, running_services(told_of_fences(Path(folder))) as services:
            print(json.dumps({"session_ms": session, **asyncio.run(measure(services, options))}), flush=True)


if __name__ == "__main__":
    main()
