"""A store on the real Redis of the session, with keys of its own for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from facade.programs.stack import redis_server
from facade.programs.stack.processes.child import Child
from facade.programs.stack.processes.ports import free_port
from state.redis.connection import Connection
from state.replies import Window
from state.store import Store
from tests.services import Services, loop_in_thread
from tests.state.redis_link import OwnRedis


@pytest.fixture
async def connection(stack: Services) -> AsyncIterator[Connection]:
    opened = Connection(stack.redis_url)
    await opened.start()
    yield opened
    await opened.stop()


@pytest.fixture
def store(connection: Connection) -> Store:
    return Store(connection, f"s{secrets.token_hex(3)}", Window(100, 1_000_000))


@pytest.fixture(scope="module")
def own_redis(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRedis]:
    """A redis-server without Kafka, for this module alone."""
    folder, port = tmp_path_factory.mktemp("r"), free_port()
    (folder / "logs").mkdir()
    socket = redis_server.socket_path(folder)
    assert socket is not None
    with loop_in_thread() as run:
        child = Child(redis_server.program(folder, socket, dict(os.environ), port), lambda: None, lambda text: None)
        run(child.start())
        made = OwnRedis(child, port, str(socket))
        yield made
        made.client.close()
        run(child.stop())
