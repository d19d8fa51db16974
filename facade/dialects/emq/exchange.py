"""One request of an EMQ client: a Thrift message over HTTP POST, and the answer in its protocol.

A business error is an answer with status 200; only what stops a request before its method has
another status, and no Thrift body, for most clients decode no other (reference/emq.md 4.3).
"""

from __future__ import annotations

import time
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from msgspec import Struct, structs
from starlette.types import Scope

from engine.errors import EngineError, NotAuthenticated, TooManyAttempts, Unavailable
from engine.shapes import Principal
from facade.dialect import Response
from facade.dialects.emq import signature
from facade.dialects.emq.actions import ACTIONS
from facade.dialects.emq.messages.replies import exception_of
from facade.dialects.emq.queues.call import Call, EmqError
from facade.dialects.emq.queues.names import as_called
from facade.dialects.emq.wire import protocols
from facade.dialects.emq.wire.errors import ErrorCode, code_of
from facade.dialects.emq.wire.services import Service
from facade.http.bounds.peers import Peers
from facade.http.problem import CODES, ProblemError

if TYPE_CHECKING:
    from engine.engine import Engine

BODY_BYTES: Final = 524_288  # reference/emq.md 4.2
OTHER: Final = "emq.other"  # the verb of what is no method
_VERBS: Final = {name: f"emq.{name}" for name in ACTIONS}
_INTERNAL: Final = "something went wrong in the service"
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_ID_CHARACTERS: Final = 64


class Common(Struct, frozen=True):
    """What all requests of a worker have in common; `is_open` = a key id is believed."""

    engine: Engine
    is_open: bool
    old_permissions: bool
    peers: Peers


class EmqExchange(Struct, gc=False):
    """See `facade.dialect.Exchange`."""

    common: Common
    service: Service
    scope: Scope
    headers: Mapping[bytes, bytes]
    call: protocols.ThriftCall | None = None
    by: Principal | None = None
    verb: str = OTHER
    long_poll: bool = False
    claim: signature.Claim | None = None
    changes = True
    suspects_get = False
    signs_body = False  # but its digest, if the head has one
    most_bytes = BODY_BYTES
    id_header = b"x-request-id"
    short_id = False

    def check_head(self) -> None:
        """Never called."""

    def principal(self, body: bytes) -> Principal:
        """Open mode believes the key id, required mode the signature. Raises NotAuthenticated,
        SignatureError, ClockSkew.
        """
        common, scope = self.common, self.scope
        if common.is_open:
            return common.engine.callers.authenticate(
                signature.claimed_key_id(self.headers.get(b"authorization", b"")), None
            )
        path = scope.get("raw_path") or scope["path"].encode("latin-1")
        claim = self.claim = signature.claim_of(scope["method"], path, scope["query_string"], scope["headers"])
        if claim is None:
            raise NotAuthenticated("the request is not signed")
        claim.check_time(datetime.now(UTC))
        return common.engine.callers.authenticate_signed(claim.key_id, claim.fits, common.peers.of(scope, self.headers))

    def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Any]:
        """Raises BadThrift, EmqError, SignatureError."""
        if self.claim is not None:
            self.claim.check_body(body)
        self.by = by
        call = self.call = protocols.decode_call(self._type, body, self.service)
        name = call.method.name
        action = ACTIONS.get(name)
        if action is None:
            raise EmqError(ErrorCode.INVALID_ACTION, f"{name} is not there yet")
        self.verb, self.long_poll = _VERBS[name], action.long_poll
        return action.run(self.common.engine, Call(by, call.argument, self.common.old_permissions))

    @property
    def _type(self) -> bytes:
        return self.headers.get(b"content-type", b"")

    def output(self, content: Any) -> Response:
        """The answer of the method."""
        assert self.call is not None  # `start` came before
        return self._thrift(protocols.encode_reply(self._type, self.call, content))

    def error(self, error: Exception) -> Response:
        """Of the method: an exception in an answer. Before it: a status."""
        if isinstance(error, protocols.BadThrift) and error.name is not None:
            return self._thrift(protocols.encode_application_exception(self._type, error))
        if self.call is None:
            return _before(error)
        return self._thrift(protocols.encode_exception(self._type, self.call, self._exception(error)))

    def _exception(self, error: Exception) -> Any:
        if isinstance(error, EngineError):
            called = self._queue_name()
            detail = as_called(error.detail, called, self.by) if called and self.by else error.detail
            error = EmqError(code_of(type(error)), detail)
        elif not isinstance(error, EmqError):
            error = EmqError(ErrorCode.INTERNAL_ERROR, _INTERNAL)
        return structs.replace(exception_of(error), request_id=self._request_id(), queue_name=self._queue_name())

    def _request_id(self) -> str | None:
        """The id that the client gave its request."""
        ids = parse_qs(self.scope["query_string"].decode("latin-1")).get("id")
        return ids[0][:_ID_CHARACTERS] if ids else None

    def _queue_name(self) -> str | None:
        argument = self.call.argument if self.call else None
        return argument if isinstance(argument, str) else getattr(argument, "queue_name", None)

    def _thrift(self, body: bytes) -> Response:
        content_type = protocols.base_type(self._type)
        return Response(200, [(b"content-type", content_type), (b"content-length", b"%d" % len(body))], body)


def _before(error: Exception) -> Response:
    """The reply to a request of which no method is known."""
    if isinstance(error, signature.ClockSkew):
        return _plain(412, str(error), (b"x-xiaomi-timestamp", b"%d" % time.time()))
    if isinstance(error, signature.SignatureError | NotAuthenticated):
        return _plain(401, str(error))
    if isinstance(error, Unavailable):
        return _plain(
            429 if isinstance(error, TooManyAttempts) else 503,
            str(error),
            (b"retry-after", b"%d" % error.retry_after_s),
        )
    if isinstance(error, ProblemError):
        return _plain(CODES[error.code].status, str(error))
    return _plain(400, error.message) if isinstance(error, protocols.BadThrift) else _plain(500, _INTERNAL)


def _plain(status: int, text: str, *headers: tuple[bytes, bytes]) -> Response:
    body = text.encode()
    return Response(status, [_TEXT, (b"content-length", b"%d" % len(body)), *headers], body)
