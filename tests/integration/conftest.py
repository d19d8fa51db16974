"""Engines on the real Kafka and the real Redis of the session: one for the tests of a module, each
with queues of its own, or engines of a test's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.log import Log
from engine.settings import Settings
from engine.shapes import Principal
from runtime.background import Background
from tests.integration.drive import all_wait
from tests.services import Services

BY = Principal("tester", admin=True)
MakeEngine = Callable[..., Awaitable[Engine]]

_numbers = itertools.count(1)


@contextlib.asynccontextmanager
async def _service(stack: Services) -> AsyncIterator[MakeEngine]:
    """Starts engines that share one prefix (workers of one service); stops them at the end."""
    prefix = f"t{secrets.token_hex(4)}"
    engines: list[Engine] = []

    async def make(**settings: Any) -> Engine:
        services = {"kafka_bootstrap": stack.bootstrap, "redis_url": stack.redis_url, "topic_prefix": prefix}
        engine = Engine(Settings(**{**services, **settings}))
        engines.append(engine)
        await engine.start()
        return engine

    try:
        yield make
    finally:
        for engine in engines:
            try:
                async with asyncio.timeout(20):
                    await engine.stop()
            except TimeoutError:
                for task in asyncio.all_tasks():
                    task.print_stack()
                raise AssertionError("an engine did not stop within 20 s") from None
        await _delete_topics(stack.bootstrap, f"{prefix}.")


async def _delete_topics(bootstrap: str, prefix: str) -> None:
    """What Kafka does at each change of its metadata grows with the topics that it has."""
    log = Log(bootstrap, send_timeout_ms=1_000)
    await log.start()
    with contextlib.suppress(LogUnavailable):  # a test may have left it stopped
        await log.delete_topics(await log.topic_names(prefix))
    await log.stop()


@pytest.fixture
async def make_engine(stack: Services) -> AsyncIterator[MakeEngine]:
    """Starts engines that share one prefix (workers of one service); stops them after the test."""
    async with _service(stack) as make:
        yield make


@pytest.fixture(scope="module")
async def module_engine(stack: Services) -> AsyncIterator[Engine]:
    """The engine behind `engine`, which tests ask for."""
    async with _service(stack) as make:
        yield await make()


@pytest.fixture
async def engine(module_engine: Engine) -> AsyncIterator[Engine]:
    """The engine that all tests of a module share; each uses queues of its own (see `queue`).

    A test that leaves a receive waiting, or has a background task fail, fails itself.
    """
    failures = Background.failures
    yield module_engine
    await all_wait(module_engine, 0, within_s=2)
    assert Background.failures == failures, "a background task lost its exception"


@pytest.fixture
async def own_engine(make_engine: MakeEngine) -> Engine:
    """An engine of the test's own, for what the tests after it would feel: Redis is wiped, a part
    of the engine is stopped or replaced or fails, a failpoint is armed, much memory is filled, or
    something is counted over all queues.
    """
    return await make_engine()


@pytest.fixture
def queue() -> str:
    """A name for a queue that no other test uses, nor a name that begins with it and a hyphen."""
    return f"q{next(_numbers)}"
