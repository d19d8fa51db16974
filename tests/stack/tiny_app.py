"""A facade that can't fail: 200 to everything. The stack's tests start it in place of the real one.

It must not need Kafka or Redis.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from facade.config import Settings

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def create_app(settings: Settings) -> Callable[[dict[str, Any], Receive, Send], Awaitable[None]]:
    """As `facade.app.create_app`; the body of each answer is the worker's pid and its secret's
    length.
    """
    body = f"{os.getpid()} {len(settings.secret)}".encode()

    async def same() -> bytes:
        return body

    return answering(same)


def answering(body: Callable[[], Awaitable[bytes]]) -> Callable[[dict[str, Any], Receive, Send], Awaitable[None]]:
    """A facade that answers each request with a body that is made for it."""

    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        told = await body()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(told))]})
        await send({"type": "http.response.body", "body": told})

    return app
