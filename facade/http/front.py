"""The only app that the server runs: it serves each request in the dialect that claims it.

Bodies, who asks, pages of other sites, clients that go, metrics, replies and unexpected errors are
treated here, once for all dialects.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import EngineError, word_of
from engine.shapes import Principal
from facade.dialect import Audit, Carried, Dialect, Exchange, Refusal, Response, Spans
from facade.http.asgi import ClientGone, DirectBody, direct_of, reply, unless_gone
from facade.http.bounds.intake import Intake
from facade.http.bounds.peers import address_of, peer_of
from facade.http.log import request_ids
from facade.http.log.access_log import AccessLog
from facade.http.metrics import Metrics
from facade.http.problem import ProblemError, refusal
from facade.http.sockets.listener import Routes
from runtime.asked import Asked
from runtime.deadline import WAITED_S
from schemas.vocabulary import CLIENT_GONE, OK

log = logging.getLogger("leaseway.facade")

Serve = Callable[[Scope, Receive, Send, Exchange], Awaitable[None]]
GONE = 499  # the status of a request whose client has gone, in the metrics
INTERNAL = 500
# What reads a longer body takes milliseconds, in which nobody else would be served.
LONG_BYTES = 262_144
MISDIRECTED = "misdirected"  # the verb of a request to another host's name, in the metrics
_WRONG_HOST = refusal(MISDIRECTED)
# Answers that are remembered: clients name few hosts, and each request asks.
REMEMBERED = 64
CLIENT_ID = b"x-request-id"  # by which a client, or a proxy, calls its request
# What a browser says of a page of ours, and of what its user has typed.
_OWN_PAGES = (b"same-origin", b"none")
# How every browser calls itself.
_BROWSERS = (b"mozilla/", b"opera/")


class Hosts:
    """By which names open mode may be reached: those of this machine, and `more`, with commas in
    between, as a setting has them.

    In open mode nobody is asked who they are, so the address is all that keeps strangers out. A
    page of another site can have its own name point to 127.0.0.1 (DNS rebinding); its browser then
    speaks to us as to that page's own server, and says so in Host.
    """

    def __init__(self, more: str) -> None:
        self._more = frozenset(name.strip().lower() for name in more.split(",") if name.strip())
        self._allowed: set[bytes] = set()

    def allows(self, host: bytes | None) -> bool:
        """Whether a request with this Host may be answered; None = it has none (HTTP/1.0)."""
        if host is None or host in self._allowed:
            return True
        allowed = self._is_ours(_name_of(host.decode("latin-1").lower()))
        if allowed and len(self._allowed) < REMEMBERED:
            self._allowed.add(host)
        return allowed

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or name.endswith(".localhost") or name in self._more:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


def _name_of(host: str) -> str:
    """A Host without its port, and an address of IPv6 without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


