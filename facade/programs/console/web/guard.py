"""What every answer passes: the name that was asked for, and headers that keep browsers strict."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from facade.programs.console.order import is_loopback
from facade.programs.console.web.visit import Site

SITE: Final = "leaseway.site"
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_MISDIRECTED: Final = b"The console is not reached under this name: --hosts has those under which it is.\n"


class Guard:
    """ASGI app around another, whose requests get `site`. It is reached by names of this machine
    and of the order alone: a page of another site can have its own name point here (DNS
    rebinding); its browser says so in Host.
    """

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site
        self._hosts = frozenset(host.lower() for host in (site.order.host, *site.order.hosts))

    def close(self) -> None:
        """Closes the connections to the service."""
        self._site.calls.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def strict(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        if self._allows(name_of(dict(scope["headers"]).get(b"host", b"").decode("latin-1"))):
            await self._app({**scope, SITE: self._site}, receive, strict)
            return
        head = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(_MISDIRECTED))]
        await strict({"type": "http.response.start", "status": 421, "headers": head})
        await strict({"type": "http.response.body", "body": _MISDIRECTED})

    def _allows(self, name: str) -> bool:
        return is_loopback(name) or name in self._hosts


def name_of(host: str) -> str:
    """A Host without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_own(request: Request) -> bool:
    """Whether a request that changes something comes from a page of ours, as its browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
