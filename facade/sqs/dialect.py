"""One SQS request over HTTP, in either protocol, at any path.

It stands before the native dialect and lets everything else pass. Any error becomes an error of SQS; nothing is raised but
cancellation. Neighbours: `protocols` reads and writes, `actions` do the work, `facade.asgi` reads bodies. This module must not know
any action.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.config import Settings
from engine.errors import EngineError, NotAuthenticated, Unavailable
from engine.verbs import Principal
from facade.asgi import ClientGone, Intake, Response, reply, unless_gone, whole_of
from facade.metrics import Metrics
from facade.problem import ProblemError
from facade.sqs import signature
from facade.sqs.actions import ACTIONS
from facade.sqs.call import Call
from facade.sqs.errors import (
    ACCESS_DENIED,
    INTERNAL_FAILURE,
    INVALID_PARAMETER,
    MISSING_TOKEN,
    SIGNATURE_DOES_NOT_MATCH,
    SqsError,
    sqs_error,
)
from facade.sqs.limits import LIMITS
from facade.sqs.names import Place
from facade.sqs.protocols import Spoken, protocol_of

if TYPE_CHECKING:
    from engine.engine import Engine

log = logging.getLogger("leaseway.facade")
# Names that clients call this worker by, kept with what follows from them; of more none is kept.
HOSTS = 1000
# Names out of a small set.
_METRICS = {name: f"sqs.{name}" for name in ACTIONS}
_OWN_PAGES = (None, b"same-origin", b"none")


class SqsDialect:
    """ASGI app: requests that speak SQS are answered here, all else goes to `rest`."""

    def __init__(self, engine: Engine, intake: Intake, metrics: Metrics, settings: Settings, rest: ASGIApp) -> None:
        self._engine = engine
        self._intake = intake
        self._metrics = metrics
        self._settings = settings
        self._limits = LIMITS[settings.sqs_limits]
        self._open = settings.auth == "open"
        self._cool_down_s = settings.sqs_cool_down_s
        self._rest = rest
        self._places: dict[bytes, Place] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (spoken := protocol_of(scope, headers := dict(scope["headers"]))) is None:
            await self._rest(scope, receive, send)
            return
        started = perf_counter()
        name, whole = "", whole_of(scope)
        try:
            body = self._intake.taken(whole)
            if body is None:
                body = await self._intake.read(headers, receive)
            try:
                by = self._principal(spoken, scope, headers, body)
                name = spoken.action(body)
                content = await self._begun(spoken, name, by, scope, headers, body, receive)
            finally:
                self._intake.release(body)
            response = spoken.output(name, content)
        except ClientGone:
            self._metrics.observe(_METRICS.get(name, "sqs.other"), 499, perf_counter() - started)
            return
        except Exception as error:
            response = _failure(spoken, name, error)
        self._metrics.observe(_METRICS.get(name, "sqs.other"), response.status, perf_counter() - started)
        if whole is None:
            await reply(scope, send, response)
        else:
            whole.reply(response.status, response.headers, response.body)

    def _begun(
        self, spoken: Spoken, name: str, by: Principal, scope: Scope, headers: Mapping[bytes, bytes], body: bytes, receive: Receive
    ) -> Coroutine[Any, Any, Struct]:
        """What does the action `name`, to be awaited. Raises SqsError for what refuses it before that."""
        action = ACTIONS.get(name)
        if action is None:
            raise SqsError(spoken.unknown, f"There is no action {name[:100]}.")
        given = spoken.input(name, action, body)
        place = self._places.get(headers.get(b"host", b"")) or self._place(scope, headers)
        call = action.run(self._engine, Call(by, place, self._limits, self._cool_down_s, given))
        return self._polled(call, receive) if action.long_poll else call

    async def _polled(self, call: Coroutine[Any, Any, Struct], receive: Receive) -> Struct:
        self._metrics.receive_begins()
        try:
            return await unless_gone(call, receive)
        finally:
            self._metrics.receive_ends()

    def _place(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Place:
        """What the queue URLs of the answer begin with: scheme and host as the client called us, so that it can reach them."""
        host = headers.get(b"host")
        if not host:
            return self._place_of(_own_base(scope))
        place = self._place_of(f"{scope['scheme']}://{host.decode('latin-1')}")
        if len(self._places) < HOSTS:
            self._places[host] = place
        return place

    def _place_of(self, base: str) -> Place:
        return Place(base, self._settings.sqs_account, self._settings.sqs_region)

    def _principal(self, spoken: Spoken, scope: Scope, headers: Mapping[bytes, bytes], body: bytes) -> Principal:
        """Who asks. Open mode believes the key id, required mode the signature. Raises SqsError, for a page of another site too."""
        site = headers.get(b"sec-fetch-site")
        if site is not None or spoken.simple:
            _refuse_pages(spoken, site, headers)
        if self._open:
            return self._engine.authenticate(
                signature.claimed_key_id(headers.get(b"authorization", b""), scope.get("query_string", b"")), None
            )
        path = scope.get("raw_path") or scope["path"].encode("latin-1")
        claim = signature.claim_of(signature.Asked(scope["method"], path, scope["query_string"], scope["headers"]))
        if claim is None:
            raise SqsError(MISSING_TOKEN, "Request is missing Authentication Token")
        claim.check_time(datetime.now(UTC))
        try:
            return self._engine.authenticate_signed(claim.key_id, lambda secret: claim.fits(secret, body))
        except NotAuthenticated as error:
            if error.field != "signature":
                raise
            raise SqsError(SIGNATURE_DOES_NOT_MATCH, "The signature is not that of this request and this key's secret.") from None


def _failure(spoken: Spoken, name: str, error: Exception) -> Response:
    """The answer to a request that failed; `name` is empty until its body was read."""
    if isinstance(error, SqsError):
        return spoken.error(error)
    if isinstance(error, EngineError):
        response = spoken.error(_engine_failure(name, error))
        if isinstance(error, Unavailable):
            response.headers.append((b"retry-after", b"%d" % error.retry_after_s))
        return response
    if isinstance(error, ProblemError):  # of the intake: the body is larger than any request may be
        return spoken.error(SqsError(INVALID_PARAMETER, str(error)))
    log.error("sqs %s failed", name, exc_info=error)
    return spoken.error(SqsError(INTERNAL_FAILURE, "An internal error occurred."))


def _engine_failure(name: str, error: EngineError) -> SqsError:
    found = sqs_error(error)
    if found.shape is INTERNAL_FAILURE:
        log.error("sqs %s failed", name, exc_info=error)
    return found


def _refuse_pages(spoken: Spoken, site: bytes | None, headers: Mapping[bytes, bytes]) -> None:
    """In open mode the browser of somebody on this machine is all that stands between us and any page they look at."""
    if site == b"cross-site" or (spoken.simple and (site not in _OWN_PAGES or b"origin" in headers)):
        raise SqsError(ACCESS_DENIED, "A page of another site may not change anything here.")


def _own_base(scope: Scope) -> str:
    name, port = scope.get("server") or ("127.0.0.1", None)
    return f"{scope['scheme']}://{name}" + (f":{port}" if port else "")
