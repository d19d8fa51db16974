"""Each case runs over each client, all of them on one service."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Final

import pytest

from tests.conformance.cases.client import Got, QueueClient
from tests.conformance.cases.emq import EmqClient, EmqCompactClient, EmqJsonClient
from tests.conformance.cases.mns import MnsClient
from tests.conformance.cases.native import NativeClient
from tests.conformance.cases.sqs import JsonClient, QueryClient
from tests.conformance.conftest import Running
from tests.services import Up

CLIENTS: Final = (NativeClient, JsonClient, QueryClient, EmqClient, EmqCompactClient, EmqJsonClient, MnsClient)
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def clients(up: Up | Running) -> Iterator[dict[str, QueueClient]]:
    """The clients by name."""
    made: list[QueueClient] = [make(up.endpoint) for make in CLIENTS]
    yield {client.name: client for client in made}
    for client in made:
        client.close()


@pytest.fixture(params=[make.name for make in CLIENTS])
def client(clients: dict[str, QueueClient], request: pytest.FixtureRequest) -> QueueClient:
    """Each client in turn."""
    return clients[request.param]


@pytest.fixture
def name() -> str:
    """The name of a queue that does not exist."""
    return f"case-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def queue(client: QueueClient, name: str) -> str:
    """A new queue with the defaults."""
    client.create(name)
    return name


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A case that needs what a dialect does not have is not run with its client."""
    lacks = {make.name: make.lacks for make in CLIENTS}
    left_out = [item for item in items if _needs(item) & lacks.get(_client_of(item), frozenset())]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _needs(item: pytest.Item) -> set[str]:
    return {mark.args[0] for mark in item.iter_markers("needs")}


def _client_of(item: pytest.Item) -> str:
    call = getattr(item, "callspec", None)
    return str(call.params.get("client", "")) if call else ""


def receive_all(
    client: QueueClient, queue: str, count: int, *, tag: str | None = None, lease_s: int | None = None
) -> list[Got]:
    """Receives until `count` messages are there; fewer when a wait of 2 s brings nothing."""
    found: list[Got] = []
    while len(found) < count and (more := client.receive(queue, tag=tag, wait_s=2, lease_s=lease_s)):
        found += more
    return found


def bodies(messages: list[Got]) -> list[str]:
    return [message.body for message in messages]
