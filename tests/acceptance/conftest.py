"""Fixtures of the acceptance tests: one `leaseway up` per module, and a client of its native
API.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.acceptance.traffic import Client
from tests.conftest import StartUp
from tests.services import Up


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    """The service with its defaults. A module that needs another has its own fixture of this
    name.
    """
    started = leaseway_up_module()
    started.wait_ready()
    return started


@pytest.fixture
def client(up: Up) -> Iterator[Client]:
    with contextlib.closing(Client(up.endpoint)) as opened:
        yield opened
