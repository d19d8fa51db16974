"""Far delays at scale: a million messages, delayed at random over a day; the clock is moved.

    python -m benchmarks.far --kafka HOST:PORT --redis URL [--messages N] [--hours H] [--wipe]

One engine in this process, over a Kafka and a Redis of the caller's that hold nothing else. The
messages are sent by the real clock; then the clock of the engine and of the scripts is moved (that
of Kafka and the leases of units are not). Most of the day passes in steps: after each, all that is
due is received and acknowledged. In between the clock runs at its own pace for some seconds, by a
consumer that waits as any does: how late messages are is measured there. Each message must come
once, none early. `--wipe` empties Redis half way. It prints JSON, and ends with 1 if a bar is
missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import secrets
import sys
import time
from typing import Any

import pytest
import redis

from engine.engine import Engine
from engine.errors import EngineError
from engine.settings import Settings
from engine.shapes import Principal, QueueSettings, SendEntry
from state.errors import StateError
from tests.clock import ScriptClock

BY = Principal("bench", admin=True)
LIVE_S = 5.0
BATCH = 100
SIDE_BY_SIDE = 20
MOST_MIB, MOST_LATE_MS = 64, 1_000


class Run:
    """One day: who is due when, and what has come."""

    def __init__(self, given: argparse.Namespace, engine: Engine, clock: ScriptClock, store: redis.Redis) -> None:
        self.given, self.engine, self.clock, self.store = given, engine, clock, store
        self.random = random.Random(given.seed)
        self.due: dict[str, int] = {}
        self.came: dict[str, int] = {}
        self.early = self.twice = 0
        self.late_ms: list[int] = []
        self.most_bytes = 0

    def look(self) -> None:
        used = int(self.store.info("memory")["used_memory"])
        self.most_bytes = max(self.most_bytes, used)

    async def send(self) -> None:
        """Sends all; a partition for each worker of the loop."""
        left = self.given.messages

        async def some() -> None:
            nonlocal left
            while left > 0:
                count = min(BATCH, left)
                left -= count
                delays = [self.random.randrange(self.given.first_s * 1000, int(self.given.hours * 3_600_000)) for _ in range(count)]
                sent = await self.engine.send(BY, "q", [SendEntry(b"x" * 100, delay_ms=delay) for delay in delays])
                self.due.update((one.id, one.sent_at_ms + delay) for one, delay in zip(sent, delays, strict=True))
                if left % 10_000 < BATCH:
                    self.look()

        await asyncio.gather(*(some() for _ in range(SIDE_BY_SIDE)))

    async def receive(self, wait_ms: int, live: bool) -> int:
        try:
            got = await self.engine.receive(BY, "q", None, 100, wait_ms, None)
        except (EngineError, StateError):  # Redis was emptied
            await asyncio.sleep(0.05)
            return 0
        now = self.clock.now_ms()
        for one in got:
            due = self.due[one.id]
            self.early += now < due
            self.twice += one.id in self.came
            self.came[one.id] = now
            if live and due >= self.live_since:
                self.late_ms.append(now - due)
        if got:
            await self.engine.ack(BY, "q", [one.handle for one in got])
        return len(got)

    async def live(self) -> None:
        """The clock runs at its own pace; four consumers wait."""
        self.live_since = self.clock.now_ms() + 500
        end = time.monotonic() + LIVE_S

        async def consume() -> None:
            while time.monotonic() < end:
                await self.receive(1_000, live=True)

        await asyncio.gather(*(consume() for _ in range(4)))

    async def drain(self) -> None:
        owner = self.engine.parts.units.owner
        for loader in list(owner.owned.values()):
            try:
                await owner.turns.deferrals.turn(loader)
            except (EngineError, StateError):
                continue
        while sum(await asyncio.gather(*(self.receive(0, live=False) for _ in range(4)))):
            self.look()

    async def day(self) -> None:
        began = self.clock.now_ms()
        step_ms = self.given.step_s * 1000
        steps = int(self.given.hours * 3_600_000 / step_ms) + 2
        live_every = max(1, steps // self.given.looks)
        for step in range(steps):
            if self.given.wipe and step == steps // 2:
                self.store.flushall()
                await asyncio.sleep(3)
            self.clock.set(began + step * step_ms)
            await self.drain()
            if step % live_every == 0:
                await self.live()
            if step % 30 == 0:
                print(f"step {step} of {steps}: {len(self.came)} of {len(self.due)}, {self.most_bytes >> 20} MiB", file=sys.stderr)
        for _ in range(20):
            if len(self.came) == len(self.due):
                break
            await self.drain()
            await asyncio.sleep(0.5)

    def result(self) -> dict[str, Any]:
        late = sorted(self.late_ms)
        p99 = late[len(late) * 99 // 100] if late else None
        return {
            "messages": len(self.due), "came": len(self.came), "early": self.early, "twice": self.twice,
            "redis_mib": round(self.most_bytes / 2**20, 1), "measured_live": len(late), "p99_late_ms": p99,
            "most_late_ms": late[-1] if late else None, "wiped": self.given.wipe,
        }  # fmt: skip


async def main(given: argparse.Namespace) -> int:
    """Runs it; 0 = every bar is kept."""
    with pytest.MonkeyPatch.context() as patch:
        clock = ScriptClock(patch)
        prefix = f"far{secrets.token_hex(3)}"
        engine = Engine(Settings(kafka_bootstrap=given.kafka, redis_url=given.redis, topic_prefix=prefix))
        await engine.start()
        await engine.create_queue(BY, "q", QueueSettings(partitions=given.partitions, lease_ms=600_000))
        store: redis.Redis = redis.Redis.from_url(given.redis)
        run = Run(given, engine, clock, store)
        began = time.monotonic()
        await run.send()
        sent_s = time.monotonic() - began
        ordinary_s = await _ordinary(engine)
        run.look()
        print(f"sent in {sent_s:.0f} s; 100 ordinary ones behind took {ordinary_s} s; {run.most_bytes >> 20} MiB", file=sys.stderr)
        await run.day()
        found = {**run.result(), "send_s": round(sent_s), "ordinary_s": ordinary_s, "whole_s": round(time.monotonic() - began)}
        print(json.dumps(found))
        await engine.stop()
        store.close()
    kept = found["came"] == found["messages"] and not found["early"] and (given.wipe or not found["twice"])
    return 0 if kept and found["redis_mib"] < MOST_MIB and (found["p99_late_ms"] or 0) < MOST_LATE_MS else 1


async def _ordinary(engine: Engine) -> float:
    """How long a hundred ordinary messages behind all of them take, in seconds."""
    began = time.monotonic()
    await engine.send(BY, "q", [SendEntry(b"ordinary") for _ in range(100)])
    left = 100
    while left:
        got = await engine.receive(BY, "q", None, 100, 1_000, None)
        await engine.ack(BY, "q", [one.handle for one in got])
        left -= len(got)
    return round(time.monotonic() - began, 3)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kafka", required=True)
    parser.add_argument("--redis", required=True)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--first-s", type=int, default=600)
    parser.add_argument("--step-s", type=int, default=60)
    parser.add_argument("--looks", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wipe", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(arguments())))
