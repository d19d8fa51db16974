"""One SQS request over HTTP: AWS JSON 1.0, found by its X-Amz-Target header at any path.

It stands before the native dialect and lets everything else pass. Any error becomes an error of SQS; nothing is raised but
cancellation. Neighbours: `actions` do the work, `facade.asgi` reads bodies. This module must not know any action.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.errors import EngineError, Unavailable
from engine.verbs import Principal
from facade.asgi import ClientGone, Intake, Response, reply, unless_gone
from facade.metrics import Metrics
from facade.problem import ProblemError
from facade.sqs.actions import ACTIONS, LATER
from facade.sqs.call import Action, Call
from facade.sqs.errors import (
    ACCESS_DENIED,
    INTERNAL_FAILURE,
    INVALID_CLIENT_TOKEN,
    INVALID_PARAMETER,
    SERIALIZATION,
    UNKNOWN_OPERATION,
    UNSUPPORTED_OPERATION,
    SqsError,
    sqs_error,
)
from facade.sqs.limits import KEY_ID_CHARACTERS

if TYPE_CHECKING:
    from engine.engine import Engine

log = logging.getLogger("leaseway.facade")
_TARGET = b"AmazonSQS."
_CREDENTIAL = re.compile(rb"^AWS4-HMAC-SHA256 .*?Credential=([!-.0-~]{1,%d})/" % KEY_ID_CHARACTERS)
_CONTENT_TYPE = (b"content-type", b"application/x-amz-json-1.0")
_encode = msgspec.json.Encoder().encode


class SqsDialect:
    """ASGI app: requests with an SQS target are answered here, all else goes to `rest`."""

    def __init__(self, engine: Engine, intake: Intake, metrics: Metrics, *, open_mode: bool, rest: ASGIApp) -> None:
        self._engine = engine
        self._intake = intake
        self._metrics = metrics
        self._open_mode = open_mode
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            for name, value in scope["headers"]:
                if name == b"x-amz-target" and value.startswith(_TARGET):
                    await self._serve(value[len(_TARGET) :].decode("latin-1"), scope, receive, send)
                    return
        await self._rest(scope, receive, send)

    async def _serve(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        try:
            response = _response(await self._answer(name, scope, receive))
        except ClientGone:
            self._metrics.observe(_metric(name), 499, perf_counter() - started)
            return
        except SqsError as error:
            response = _error_response(error)
        except EngineError as error:
            response = self._engine_failure(name, error)
        except ProblemError as error:  # of the intake: the body is larger than any request may be
            response = _error_response(SqsError(INVALID_PARAMETER, str(error)))
        except Exception:
            log.exception("sqs %s failed", name[:64])
            response = _error_response(SqsError(INTERNAL_FAILURE, "An internal error occurred."))
        self._metrics.observe(_metric(name), response.status, perf_counter() - started)
        await reply(send, response)

    def _engine_failure(self, name: str, error: EngineError) -> Response:
        found = sqs_error(error)
        if found.shape is INTERNAL_FAILURE:
            log.error("sqs %s failed", name[:64], exc_info=error)
        response = _error_response(found)
        if isinstance(error, Unavailable):
            response.headers.append((b"retry-after", b"%d" % error.retry_after_s))
        return response

    async def _answer(self, name: str, scope: Scope, receive: Receive) -> Struct:
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        action = _action(name)
        by = self._principal(headers)
        body = await self._intake.read(headers, receive)
        try:
            call = action.run(self._engine, Call(by, _base(scope, headers), _decoded(action, body)))
            if not action.long_poll:
                return await call
            self._metrics.receive_begins()
            try:
                return await unless_gone(call, receive)
            finally:
                self._metrics.receive_ends()
        finally:
            self._intake.release(body)

    def _principal(self, headers: Mapping[bytes, bytes]) -> Principal:
        """Who asks. Open mode believes the key id; required mode lets nobody pass until signatures are verified."""
        if headers.get(b"sec-fetch-site") == b"cross-site":
            raise SqsError(ACCESS_DENIED, "A page of another site may not change anything here.")
        if not self._open_mode:
            raise SqsError(
                INVALID_CLIENT_TOKEN,
                "This service requires credentials, and AWS signatures are not verified yet: use the native API with HTTP Basic.",
            )
        found = _CREDENTIAL.match(headers.get(b"authorization", b""))
        return self._engine.authenticate(None if found is None else found[1].decode("ascii"), None)


def _metric(name: str) -> str:
    """A name out of a small set, for the metrics."""
    return f"sqs.{name}" if name in ACTIONS else "sqs.other"


def _action(name: str) -> Action:
    action = ACTIONS.get(name)
    if action is not None:
        return action
    if name in LATER:
        raise SqsError(UNSUPPORTED_OPERATION, f"{name} is not supported yet.")
    raise SqsError(UNKNOWN_OPERATION, f"There is no action {name[:100]}.")


def _decoded(action: Action, body: bytes) -> Any:
    try:
        return action.decoder.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SqsError(SERIALIZATION, f"The body can't be read: {error}") from None


def _base(scope: Scope, headers: Mapping[bytes, bytes]) -> str:
    """Scheme and host as the client called us, so that it can reach the queue URLs it gets."""
    host = headers.get(b"host")
    if host:
        return f"{scope['scheme']}://{host.decode('latin-1')}"
    name, port = scope.get("server") or ("127.0.0.1", None)
    return f"{scope['scheme']}://{name}" + (f":{port}" if port else "")


def _response(content: Struct) -> Response:
    body = _encode(content)
    return Response(200, [_CONTENT_TYPE, _request_id(), (b"content-length", b"%d" % len(body))], body)


def _request_id() -> tuple[bytes, bytes]:
    return b"x-amzn-requestid", str(uuid4()).encode("ascii")


def _error_response(error: SqsError) -> Response:
    shape = error.shape
    body = _encode({"__type": shape.type, "message": error.message.encode("utf-8", "replace").decode()})
    fault = "Sender" if shape.sender_fault else "Receiver"
    headers = [
        _CONTENT_TYPE,
        _request_id(),
        (b"x-amzn-query-error", f"{shape.code};{fault}".encode("ascii")),
        (b"content-length", b"%d" % len(body)),
    ]
    return Response(shape.status, headers, body)
