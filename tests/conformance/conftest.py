"""A real `leaseway up`, one for all files of this folder; each test has a queue of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from tests.services import Up


class Running(Struct):
    """A service that somebody else has started."""

    endpoint: str
    log: Path | None = None  # what it writes, if we have started it


@pytest.fixture(scope="session")
def up(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up | Running]:
    """The service."""
    if "SQS_ENDPOINT" in os.environ:
        yield Running(os.environ["SQS_ENDPOINT"])
        return
    process = Up(tmp_path_factory.mktemp("up"))
    try:
        process.wait_ready()
        yield process
    finally:
        process.close()
