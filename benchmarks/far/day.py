"""A day of far delays: messages are sent by the true clock, then the clock is moved.

The clock of the engine and of the scripts is moved; that of Kafka, and the leases of units, are
not. Most of the day passes in steps: after each, all that is due is received and acknowledged. In
between the clock runs at its own pace, and consumers wait as any do: how late messages are is
measured there, of every message that becomes due meanwhile.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import dataclasses
import random
import sys
import time
from collections.abc import AsyncIterator, Callable

import redis

from benchmarks.far.outcome import Look
from engine.engine import Engine
from engine.errors import EngineError
from engine.shapes import Delivery, Principal, SendEntry
from runtime.background import Background
from runtime.cancel import cancel_all
from state.errors import StateError
from tests.clock import ScriptClock

BY = Principal("bench", admin=True)
QUEUE = "q"
BATCH = 100
SIDE_BY_SIDE = 20
CONSUMERS = 4
# How long what becomes due in a look is waited for before it counts as missed; and what a step of
# the clock makes due, which a busy machine may take minutes for.
PATIENCE_S, STEP_PATIENCE_S = 60.0, 600.0
SAMPLE_S = 0.25
HOUR_MS = 3_600_000


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many messages, over how long; in which steps the clock is moved. `looks` times in a day
    it runs at its own pace for `look_s`; each eighth time, and when Redis has been emptied, for
    `long_look_s`: longer than the minute by which messages are brought before they are due.
    """

    messages: int = 1_000_000
    hours: float = 24.0
    first_s: int = 600
    step_s: int = 3_600
    looks: int = 24
    look_s: float = 8.0
    long_look_s: float = 75.0
    wipe: bool = False
    seed: int = 1