class Front:
    """ASGI app. The first of `dialects` that claims a request answers it; what none claims is for
    the app that `rest` makes, which may serve requests by this front too. `hosts`: by which names
    it may be reached, None = by any; then callers have proved who they are. `audit`: hears of each
    request, None = nobody does; `access` of each that was answered, `spans` of each that may be
    traced. `routes`: what knows the requests that the plane may serve. `trusts_proxy`: a proxy
    before us says who they are.
    """

    def __init__(
        self,
        dialects: Iterable[Dialect],
        intake: Intake,
        metrics: Metrics,
        rest: Callable[[Serve], ASGIApp],
        hosts: Hosts | None = None,
        audit: Audit | None = None,
        routes: Routes | None = None,
        *,
        access: AccessLog | None = None,
        spans: Spans | None = None,
        trusts_proxy: bool = False,
    ) -> None:
        self.routes = routes
        self._access = access or AccessLog(0)
        self._spans = spans
        self._hosts = hosts
        self._audit = audit
        self._proves = hosts is None
        self._trusts_proxy = trusts_proxy
        self._claims = tuple(dialect.claims for dialect in dialects)
        self._intake = intake
        self._metrics = metrics
        self._rest = rest(self)
        # One thread: two would keep the event loop from the interpreter for twice as long.
        self._reader = ThreadPoolExecutor(1, "bodies")

    async def __call__(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange | None = None) -> None:
        """Answers one request: that of `exchange`, if given. Raises what `send` raises."""
        if exchange is None and (exchange := self._claimed(scope)) is None:
            await self._unclaimed(scope, receive, send)
            return
        started = perf_counter() - WAITED_S.get()
        number = request_ids.begin(short=exchange.short_id)
        audit, outcome, trusted = self._audit, OK, self._trusts_proxy
        asked: Any = None if audit is None else audit.begin(address_of(scope, exchange.headers, trusted=trusted))
        if self._spans is not None:
            self._spans.begin(scope, exchange.headers)
        direct, most = direct_of(scope), exchange.most_bytes
        unsent: Callable[[], None] | None = None
        try:
            by = _by_head(exchange, scope["method"])
            body = self._intake.take_buffered(direct, most)
            if body is None:
                body = await self._intake.read(exchange.headers, receive, most, self._holder(scope, exchange, by))
            try:
                by = exchange.principal(body) if by is None else by
                call = exchange.start(by, body) if len(body) <= LONG_BYTES else await self._started(exchange, by, body)
                content = await (self._poll(call, receive) if exchange.long_poll else call)
            finally:
                self._intake.release(body)
            if type(content) is Carried:
                content, unsent = content.content, content.unsent
            response = exchange.output(content)
        except ClientGone:
            self._ended(scope, exchange, asked, GONE, CLIENT_GONE, perf_counter() - started)
            return
        except Exception as error:
            if unsent is not None:
                unsent()
                unsent = None
            response, outcome = _failed(exchange, error), word_of(error)
            # Here: a name that kept the error would keep our frame, and with it a body.
            await self._tell(asked, exchange, response, number, error)
        else:
            if audit is not None and asked.verb not in audit.quiet:
                await self._tell(asked, exchange, response, number, None)
        # Second, as the plane has it.
        response.headers.insert(1, (exchange.id_header, number.encode()))
        self._ended(scope, exchange, asked, response.status, outcome, perf_counter() - started)
        await _give(direct, send, receive, response, unsent)

    async def _started(self, exchange: Exchange, by: Principal, body: bytes) -> Coroutine[Any, Any, Any]:
        """As `Exchange.start`, off the event loop. Raises what that raises."""
        started = asyncio.get_running_loop().run_in_executor(self._reader, exchange.start, by, body)
        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            started.add_done_callback(_close)
            raise

    async def _tell(
        self, asked: Any, exchange: Exchange, response: Response, number: str, error: Exception | None
    ) -> None:
        if error is not None and self._spans is not None:
            self._spans.failed(error)
        if self._audit is not None:
            known_by = (_client_id(exchange) if exchange.id_header == CLIENT_ID else "") or number
            await self._audit.end(asked, exchange.verb, response.status, error, known_by)

    def _ended(self, scope: Scope, exchange: Exchange, asked: Any, status: int, outcome: str, seconds: float) -> None:
        """Counts a request, ends its span, and writes its line if it has one."""
        who = Asked("") if asked is None else asked
        self._metrics.observe(exchange.verb, status, seconds, who, outcome)
        if self._spans is not None:
            self._spans.end(exchange.verb, status)
        if not self._access.every or not self._access.wants(status):
            return
        peer = address_of(scope, exchange.headers, trusted=self._trusts_proxy)
        self._access.write(
            exchange.verb, status, seconds, request_ids.current(),
            by="python", principal=who.principal, queue=who.queue, tag=who.tag, peer=peer,
            client_id=_client_id(exchange),
        )  # fmt: skip

    def _holder(self, scope: Scope, exchange: Exchange, by: Principal | None) -> str:
        """Whose room a body takes that is not there yet: that of a principal who has proved to be
        it, else of an address. What a name alone claims anybody may claim.
        """
        if by is not None and self._proves:
            return f"principal {by.id}"
        return peer_of(scope, exchange.headers, trusted=self._trusts_proxy)

    def _claimed(self, scope: Scope) -> Exchange | None:
        """None: no dialect has it, or it is for a name that is not ours."""
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            if self._hosts is not None and not self._hosts.allows(headers.get(b"host")):
                return None
            for claims in self._claims:
                exchange = claims(scope, headers)
                if exchange is not None:
                    return exchange
        return None

    async def _unclaimed(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            self._hosts is not None
            and scope["type"] == "http"
            and not self._hosts.allows(dict(scope["headers"]).get(b"host"))
        ):
            self._metrics.observe(MISDIRECTED, _WRONG_HOST.status, 0.0, Asked(""), MISDIRECTED)
            await reply(send, _WRONG_HOST)
        else:
            await self._rest(scope, receive, send)

    async def _poll(self, call: Coroutine[Any, Any, Any], receive: Receive) -> Any:
        self._metrics.receive_begins()
        try:
            return await unless_gone(call, receive)
        finally:
            self._metrics.receive_ends()


