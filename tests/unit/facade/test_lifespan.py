"""The app's lifespan is the engine's."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message

from facade.http.bounds.bounds import BOUNDS, Bounds
from tests.unit.facade.double import RecordingEngine


async def test_the_engine_starts_before_the_first_request_and_stops_after_the_last(
    app: ASGIApp, engine: RecordingEngine
) -> None:
    events: list[Message] = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    seen: list[tuple[str, list[str]]] = []

    async def receive() -> Message:
        return events.pop(0)

    async def send(message: Message) -> None:
        seen.append((message["type"], [call[0] for call in engine.calls]))

    state: dict[str, Any] = {}
    await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": state}, receive, send)

    assert seen == [("lifespan.startup.complete", ["start"]), ("lifespan.shutdown.complete", ["start", "stop"])]
    assert isinstance(state[BOUNDS], Bounds)  # which each connection gets