class Day:
    """Who is due when, and what has come. `wipe` empties Redis."""

    def __init__(
        self, plan: Plan, engine: Engine, clock: ScriptClock, store: redis.Redis, wipe: Callable[[], object]
    ) -> None:
        self._plan, self._engine, self._clock, self._store, self._wipe = plan, engine, clock, store, wipe
        self._random = random.Random(plan.seed)
        self._background = Background()
        self._due: dict[str, int] = {}
        self._order: list[int] = []
        self._given_up = 0
        self._began_ms = clock.now_ms()
        self.came: dict[str, int] = {}
        self.ordinary = self.early = self.twice = 0
        self.looks: list[Look] = []
        # The most bytes that Redis used in each hundredth of an hour; before 0, messages are sent.
        self.memory: dict[float, int] = {}
        self.wiped_at: float | None = None
        self.send_s = self.ordinary_s = 0.0

    @property
    def _hour(self) -> float:
        return round((self._clock.now_ms() - self._began_ms) / HOUR_MS, 2)

    async def run(self) -> None:
        """The whole day."""
        async with self._sampled():
            await self._send()
            self._began_ms = self._clock.now_ms()
            steps = int(self._plan.hours * 3600 / self._plan.step_s) + 2
            every = max(1, steps // self._plan.looks)
            for step in range(steps):
                self._clock.set(self._began_ms + step * self._plan.step_s * 1000)
                wipes = self._plan.wipe and step == steps // 2
                await self._take_due()
                if wipes:
                    await self._empty_redis()
                if (step % every == every // 2 or wipes) and step * self._plan.step_s < self._plan.hours * 3600:
                    await self._look(wipes or len(self.looks) % 8 == 4, wipes)
                self._say(step, steps)
            self._given_up = 0
            await self._take_due()
            for _ in range(5):  # nothing comes that has come
                await self._receive(100)

    def _say(self, step: int, steps: int) -> None:
        most = max(self.memory.values(), default=0) / 2**20
        print(
            f"step {step} of {steps}: {len(self.came)} of {len(self._due)} came, Redis {most:.1f} MiB at most",
            file=sys.stderr,
        )

    @contextlib.asynccontextmanager
    async def _sampled(self) -> AsyncIterator[None]:
        async def sample() -> None:
            while True:
                with contextlib.suppress(redis.RedisError):
                    used, hour = int(self._store.info("memory")["used_memory"]), self._hour
                    self.memory[hour] = max(used, self.memory.get(hour, 0))
                await asyncio.sleep(SAMPLE_S)

        task = self._background.keep(sample, "sample")
        try:
            yield
        finally:
            await cancel_all(task)

    async def _send(self) -> None:
        """Sends all, and then measures how long a hundred ordinary messages behind them take."""
        began, left = time.monotonic(), self._plan.messages
        self._began_ms += HOUR_MS  # the day comes afterwards

        async def some() -> None:
            nonlocal left
            while left > 0:
                count = min(BATCH, left)
                left -= count
                first_ms, last_ms = self._plan.first_s * 1000, int(self._plan.hours * HOUR_MS)
                delays = [self._random.randrange(first_ms, last_ms) for _ in range(count)]
                sent = await self._engine.messages.send(
                    BY, QUEUE, [SendEntry(b"x" * 100, delay_ms=delay) for delay in delays]
                )
                self._due.update((one.id, one.sent_at_ms + delay) for one, delay in zip(sent, delays, strict=True))

        await asyncio.gather(*(some() for _ in range(SIDE_BY_SIDE)))
        self._order = sorted(self._due.values())
        self.send_s = round(time.monotonic() - began, 1)
        began = time.monotonic()
        await self._engine.messages.send(BY, QUEUE, [SendEntry(b"ordinary") for _ in range(100)])
        while self.ordinary < 100:
            await self._receive(1_000)
        self.ordinary_s = round(time.monotonic() - began, 3)
        print(f"sent in {self.send_s} s; 100 ordinary ones behind took {self.ordinary_s} s", file=sys.stderr)

    async def _receive(self, wait_ms: int) -> None:
        try:
            got = await self._engine.messages.receive(BY, QUEUE, None, 100, wait_ms, None)
            self._note(got)
            if got:
                await self._engine.messages.ack(BY, QUEUE, [one.handle for one in got])
        except (EngineError, StateError):  # Redis was emptied
            await asyncio.sleep(0.05)

    def _note(self, got: list[Delivery]) -> None:
        now = self._clock.now_ms()
        for one in got:
            due = self._due.get(one.id)
            if due is None:
                self.ordinary += 1
                continue
            self.early += now < due
            self.twice += one.id in self.came
            self.came.setdefault(one.id, now)

    async def _until_came(self, due_ms: int, patience_s: float) -> int:
        """Consumers wait until all that is due at a time has come, or for so long. How many are
        missing, beside those that were given up.
        """
        wanted, end = bisect.bisect_right(self._order, due_ms) - self._given_up, time.monotonic() + patience_s

        async def consume() -> None:
            while len(self.came) < wanted and time.monotonic() < end:
                await self._receive(500)

        await asyncio.gather(*(consume() for _ in range(CONSUMERS)))
        return max(0, wanted - len(self.came))

    async def _take_due(self) -> None:
        """Receives all that is due. What comes so was late by the step, and is not measured; what
        does not come is not waited for again, until the end.
        """
        self._given_up += await self._until_came(self._clock.now_ms(), STEP_PATIENCE_S)

    async def _look(self, is_long: bool, is_after_wipe: bool) -> None:
        """The clock runs at its own pace."""
        seconds, hour = self._plan.long_look_s if is_long else self._plan.look_s, self._hour
        since = self._clock.now_ms()
        until, end = since + int(seconds * 1000), time.monotonic() + seconds

        async def consume() -> None:
            while time.monotonic() < end:
                await self._receive(1_000)

        await asyncio.gather(*(consume() for _ in range(CONSUMERS)))
        await self._until_came(until, PATIENCE_S)
        due = [(one, at) for one, at in self._due.items() if since < at <= until]
        late = sorted(self.came[one] - at for one, at in due if one in self.came)
        self.looks.append(Look(hour, seconds, late, len(due) - len(late), is_after_wipe))

    async def _empty_redis(self) -> None:
        """When the journal has all acks, for those of the last moment would be forgotten."""
        (unit,) = self._engine.catalog.queues[QUEUE].units
        while await self._engine.store.upkeep.undrained(unit):  # noqa: ASYNC110  # Redis tells nobody
            await asyncio.sleep(0.05)
        self.wiped_at = self._hour
        await asyncio.to_thread(self._wipe)
