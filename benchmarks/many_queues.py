"""Many queues: what a page of their counts costs, a scrape of all, and the worker that counts.

    python -m benchmarks.many_queues [--queues 2000]

Starts a Kafka and a Redis of its own in a temporary folder; talks to 127.0.0.1 only; ends by
itself. Each queue has one partition and one message. Then, from the worker's own code:

1. How long until all are counted.
2. CPU of the worker in 20 s in which nothing happens.
3. A page of 100 by the oldest, as the first one that asks, and its CPU.
4. All series of all queues, as GET /metrics/queues writes them.
5. How old the numbers of a queue are that is sent to, five times.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.rebuild_units import BY, each
from engine.engine import Engine
from engine.settings import Settings
from engine.shapes import QueueCounts, SendEntry
from facade.http.queue_metrics import FAMILIES, lines
from schemas.records.settings import QueueSettings
from tests.services import running_services

AT_ONCE = 16
QUIET_S = 20.0


async def rows_of(engine: Engine) -> list[QueueCounts]:
    """Every row, over all pages."""
    rows: list[QueueCounts] = []
    cursor: str | None = ""
    while cursor is not None:
        some, cursor = await engine.queues.list_counts(BY, "", 1000, "name", cursor)
        rows += some
    return rows


async def seconds_until(check: Any, most_s: float) -> float:
    """How long it takes until `check()` holds. Raises TimeoutError."""
    began = time.monotonic()
    async with asyncio.timeout(most_s):
        while not await check():  # noqa: ASYNC110 - another process's state, of which nobody tells
            await asyncio.sleep(0.05)
    return time.monotonic() - began


async def measured(engine: Engine, count: int) -> dict[str, Any]:
    """The figures."""
    names = [f"q{number:05}" for number in range(count)]

    async def make(name: str) -> None:
        await engine.queues.create_queue(BY, name, QueueSettings(partitions=1))
        await engine.messages.send(BY, name, [SendEntry(b"x")])

    await each(names, make, AT_ONCE)

    async def all_counted() -> bool:
        return sum(row.backlog == 1 for row in await rows_of(engine)) == count

    found: dict[str, Any] = {"queues": count, "all_counted_after_s": await seconds_until(all_counted, 900)}
    await asyncio.sleep(10)  # units are given up
    used = time.process_time()
    await asyncio.sleep(QUIET_S)
    found["worker_cpu_idle_percent"] = (time.process_time() - used) / QUIET_S * 100
    wall, cpu = time.monotonic(), time.process_time()
    page, _ = await engine.queues.list_counts(BY, "", 100, "oldest")
    found["page_ms"], found["page_cpu_ms"] = (time.monotonic() - wall) * 1000, (time.process_time() - cpu) * 1000
    assert len(page) == min(100, count), page
    await asyncio.sleep(1)
    wall = time.monotonic()
    text = "".join(lines(await rows_of(engine), FAMILIES, engine.queues.kafka_ms()))
    found["scrape_ms"], found["scrape_bytes"] = (time.monotonic() - wall) * 1000, len(text)
    found["seen_after_s"] = [await seen_after(engine, names[count // 2], 2 + number) for number in range(5)]
    return found


async def seen_after(engine: Engine, name: str, backlog: int) -> float:
    """How long after a send its message is in the overview."""
    await engine.messages.send(BY, name, [SendEntry(b"x")])

    async def shown() -> bool:
        rows, _ = await engine.queues.list_counts(BY, name)
        return rows[0].backlog == backlog

    return await seconds_until(shown, 60)


async def run(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder, running_services(Path(folder)) as services:
        engine = Engine(Settings(kafka_bootstrap=services.bootstrap, redis_url=services.redis_url))
        await engine.start()
        try:
            print(json.dumps(await measured(engine, count), indent=2))
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(30):
                    await engine.stop()


def main() -> None:
    """Runs it, and prints the figures as JSON."""
    parser = argparse.ArgumentParser(description=next(itertools.islice((__doc__ or "").splitlines(), 1)))
    parser.add_argument("--queues", type=int, default=2000)
    asyncio.run(run(parser.parse_args().queues))


if __name__ == "__main__":
    main()
