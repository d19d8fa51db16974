"""Fixtures: a service of canned answers, and the program with an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from facade.programs.connect.profiles import ENDPOINT, KEY_ID, KEY_SECRET, PROFILE
from tests.unit.cli.service import Cli, Service, canned


@pytest.fixture(scope="session")
def canned_service() -> Iterator[Service]:
    with canned() as service:
        yield service


@pytest.fixture
def service(canned_service: Service) -> Service:
    canned_service.answers.clear()
    canned_service.asked.clear()
    canned_service.headers.clear()
    canned_service.ahead_s = 0.0
    return canned_service


@pytest.fixture
def cli(service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    for variable in (KEY_ID, KEY_SECRET, PROFILE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(ENDPOINT, service.endpoint)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return Cli(service, capsys)
