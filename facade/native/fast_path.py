"""The bare path: hot verbs are found by splitting the path by hand; everything else goes on to the
FastAPI app.

A FastAPI route costs about 70 us a request more than this. The same verbs are routes of that app
too (for 405 and for proxies that mount us under a prefix), with the same handlers. This module must
not know what a verb does.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from facade.http.asgi import reply, whole_of
from facade.http.handler import GONE, Handler

_PREFIX = "/v1/queues/"


class HotPath:
    """ASGI app: POST /v1/queues/{queue}/{verb} to the handler of `verb`, all else to `rest`."""

    def __init__(self, handlers: Mapping[str, Handler], rest: ASGIApp) -> None:
        self._handlers = dict(handlers)
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            path: str = scope["path"]
            if path.startswith(_PREFIX):
                queue, _, verb = path[len(_PREFIX) :].partition("/")
                handler = self._handlers.get(verb)
                if handler is not None and queue:
                    whole = whole_of(scope)
                    response = await handler.respond(scope, receive, {"queue": queue})
                    if response is not GONE:
                        await reply(whole, send, response)
                    return
        await self._rest(scope, receive, send)
