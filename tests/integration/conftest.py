"""Engines on the real Kafka and the real Redis of the session, each test with topics and keys of
its own.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from engine.engine import Engine
from engine.settings import Settings
from engine.shapes import Principal

BY = Principal("tester", admin=True)
MakeEngine = Callable[..., Awaitable[Engine]]


@pytest.fixture
async def make_engine(stack: Any) -> AsyncIterator[MakeEngine]:
    """Starts engines that share one prefix (workers of one service); stops them after the test."""
    prefix = f"t{secrets.token_hex(4)}"
    engines: list[Engine] = []

    async def make(**settings: Any) -> Engine:
        services = {"kafka_bootstrap": stack.bootstrap, "redis_url": stack.redis_url, "topic_prefix": prefix}
        engine = Engine(Settings(**{**services, **settings}))
        engines.append(engine)
        await engine.start()
        return engine

    yield make
    for engine in engines:
        try:
            async with asyncio.timeout(20):
                await engine.stop()
        except TimeoutError:
            for task in asyncio.all_tasks():
                task.print_stack()
            raise AssertionError("an engine did not stop within 20 s") from None


@pytest.fixture
async def engine(make_engine: MakeEngine) -> Engine:
    return await make_engine()
