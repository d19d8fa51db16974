"""One SQS request over HTTP, in either protocol, at any path.

It stands before the native dialect and lets everything else pass. Any error becomes an error of
SQS; nothing is raised but cancellation. Neighbours: `protocols` reads and writes, `actions` do the
work, `facade.http.asgi` reads bodies. This module must not know any action.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import EngineError, NotAuthenticated, Unavailable
from engine.settings import Settings
from engine.shapes import Principal
from facade.http.asgi import ClientGone, Intake, Response, reply, unless_gone, whole_of
from facade.http.metrics import Metrics
from facade.http.problem import ProblemError
from facade.sqs import signature
from facade.sqs.actions import ACTIONS
from facade.sqs.call import Call, Carried
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
from facade.sqs.places import Places
from facade.sqs.protocols import Spoken, protocol_of

if TYPE_CHECKING:
    from engine.engine import Engine

log = logging.getLogger("leaseway.facade")
# Names out of a small set.
_METRICS = {name: f"sqs.{name}" for name in ACTIONS}
_NO_MATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. "
    "Consult the service documentation for details."
)
_OWN_PAGES = (None, b"same-origin", b"none")


class SqsDialect:
    """ASGI app: requests that speak SQS are answered here, all else goes to `rest`."""

    def __init__(self, engine: Engine, intake: Intake, metrics: Metrics, settings: Settings, rest: ASGIApp) -> None:
        self._engine = engine
        self._intake = intake
        self._metrics = metrics
        self._limits = LIMITS[settings.sqs_limits]
        self._open = settings.auth == "open"
        self._cool_down_s = settings.sqs_cool_down_s
        self._rest = rest
        self._places = Places(settings)

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
            response = spoken.output(name, content) if type(content) is not Carried else _carrying(spoken, name, content)
        except ClientGone:
            self._metrics.observe(_METRICS.get(name, "sqs.other"), 499, perf_counter() - started)
            return
        except Exception as error:
            response = _failure(spoken, name, error)
        self._metrics.observe(_METRICS.get(name, "sqs.other"), response.status, perf_counter() - started)
        if whole is not None and response.unsent is None:
            whole.reply(response.status, response.headers, response.body)
        else:
            await reply(whole, send, response)

    def _begun(
        self, spoken: Spoken, name: str, by: Principal, scope: Scope, headers: Mapping[bytes, bytes], body: bytes, receive: Receive
    ) -> Coroutine[Any, Any, Struct]:
        """What does the action `name`, to be awaited. Raises SqsError for what refuses it before
        that.
        """
        action = ACTIONS.get(name)
        if action is None:
            raise SqsError(spoken.unknown, f"The action {name[:100]} is not valid for this endpoint.")
        given = spoken.input(name, action, body)
        place = self._places.of(scope, headers)
        call = action.run(self._engine, Call(by, place, self._limits, self._cool_down_s, given, headers.get(b"x-amzn-trace-id", b"")))
        return self._polled(call, receive) if action.long_poll else call

    async def _polled(self, call: Coroutine[Any, Any, Struct], receive: Receive) -> Struct:
        self._metrics.receive_begins()
        try:
            return await unless_gone(call, receive)
        finally:
            self._metrics.receive_ends()

    def _principal(self, spoken: Spoken, scope: Scope, headers: Mapping[bytes, bytes], body: bytes) -> Principal:
        """Who asks. Open mode believes the key id, required mode the signature. Raises SqsError,
        for a page of another site too.
        """
        site = headers.get(b"sec-fetch-site")
        if site is not None or spoken.simple:
            _refuse_pages(spoken, site, headers)
        if self._open:
            return self._engine.authenticate(
                signature.claimed_key_id(headers.get(b"authorization", b""), scope.get("query_string", b"")), None
            )
        path = scope.get("raw_path") or scope["path"].encode("latin-1")
        claim = signature.claim_of(signature.Asked(scope["method"], path, scope["query_string"], self._places.called(scope, headers)))
        if claim is None:
            raise SqsError(MISSING_TOKEN, "Request is missing Authentication Token")
        claim.check_time(datetime.now(UTC))
        try:
            return self._engine.authenticate_signed(claim.key_id, lambda secret: claim.fits(secret, body))
        except NotAuthenticated as error:
            if error.field != "signature":
                raise
            raise SqsError(SIGNATURE_DOES_NOT_MATCH, _NO_MATCH) from None


def _carrying(spoken: Spoken, name: str, content: Carried) -> Response:
    try:
        response = spoken.output(name, content.output)
    except BaseException:
        content.unsent()
        raise
    return Response(response.status, response.headers, response.body, content.unsent)


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
    found = sqs_error(error, name)
    if found.shape is INTERNAL_FAILURE:
        log.error("sqs %s failed", name, exc_info=error)
    return found


def _refuse_pages(spoken: Spoken, site: bytes | None, headers: Mapping[bytes, bytes]) -> None:
    """In open mode the browser of somebody on this machine is all that stands between us and any
    page they look at.
    """
    if site == b"cross-site" or (spoken.simple and (site not in _OWN_PAGES or b"origin" in headers)):
        raise SqsError(ACCESS_DENIED, "A page of another site may not change anything here.")
