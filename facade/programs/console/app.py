"""The app of the console: an order in, ASGI out."""

from __future__ import annotations

from typing import Final

from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from facade.programs.console.order import Order
from facade.programs.console.routes import (
    access,
    definitions,
    messages,
    overview,
    queue,
    queues,
    sign_in,
    tags,
    tasks,
    watching,
)
from facade.programs.console.web.calls import Calls
from facade.programs.console.web.guard import Guard
from facade.programs.console.web.pages import Pages
from facade.programs.console.web.reports import Reports
from facade.programs.console.web.sessions import Sessions
from facade.programs.console.web.static import Static
from facade.programs.console.web.visit import Site

_LEAST_PACKED: Final = 1000


async def _live(request: Request) -> Response:
    """Whether this process answers."""
    return Response("ok\n", media_type="text/plain")


def create_app(order: Order) -> Guard:
    """The app that a server runs."""
    static = Static()
    pages = Pages(static)

    async def not_found(request: Request, error: Exception) -> Response:
        text = pages.render("lost.html", me=None, here=request.url.path, csrf="", problem="", done="")
        return Response(text, 404, media_type="text/html")

    app = Starlette(
        routes=[
            *overview.ROUTES,
            *queues.ROUTES,
            *queue.ROUTES,
            *tags.ROUTES,
            *messages.ROUTES,
            *tasks.ROUTES,
            *access.ROUTES,
            *definitions.ROUTES,
            *watching.ROUTES,
            *sign_in.ROUTES,
            Route("/static/{name}", static.serve, methods=["GET"]),
            Route("/live", _live, methods=["GET"]),
        ],
        exception_handlers={404: not_found},
    )
    calls, sessions = Calls(order.endpoint, order.ca_file, order.timeout_s), Sessions(order.key, order.idle_s)
    site = Site(order, calls, sessions, pages, Reports(order.reports))
    app.add_middleware(GZipMiddleware, minimum_size=_LEAST_PACKED, compresslevel=5)
    return Guard(app, site)
