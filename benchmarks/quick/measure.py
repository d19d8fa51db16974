"""Measures each hot verb in a worker that runs in this process, over a real Kafka and a real
Redis.
"""

from __future__ import annotations

import asyncio
import gc
import secrets
import tracemalloc
from collections.abc import Awaitable, Callable

import msgspec
import redis
from starlette.types import ASGIApp

from benchmarks.quick.client import DIALECTS, QUEUE, Dialect, ask
from benchmarks.quick.counter import Counter, Counts
from engine.engine import Engine
from engine.shapes import Principal
from facade.app import create_app
from facade.config import Settings
from schemas.records.settings import QueueSettings

WARM_UP = 150
# No request is served with less than it needs; some meet work that the worker does at intervals, on
# a busy machine nearly all.
TIMES = 41
BODY = "x" * 1024
LARGE = "x" * 200_000
# What a verb leaves to be done after its answer (a wake-up that is heard) is its own; what workers
# do at intervals is not.
SETTLE_S = 0.004

Step = Callable[[], Awaitable[bytes]]


async def measured(bootstrap: str, redis_url: str) -> dict[str, dict[str, float]]:
    """Verb -> figure -> number; the least of TIMES requests after WARM_UP."""
    settings = Settings(kafka_bootstrap=bootstrap, redis_url=redis_url, topic_prefix=f"b{secrets.token_hex(4)}")
    engine = Engine(settings)
    app = create_app(settings, engine)
    await engine.start()
    try:
        return await _all(engine, app, _Watch(redis_url))
    finally:
        await engine.stop()


async def _all(engine: Engine, app: ASGIApp, watch: _Watch) -> dict[str, dict[str, float]]:
    await engine.queues.create_queue(Principal("budget", admin=True), QUEUE, QueueSettings())
    found: dict[str, dict[str, float]] = {}
    for dialect in DIALECTS:
        verbs = _Verbs(app, dialect, watch)
        for _ in range(WARM_UP // 10):
            await verbs.woken(None)
        for many in (1, 10):
            await verbs.cycles(WARM_UP, many, None)
            await verbs.cycles(TIMES, many, found)
        for _ in range(TIMES):
            await verbs.woken(found)
    # Last, and never stopped: to stop it while other threads allocate may end the interpreter.
    tracemalloc.start()
    for dialect in DIALECTS:
        await _held(_Verbs(app, dialect, watch), found)
    return found


class _Watch:
    """Counts one step: by the interpreter's trace, and by what Redis says it has run."""

    def __init__(self, redis_url: str) -> None:
        self._counter = Counter()
        self._redis = redis.Redis.from_url(redis_url)

    def _commands(self) -> int:
        stats = self._redis.info("commandstats")
        assert isinstance(stats, dict)
        return sum(row["calls"] for name, row in stats.items() if name != "cmdstat_info")

    async def count(self, step: Step) -> tuple[bytes, Counts]:
        before = self._commands()
        self._counter.begin()
        try:
            answer = await step()
            await asyncio.sleep(SETTLE_S)
        finally:
            counts = self._counter.end()
        counts.redis_inside = self._commands() - before
        return answer, counts


class _Verbs:
    """The hot verbs of one dialect; with `into` they are counted, without it they warm up."""

    def __init__(self, app: ASGIApp, dialect: Dialect, watch: _Watch) -> None:
        self.app = app
        self.dialect = dialect
        self._watch = watch
        self._rows: dict[str, list[Counts]] = {}

    async def _do(self, verb: str, step: Step, into: dict[str, dict[str, float]] | None) -> bytes:
        if into is None:
            return await step()
        answer, counts = await self._watch.count(step)
        name = f"{self.dialect.name} {verb}"
        rows = self._rows.setdefault(name, [])
        rows.append(counts)
        into[name] = {field: min(getattr(row, field) for row in rows) for field in msgspec.structs.asdict(counts)}
        return answer

    async def cycles(self, times: int, many: int, into: dict[str, dict[str, float]] | None) -> None:
        """`times` full cycles of `many` messages: send, receive, ack."""
        d = self.dialect
        for _ in range(times):
            await self._do(f"send {many}", lambda: ask(self.app, d.send([BODY] * many)), into)
            answer = await self._do(f"receive {many}", lambda: ask(self.app, d.receive(many, 0)), into)
            handles = d.handles(answer)
            assert len(handles) == many, f"{len(handles)} of {many} messages came"
            await self._do(
                f"ack {many}",
                lambda handles=handles: ask(self.app, d.ack(handles)),  # type: ignore[misc]
                into,
            )

    async def woken(self, into: dict[str, dict[str, float]] | None) -> None:
        """A receive that waits, and the send that wakes it: counted together, from the send on."""
        d = self.dialect
        waiting = asyncio.create_task(ask(self.app, d.receive(1, 5)))
        await asyncio.sleep(0.03)

        async def both() -> bytes:
            await ask(self.app, d.send([BODY]))
            return await waiting

        handles = d.handles(await self._do("send 1, waking a receive", both, into))
        await ask(self.app, d.ack(handles))


async def _held(verbs: _Verbs, found: dict[str, dict[str, float]]) -> None:
    """How many bytes Python holds at once for each byte of a large body: what is copied and not yet
    dropped.
    """
    d = verbs.dialect

    async def peak(request: tuple[list[tuple[bytes, bytes]], str, bytes]) -> tuple[bytes, float]:
        gc.collect()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        answer = await ask(verbs.app, request)
        return answer, round((tracemalloc.get_traced_memory()[1] - before) / len(LARGE), 1)

    sent, received = [], []
    for _ in range(5):
        sent.append((await peak(d.send([LARGE])))[1])
        answer, held = await peak(d.receive(1, 0))
        received.append(held)
        await ask(verbs.app, d.ack(d.handles(answer)))
    # The least: what the worker does at intervals holds something too.
    found[f"{d.name} send 1"]["bytes_held_per_body_byte"] = min(sent)
    found[f"{d.name} receive 1"]["bytes_held_per_body_byte"] = min(received)
