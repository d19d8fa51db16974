"""A worker with a library in place of a part of ours does what the worker does: else a pair of
them measures nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
from starlette.types import ASGIApp, Message

import engine.plane.service
import engine.receive.parts
import engine.receive.waits.wait_lists
import engine.rules.placement
import engine.wiring.foundation
import facade.programs.stack.worker
import schemas.wire
import state.redis.script_caller
from benchmarks import alternatives
from facade.app import create_app
from facade.config import Settings
from tests.services import Services


@pytest.fixture
async def restored() -> AsyncIterator[None]:
    """The parts as they were, after an alternative has put itself in their places."""
    modules = (
        engine.plane.service, engine.receive.waits.wait_lists, engine.rules.placement, engine.wiring.foundation,
        engine.receive.parts,
        facade.programs.stack.worker, schemas.wire, state.redis.script_caller,
    )  # fmt: skip
    before = [dict(vars(module)) for module in modules]
    yield
    for module, names in zip(modules, before, strict=True):
        vars(module).update(names)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    "make",
    [create_app, alternatives.library_avro, alternatives.redis_py, alternatives.any_order, alternatives.whole_scripts],
)
async def test_a_message_goes_its_way(make: Callable[[Settings], ASGIApp], stack: Services, queue: str) -> None:
    app = make(Settings(kafka_bootstrap=stack.bootstrap, redis_url=stack.redis_url, topic_prefix=f"alt{make.__name__}"))
    async with (
        running(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client,
    ):
        made = await client.post("/v1/queues", json={"name": queue})
        assert made.status_code == 201, made.text
        sent = await client.post(f"/v1/queues/{queue}/messages", json={"messages": [{"body": "m"}, {"body": "n"}]})
        assert sent.status_code == 200, sent.text
        received = await client.post(f"/v1/queues/{queue}/receive", json={"max": 10})
        assert sorted(one["body"] for one in received.json()["messages"]) == ["m", "n"]


@contextlib.asynccontextmanager
async def running(app: ASGIApp) -> AsyncIterator[None]:
    """The lifespan of an app, as a server runs it."""
    started, stopping = asyncio.Event(), asyncio.Event()

    async def receive() -> Message:
        if not started.is_set():
            return {"type": "lifespan.startup"}
        await stopping.wait()
        return {"type": "lifespan.shutdown"}

    async def send(message: Message) -> None:
        assert message["type"] in ("lifespan.startup.complete", "lifespan.shutdown.complete"), message
        started.set()

    async def live() -> None:
        await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(60):
        tasks.create_task(live())
        await started.wait()
        try:
            yield
        finally:
            stopping.set()
