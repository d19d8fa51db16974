"""A store on the real Redis of the session, with keys of its own for each test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from state.redis.connection import Connection
from state.replies import Window
from state.store import Store
from tests.services import Services


@pytest.fixture
async def connection(stack: Services) -> AsyncIterator[Connection]:
    opened = Connection(stack.redis_url)
    await opened.start()
    yield opened
    await opened.stop()


@pytest.fixture
def store(connection: Connection) -> Store:
    return Store(connection, f"s{secrets.token_hex(3)}", Window(100, 1_000_000))
