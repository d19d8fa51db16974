"""Two workers and two lives of Redis: which one may be called, who names it, and when.

`python -m tests.two_redis` has the same with traffic and a book.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import EngineError, LogUnavailable, Rebuilding
from engine.recovery.redis_lives import LIFE_S
from facade.programs.stack.processes.ports import free_port
from schemas.records.settings import QueueSettings
from state.keys import Unit
from tests.faults.proxy import Proxy
from tests.integration.conftest import BY, MakeEngine
from tests.integration.drive import ack, eventually, receive, send
from tests.two_redis.stage import Server

T = TypeVar("T")


class Pair:
    """A primary, its replica, two workers, and a proxy before each of them."""

    def __init__(self, a: Server, b: Server, proxies: list[Proxy], engines: list[Engine]) -> None:
        self.a, self.b = a, b
        self.proxies = proxies
        self.engines = engines

    async def switch(self, worker: int, server: Server) -> None:
        await self.proxies[worker].switch(server.port)

    def serves(self, worker: int) -> bool:
        connection = self.engines[worker].parts.base.connection
        return connection.connected and connection.fence.admits(connection.life)

    async def until_serves(self, *workers: int, generation: int, within_s: float = 15) -> None:
        async def serve() -> bool:
            return self.generation >= generation and all(self.serves(worker) for worker in workers)

        await eventually(serve, within_s)

    @property
    def generation(self) -> int:
        return max(engine.catalog.generation for engine in self.engines)


@pytest.fixture
async def pair(tmp_path: Path, make_engine: MakeEngine) -> AsyncIterator[Pair]:
    a, b = await asyncio.gather(*(asyncio.to_thread(Server, tmp_path / name) for name in "ab"))
    proxies = [Proxy(free_port(), a.port) for _ in range(2)]
    try:
        await asyncio.to_thread(b.follow, a)
        for proxy in proxies:
            await proxy.start()
        engines = [await make_engine(redis_url=f"redis://127.0.0.1:{proxy.port}/0") for proxy in proxies]
        await engines[0].queues.create_queue(BY, "q", QueueSettings(durable_acks=True))
        yield Pair(a, b, proxies, engines)
    finally:
        for proxy in proxies:
            await proxy.stop()
        a.kill()
        b.kill()


async def test_an_old_primary_is_named_again_when_nobody_has_the_named_one(pair: Pair) -> None:
    pair.b.lead()
    for worker in (0, 1):
        await pair.switch(worker, pair.b)
    await pair.until_serves(0, 1, generation=2)
    sent = await send(pair.engines[0], "q", "one", "two")
    got = await _served(lambda: receive(pair.engines[1], "q", wait_ms=2000))
    await _served(lambda: ack(pair.engines[1], "q", got))
    assert pair.generation == 2
    await pair.switch(0, pair.a)
    # The other worker has the named one, so the first must not serve from the old primary.
    await asyncio.sleep(LIFE_S * 2)
    assert not pair.serves(0) and pair.serves(1)
    assert pair.generation == 2
    await pair.switch(1, pair.a)
    await pair.until_serves(0, 1, generation=3)
    assert pair.generation == 3
    assert pair.engines[0].catalog.life.adopt_from == 3  # it has old memory
    rest = [d.message.body async for d in _all(pair.engines[0], len(sent) - len(got))]
    assert len(rest) == len(sent) - len(got)


async def _served(call: Callable[[], Awaitable[T]]) -> T:
    """Repeats what a rebuild refuses, as a client does: the second worker may rebuild what the
    first is rebuilding.
    """
    async with asyncio.timeout(15):
        while True:
            with contextlib.suppress(Rebuilding):
                return await call()


async def _all(engine: Engine, expected: int) -> AsyncIterator:  # type: ignore[type-arg]
    for _ in range(5):
        with contextlib.suppress(EngineError):
            for one in await receive(engine, "q", wait_ms=300):
                yield one


async def test_a_split_names_one_life_and_no_other(pair: Pair) -> None:
    pair.b.lead()
    await pair.switch(0, pair.b)
    await pair.until_serves(0, generation=2)
    assert not pair.serves(1)
    await asyncio.sleep(LIFE_S * 3)
    assert pair.serves(0) and not pair.serves(1)
    assert pair.generation == 2
    # Sends need no Redis.
    assert len(await send(pair.engines[1], "q", "by the one who has none")) == 1
    assert (await pair.engines[1].ready())["redis"] != "ok"


async def test_wake_ups_come_from_the_server_in_use(pair: Pair) -> None:
    """The subscription is a connection of its own: one that a proxy does not cut would stay."""
    channel = f"*{pair.engines[0].settings.topic_prefix}*"
    pair.b.lead()
    for worker, engine in enumerate(pair.engines):
        # Only the connection of the calls is cut.
        pair.proxies[worker].target = pair.b.port
        engine.parts.base.connection.leave("by the test")
    await pair.until_serves(0, 1, generation=2)

    async def heard() -> bool:
        return len(await asyncio.to_thread(pair.b.client.pubsub_channels, channel)) > 0

    await eventually(heard)


async def test_a_durable_ack_is_not_answered_when_another_life_was_named(pair: Pair) -> None:
    """The journal has the entry, and the control topic a newer life: it may lie behind the entry
    that begins that.
    """
    first, other = pair.engines
    queue = first.catalog.queues["q"]
    await send(first, "q", "one")
    got = await receive(first, "q", wait_ms=2000)
    await ack(first, "q", got)
    partitions = [(await first.store.upkeep.last_seq(unit), unit.partition) for unit in queue.units]
    seq, partition = max(partitions)
    journaled, store, named = first.parts.units.owner.journaled, first.store, other.catalog.life
    drained_seq = store.upkeep.drained_seq

    async def drained_late(unit: Unit) -> tuple[int, int]:
        found = await drained_seq(unit)
        await other.catalog.name_life(
            msgspec.structs.replace(named, generation=named.generation + 1, redis_run_id="another")
        )
        return found

    until = asyncio.get_running_loop().time() + 5
    await journaled.wait(queue, partition, seq, until)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journaled, "_upkeep", SimpleNamespace(drained_seq=drained_late, units=store.units))
        with pytest.raises(LogUnavailable, match="another Redis came into use"):
            await journaled.wait(queue, partition, seq, until)
