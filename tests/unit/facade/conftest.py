"""The app over a recording engine, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import httpx
import pytest
from starlette.types import ASGIApp

from engine.engine import Engine
from facade.app import create_app
from facade.config import Settings
from tests.unit.facade.double import RecordingEngine


@pytest.fixture
def engine() -> RecordingEngine:
    return RecordingEngine()


@pytest.fixture
def app(engine: RecordingEngine) -> ASGIApp:
    return create_app(Settings(), cast(Engine, engine))


@pytest.fixture
async def client(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app)  # it raises what the app raises, so nothing can hide behind a 500
    async with httpx.AsyncClient(transport=transport, base_url="http://leaseway.localhost") as client:
        yield client
