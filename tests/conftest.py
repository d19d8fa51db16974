"""Fixtures of all tests: the real broker and redis-server, and the real `leaseway up`.

An absent service means skip on a laptop and fail in CI (CI=true): one rule, here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from facade.http.sockets.library import NoLibraryError, loaded
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.programs import broker_class_path, find_java, find_redis_server
from tests.clock import Clock
from tests.services import Services, Up, running_services

StartUp = Callable[..., Up]


def absent(what: str) -> NoReturn:
    """A service is not there: the test is skipped on a laptop and fails in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"absent in CI: {what}", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def library() -> None:
    """The native front is there. Without it a test is skipped, but fails where it can be built
    (LW_FRONT_REQUIRED, ci.yml): the fuzzing would be gone without a word.
    """
    try:
        loaded()
    except NoLibraryError as error:
        if os.environ.get("LW_FRONT_REQUIRED"):
            pytest.fail(f"LW_FRONT_REQUIRED: {error}", pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The engine's clock, to be moved."""
    return Clock(monkeypatch)


@pytest.fixture(scope="session")
def programs() -> None:
    """Java, redis-server and the jars are there."""
    try:
        find_java()
        find_redis_server()
        broker_class_path()
    except StackError as error:
        absent(str(error))


@pytest.fixture(scope="session")
def stack(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """One real Kafka and one real Redis for the whole session, without a facade. Use your own topic
    prefix.
    """
    with running_services(tmp_path_factory.mktemp("stack")) as services:
        yield services


def _factory(folders: Callable[[], Path]) -> Iterator[StartUp]:
    started: list[Up] = []

    def start(
        *options: str, data: Path | None = None, environment: dict[str, str] | None = None, port: int | None = None
    ) -> Up:
        up = Up(data or folders(), *options, environment=environment, port=port)
        started.append(up)
        return up

    yield start
    for up in reversed(started):
        up.close()


@pytest.fixture
def leaseway_up(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartUp]:
    """Starts the real `leaseway up` with options and returns it at once (see Up.wait_ready); ended
    after the test.
    """
    yield from _factory(lambda: tmp_path_factory.mktemp("up"))


@pytest.fixture(scope="module")
def leaseway_up_module(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartUp]:
    """As `leaseway_up`, but what it started lives until the module's last test."""
    yield from _factory(lambda: tmp_path_factory.mktemp("up"))
