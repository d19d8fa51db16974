"""RocketMQ's own Python client on a `leaseway up` with the RocketMQ port on."""

from __future__ import annotations

import itertools
import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from facade.programs.stack.processes.ports import free_port
from tests.clients import NotFetched
from tests.conformance.rocketmq.client import Rocketmq
from tests.conftest import absent
from tests.services import Up

_numbers = itertools.count(1)
Native = Callable[..., Any]


@pytest.fixture(scope="session")
def rocketmq_up(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two workers; a message dies with its third delivery, and is retried soon."""
    options = ("--rocketmq-port", str(free_port()), "--workers", "2")
    settings = {"LEASEWAY_ROCKETMQ_MAX_ATTEMPTS": "3", "LEASEWAY_ROCKETMQ_RETRIES": "rocketmq"} | {
        "LEASEWAY_TRANSACTION_IMMUNITY_MS": "2000",
        "LEASEWAY_TRANSACTION_INTERVAL_MS": "3000",
    }
    process = Up(tmp_path_factory.mktemp("rocketmq"), *options, environment=settings)
    try:
        process.wait_ready()
        yield process
    finally:
        process.close()


@pytest.fixture(scope="session")
def guarded(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A service that asks for keys."""
    process = Up(tmp_path_factory.mktemp("guarded"), "--rocketmq-port", "0", "--auth", "required")
    try:
        process.wait_ready()
        yield process
    finally:
        process.close()


@pytest.fixture(scope="session")
def endpoints(rocketmq_up: Up) -> str:
    """What clients take as endpoints."""
    found: str = rocketmq_up.run["rocketmq"]
    return found


@pytest.fixture(scope="session")
def process(endpoints: str) -> Iterator[Rocketmq]:
    """The client's process."""
    try:
        client = Rocketmq(endpoints)
    except NotFetched as error:
        absent(str(error))
    yield client
    client.close()


@pytest.fixture
def client(process: Rocketmq) -> Iterator[Rocketmq]:
    """The client; what a test has started ends with it."""
    yield process
    process.close_all()


@pytest.fixture(scope="session")
def native(rocketmq_up: Up) -> Native:
    """The native API: a method, a path and a body."""

    def ask(method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            rocketmq_up.endpoint + path, data, {"content-type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.loads(reply.read() or b"null")

    return ask


@pytest.fixture
def name() -> str:
    """The name of a topic that does not exist, and of its group."""
    return f"rmq_{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def topic(native: Native, name: str) -> str:
    """A new standard queue."""
    native("POST", "/v1/queues", {"name": name, "partitions": 2})
    return name


@pytest.fixture
def ordered(native: Native, name: str) -> str:
    """A new FIFO queue whose groups are spread."""
    native("POST", "/v1/queues", {"name": name, "partitions": 2, "fifo": True, "dedup_scope": "group"})
    return name
