"""Many units, Redis emptied under traffic: when the first queue answers again, when the last one
does, and how many rounds of a rebuild were thrown away.

    python -m benchmarks.rebuild_units [--queues 1000] [--partitions 4] [--askers N]

Starts a Kafka and a Redis of its own in a temporary folder; talks to 127.0.0.1 only; ends by
itself.

1. Fill: each queue gets four messages; two are received with a lease of 12 h, one is acked.
2. Traffic: ten queues are sent to and received from, for as long as the rest goes on.
3. FLUSHALL, then somebody receives from every queue, all at once or `askers` at a time, and again
   until it is answered with a message.
4. `verify`: what Redis has is what Kafka has.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import redis

from engine.engine import Engine
from engine.errors import EngineError, Unavailable
from engine.settings import Settings
from engine.shapes import Delivery, Principal, SendEntry
from engine.wiring.foundation import wire_maintenance
from schemas.records.settings import QueueSettings
from tests.services import Services, running_services

BY = Principal("benchmark", admin=True)
LEASE_MS = 12 * 3_600_000
AT_ONCE = 16
BUSY_QUEUES = 10


class Thrown(logging.Handler):
    """Counts the rounds that failed and the units that were fenced, as the log tells of them."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = 0
        self.failed: list[str] = []
        self.fenced = 0

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("action=rebuild "):
            self.rounds += "units=" in text
            if "error=" in text:
                self.failed.append(text)
        self.fenced += text.startswith("action=fenced")


async def each(names: list[str], work: Any, at_once: int) -> None:
    """Runs `work(name)` for all, some at a time."""
    left = iter(names)

    async def run() -> None:
        for name in left:
            await work(name)

    await asyncio.gather(*(run() for _ in range(at_once)))


async def fill(engine: Engine, name: str) -> None:
    for number in range(4):
        await engine.messages.send(BY, name, [SendEntry(b"%d" % number)])
    got: list[Delivery] = []
    while len(got) < 2:
        got += await engine.messages.receive(BY, name, None, 1, 1_000, LEASE_MS)
    await engine.messages.ack(BY, name, [got[0].handle])


async def traffic(engine: Engine, name: str) -> None:
    while True:
        with contextlib.suppress(EngineError):
            await engine.messages.send(BY, name, [SendEntry(b"traffic")])
            got = await engine.messages.receive(BY, name, None, 10, 100, LEASE_MS)
            await engine.messages.ack(BY, name, [d.handle for d in got])
        await asyncio.sleep(0.02)


async def answers(engine: Engine, names: list[str], askers: int, began: float) -> list[float]:
    """When each queue answered a receive with a message, in seconds after `began`, in order."""
    times: list[float] = []

    async def ask(name: str) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                if await engine.messages.receive(BY, name, None, 1, 1_000, LEASE_MS):
                    times.append(time.perf_counter() - began)
                    return

    await each(names, ask, askers)
    return times


async def measure(services: Services, options: argparse.Namespace) -> dict[str, Any]:
    engine = Engine(Settings(kafka_bootstrap=services.bootstrap, redis_url=services.redis_url))
    await engine.start()
    thrown = Thrown()
    told = logging.getLogger("engine")
    told.addHandler(thrown)
    told.setLevel(logging.WARNING)
    told.propagate = False
    busy = []
    try:
        names = [f"q{number}" for number in range(options.queues)]
        began = time.perf_counter()
        await each(
            names,
            lambda name: engine.queues.create_queue(BY, name, QueueSettings(partitions=options.partitions)),
            AT_ONCE,
        )
        made = time.perf_counter()
        await each(names, lambda name: fill(engine, name), AT_ONCE)
        filled = time.perf_counter()
        await asyncio.sleep(12)  # drained, snapshots written, and given up by their owner
        busy = [asyncio.create_task(traffic(engine, name)) for name in names[:BUSY_QUEUES]]
        await asyncio.sleep(3)
        before = thrown.fenced
        cpu = resource.getrusage(resource.RUSAGE_SELF)
        redis.Redis.from_url(services.redis_url).flushall()
        flushed = time.perf_counter()
        times = await asyncio.wait_for(
            answers(engine, names[BUSY_QUEUES:], min(options.askers, options.queues), flushed), options.bound
        )
        after = resource.getrusage(resource.RUSAGE_SELF)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        report = await verified(engine)
    finally:
        await engine.stop()
    return {
        "units": options.queues * options.partitions,
        "queues": options.queues,
        "made_s": round(made - began, 1),
        "filled_s": round(filled - made, 1),
        "first_answer_s": round(times[0], 2),
        "half_s": round(times[len(times) // 2], 2),
        "last_answer_s": round(times[-1], 2),
        "cpu_s": round(after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime, 1),
        "memory_mb": after.ru_maxrss // 1024,
        "rounds": thrown.rounds,
        "thrown_away": len(thrown.failed),
        "errors": sorted(set(thrown.failed))[:3],
        "fenced": thrown.fenced - before,
        "verify": report,
    }


async def verified(engine: Engine) -> Any:
    maintenance = wire_maintenance(engine.settings)
    try:
        await maintenance.start()
        report = await maintenance.verify()
    finally:
        await maintenance.stop()
    return (report.differences[:3], report.left_out[:3]) if report.differences or report.left_out else "clean"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queues", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--askers", type=int, default=100_000, help="how many receive at a time (one for each queue)")
    parser.add_argument("--bound", type=float, default=300, help="seconds after which it is given up (300)")
    options = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, running_services(Path(folder)) as services:
        print(json.dumps(asyncio.run(measure(services, options)), indent=2))


if __name__ == "__main__":
    main()
