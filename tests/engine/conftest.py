"""A Redis for all tests of this folder, and a room on it for each."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from facade.programs.stack import redis_server
from facade.programs.stack.processes.child import Child
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.ports import free_port
from facade.programs.stack.processes.programs import find_redis_server
from runtime.background import Background
from state.redis.connection import Connection
from tests.conftest import absent
from tests.engine.room import Hand, Room
from tests.services import loop_in_thread


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A redis-server, and no Kafka."""
    try:
        find_redis_server()
    except StackError as error:
        absent(str(error))
    folder, port = tmp_path_factory.mktemp("r"), free_port()
    (folder / "logs").mkdir()
    socket = redis_server.socket_path(folder)
    assert socket is not None
    with loop_in_thread() as run:
        child = Child(redis_server.program(folder, socket, dict(os.environ), port), lambda: None, lambda text: None)
        run(child.start())
        yield f"redis://127.0.0.1:{port}/0"
        run(child.stop())


@pytest.fixture
async def connection(redis_url: str) -> AsyncIterator[Connection]:
    """A connection that scripts are called by."""
    opened = Connection(redis_url)
    await opened.start()
    yield opened
    await opened.stop()


@pytest.fixture
async def hand(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Hand:
    """The clock of the loop and that of the service, which stand still."""
    return Hand(connection, monkeypatch)


@pytest.fixture
async def room(connection: Connection, hand: Hand) -> AsyncIterator[Room]:
    """A queue with two partitions, of which nobody has received anything."""
    failures = Background.failures
    made = Room(connection, hand)
    await made.open()
    yield made
    await made.close()
    assert Background.failures == failures, "a background task lost its exception"