async def _give(
    direct: DirectBody | None, send: Send, receive: Receive, response: Response, unsent: Callable[[], None] | None
) -> None:
    """Gives a reply to the server; `unsent` is called when nobody is there for it."""
    if direct is None:
        await reply(send, response, unsent, receive)
    elif (
        not direct.reply(response.status, response.headers, response.body, look=unsent is not None)
        and unsent is not None
    ):
        unsent()


def _client_id(exchange: Exchange) -> str:
    """How the client, or a proxy, calls a request; empty = it does not."""
    return exchange.headers.get(CLIENT_ID, b"").decode("latin-1")


def _by_head(exchange: Exchange, method: str) -> Principal | None:
    """Who asks, as far as the head tells; None = the signature of the body will. Raises for whom
    the head alone excludes.
    """
    headers = exchange.headers
    if exchange.changes and (b"sec-fetch-site" in headers or b"origin" in headers or method == "GET"):
        _refuse_pages(headers, suspects=exchange.suspects_get)
    if exchange.signs_body:
        exchange.check_head()
        return None
    return exchange.principal(b"")


def _refuse_pages(headers: Mapping[bytes, bytes], *, suspects: bool) -> None:
    """Raises ProblemError for a request that a page of another origin has made: of another site, or
    of another port of this machine.

    A browser sends some without asking us first, those without a body above all, and with the
    credentials that it keeps. It says where each comes from: always by Sec-Fetch-Site if it trusts
    the way to us, else at least in a POST by Origin. Other clients send neither. A GET without both
    may be an image of any page: of a browser, and where the dialect `suspects` all, it needs a
    header that no page can set.
    """
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is None and origin is None:
        is_browsers = headers.get(b"user-agent", b"").lower().startswith(_BROWSERS)
        if (suspects or is_browsers) and not _is_signed(headers):
            raise ProblemError(
                "cross_site", field="Authorization", limit="a POST, or a GET that is signed in its headers", given=None
            )
        return
    origin = origin or b""
    host = headers.get(b"host", b"").lower()
    own = site in _OWN_PAGES if site is not None else origin.lower() in (b"http://" + host, b"https://" + host)
    if not own:
        raise ProblemError(
            "cross_site",
            field="Origin" if site is None else "Sec-Fetch-Site",
            limit="same-origin",
            given=site or origin,
        )


def _is_signed(headers: Mapping[bytes, bytes]) -> bool:
    """Returns whether a request has a header that no page can set without a preflight: a
    signature, or the version of MNS. A browser adds Basic and the like by itself.
    """
    return b"x-mns-version" in headers or headers.get(b"authorization", b"").startswith((b"AWS4-HMAC-SHA256 ", b"MNS "))


def _close(started: asyncio.Future[Coroutine[Any, Any, Any]]) -> None:
    """Ends a call that nobody waits for."""
    if started.exception() is None:
        started.result().close()


def _failed(exchange: Exchange, error: Exception) -> Response:
    """The reply to a request that failed; what nobody has expected is logged."""
    response = exchange.error(error)
    if response.status == INTERNAL or not isinstance(error, EngineError | ProblemError | Refusal):
        log.error("%s failed", exchange.verb, exc_info=error)
    return response
