"""The plane of an engine that runs in the process of a test: it serves nobody, but it drains."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator

from engine.engine import Engine
from engine.journal.outbox import DrainResult
from engine.rules.queue import Queue
from facade.http.sockets.library import NOTHING, NativeFront
from facade.http.sockets.listener import PLANE
from tests.integration.drive import eventually


@contextlib.asynccontextmanager
async def planed(engine: Engine) -> AsyncIterator[None]:
    """Has the plane of an engine on, whose setting `plane` is `auto`."""
    loop, bound = asyncio.get_running_loop(), socket.create_server(("127.0.0.1", 0))
    front = NativeFront(os.dup(bound.fileno()), b"", 10, NOTHING)

    def look() -> None:
        news, more = front.look()
        for kind, items in news:
            assert kind == PLANE
            for item in items:
                engine.plane_news.take(item)
        if more:
            loop.call_soon(look)

    engine.plane.start(front, ())
    assert engine.plane.is_on, engine.plane.why
    loop.add_reader(front.descriptor, look)
    try:
        yield
    finally:
        await engine.plane.stop()
        loop.remove_reader(front.descriptor)
        front.free()
        bound.close()


async def look_at(engine: Engine, queue: Queue, epoch: int) -> DrainResult:
    """Has the plane look into the outbox of a queue's first unit, for an owner of `epoch`; returns
    when it has been able to.
    """
    found: list[DrainResult] = []

    async def is_done() -> bool:
        begun = engine.parts.base.drains.drain(
            engine.parts.base.journal.request(queue.name, queue.units[0], epoch, 0, 0, 0)
        )
        assert begun is not None
        found.append(await begun)
        return not found[-1].is_passed

    await eventually(is_done)
    return found[-1]
