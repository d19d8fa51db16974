"""MNS's own Python client on the service of the folder above, and requests by hand."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from tests.clients import NotFetched
from tests.conformance.conftest import Running
from tests.conformance.mns.official import Official
from tests.conformance.mns.raw import Raw
from tests.conftest import absent
from tests.services import Up

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def sdk(up: Up | Running) -> Iterator[Official]:
    """A client of the service that lets everybody in."""
    try:
        client = Official(up.endpoint)
    except NotFetched as error:
        absent(str(error))
    yield client
    client.close()


@pytest.fixture(scope="session")
def raw(up: Up | Running) -> Iterator[Raw]:
    """Requests by hand."""
    client = Raw(up.endpoint)
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    """The name of a queue that does not exist."""
    return f"mns-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def queue(raw: Raw, name: str) -> str:
    """A new queue with the defaults."""
    raw.done("PUT", f"/queues/{name}", "<Queue/>", status=201)
    return name
