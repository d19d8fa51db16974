"""EMQ's own Python client on the service of the folder above."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.clients import NotFetched
from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Galaxy
from tests.conftest import absent
from tests.services import Up

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def galaxy(up: Up | Running) -> Iterator[Galaxy]:
    """A client of the service that lets everybody in."""
    try:
        client = Galaxy(up.endpoint)
    except NotFetched as error:
        absent(str(error))
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    """The short name of a queue that does not exist."""
    return f"emq_{os.getpid()}_{next(_numbers)}"


@pytest.fixture
def queue(galaxy: Galaxy, name: str) -> str:
    """The full name of a new queue with the defaults."""
    made: str = galaxy.call("createQueue", queueName=name)["queueName"]
    return made
