"""A million messages, 200,000 acked out of order, Redis emptied: how long until it answers, until
all is restored, and is it the same.

    python -m benchmarks.rebuild

Starts a Kafka and a Redis of its own in a temporary folder; talks to 127.0.0.1 only; ends by
itself.

1. Fill: 1,000,000 messages into one queue of 4 partitions, appended as the sender does, in bulk.
2. Receive the first 400,000 with a lease of 12 h; ack 200,000 of them, chosen at random, in random
   order. The rest stays leased, so every second message is settled, the floor stays near 0, and
   there are 200,000 open deliveries.
3. Digest: per unit, what is settled, the floor, and nonce, count, first receive, deadline of each
  open delivery.
4. FLUSHALL, then a receive, asked again until it is answered with a message, and the counts, asked
  again until all units serve.
5. `verify`; digest again, but for the message of that receive.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import itertools
import json
import platform
import random
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import redis
from msgspec.structs import astuple

from engine.engine import Engine
from engine.errors import Unavailable
from engine.recovery.verify import Report
from engine.rules.queue import Queue
from engine.settings import Settings
from engine.shapes import Principal
from engine.wiring.foundation import wire_maintenance
from runtime.deadline import journal_until
from schemas.records import Message
from schemas.records.settings import QueueSettings
from schemas.wire import encode
from tests.services import Services, running_services

T = TypeVar("T")

BY = Principal("benchmark", admin=True)
LEASE_MS = 12 * 3_600_000
BULK = 5_000


async def fill(engine: Engine, queue: Queue, messages: int, size: int) -> None:
    """Appends `messages` of `size` bytes, the same number to each partition."""

    async def one(partition: int, count: int) -> None:
        for start in range(0, count, BULK):
            values = [
                encode(Message(b"%d-%d " % (partition, n) + b"x" * size, sender="benchmark"))
                for n in range(start, min(start + BULK, count))
            ]
            for result in await engine.log.append_many(queue.topic, partition, values):
                if isinstance(result, Exception):
                    raise result

    await asyncio.gather(*(one(p, messages // len(queue.units)) for p in range(len(queue.units))))


async def lease(engine: Engine, messages: int) -> list[str]:
    """Receives `messages`; their handles."""
    handles: list[str] = []

    async def one() -> None:
        while len(handles) < messages:
            got = await engine.messages.receive(BY, "q", None, 100, 5_000, LEASE_MS)
            handles.extend(d.handle for d in got)
            if not got:
                raise SystemExit(f"nothing came after {len(handles)} messages")

    await asyncio.gather(*(one() for _ in range(8)))
    return handles


async def ack(engine: Engine, handles: list[str]) -> None:
    async def one(number: int) -> None:
        for start in range(number * 100, len(handles), 800):
            with_status = await engine.messages.ack(BY, "q", handles[start : start + 100])
            if {r.status for r in with_status} != {"ok"}:
                raise SystemExit("an ack was refused")

    await asyncio.gather(*(one(n) for n in range(8)))


async def digest(engine: Engine, queue: Queue, but: tuple[int, int] | None = None) -> tuple[str, int, int]:
    """SHA-256 of settled offsets, floor and deliveries of each unit, and how many of each; `but`
    (partition, offset) is passed over.
    """
    text, settled_count, leased_in_all = hashlib.sha256(), 0, 0
    for unit in queue.units:
        (tag,) = (await engine.store.upkeep.dump(unit, engine.catalog.generation, [0])).tags
        settled = (set(range(tag.cursor)) | tag.ahead) - tag.open.keys()
        leased = [tag.deliveries[offset] for offset in sorted(tag.deliveries) if (unit.partition, offset) != but]
        floor = next(n for n in itertools.count() if n not in settled)
        text.update(json.dumps([floor, sorted(settled), [astuple(d) for d in leased]]).encode())
        settled_count += len(settled)
        leased_in_all += len(leased)
    return text.hexdigest(), settled_count, leased_in_all


async def journaled(engine: Engine, queue: Queue) -> None:
    """Returns when the journal has everything."""
    for partition, unit in enumerate(queue.units):
        await engine.parts.units.owner.journaled.wait(
            queue, partition, await engine.store.upkeep.last_seq(unit), journal_until()
        )


async def until_answered(engine: Engine) -> tuple[int, int]:
    """One receive, repeated as a client would, until a message comes: its partition and offset."""
    while True:
        with contextlib.suppress(Unavailable):
            got = await engine.messages.receive(BY, "q", None, 1, 1_000, LEASE_MS)
            if got:
                return got[0].partition, got[0].offset


async def until_restored(engine: Engine) -> None:
    """Returns when every unit serves: the counts of a queue are of all its units."""
    while True:
        with contextlib.suppress(Unavailable):
            await engine.queues.get_queue(BY, "q")
            return


async def timed(work: Awaitable[T]) -> tuple[T, float]:
    """What came of `work`, and when."""
    return await work, time.perf_counter()


async def verified(engine: Engine) -> Report:
    maintenance = wire_maintenance(engine.settings)
    try:
        await maintenance.start()
        return await maintenance.verify()
    finally:
        await maintenance.stop()


async def measure(services: Services, options: argparse.Namespace) -> dict[str, Any]:
    engine = Engine(Settings(kafka_bootstrap=services.bootstrap, redis_url=services.redis_url))
    await engine.start()
    if options.no_snapshot:
        await engine.parts.base.snapshots.stop()
    try:
        await engine.queues.create_queue(BY, "q", QueueSettings())
        queue = engine.catalog.queues["q"]
        began = time.perf_counter()
        await fill(engine, queue, options.messages, options.bytes)
        filled = time.perf_counter()
        handles = await lease(engine, options.acked * 2)
        rest = random.Random(1)
        rest.shuffle(handles)
        await ack(engine, handles[: options.acked])
        prepared = time.perf_counter()
        await journaled(engine, queue)
        if not options.no_snapshot:
            await engine.parts.base.snapshots.run_once()
        before, settled, leased = await digest(engine, queue)
        client = redis.Redis.from_url(services.redis_url)
        client.flushall()
        flushed = time.perf_counter()
        (first, answered), (_, restored) = await asyncio.gather(
            timed(until_answered(engine)), timed(until_restored(engine))
        )
        report = await verified(engine)
        verified_at = time.perf_counter()
        after, settled_after, leased_after = await digest(engine, queue, but=first)
    finally:
        await engine.stop()
    return {
        "machine": f"{platform.machine()}, 2 cores shared with the client",
        "messages": options.messages,
        "bytes": options.bytes,
        "snapshots": not options.no_snapshot,
        "filled_s": round(filled - began, 1),
        "leased_and_acked_s": round(prepared - filled, 1),
        "settled_before_after": [settled, settled_after],
        "open_deliveries_before_after": [leased, leased_after],
        "first_receive_answered_s": round(answered - flushed, 2),
        "all_units_restored_s": round(restored - flushed, 2),
        "verified_clean_s": round(verified_at - flushed, 2)
        if not report.differences and not report.left_out
        else report.differences[:5],
        "digest_equal": before == after,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--acked", type=int, default=200_000, help="twice as many are leased first")
    parser.add_argument("--bytes", type=int, default=1_000, help="size of a body")
    parser.add_argument(
        "--no-snapshot", action="store_true", help="rebuild from the journal alone, which is the slower way"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_services(Path(folder)) as services:
        print(json.dumps(asyncio.run(measure(services, options)), indent=2))


if __name__ == "__main__":
    main()
