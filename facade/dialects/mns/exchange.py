"""One request of an MNS client: XML over HTTP, the operation in method, path and query; and the
answer.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from starlette.types import Scope

from engine.errors import EngineError, NotAuthenticated, Unavailable
from engine.shapes import Principal
from facade.called import base_of
from facade.dialect import Response
from facade.dialects.mns import signature
from facade.dialects.mns.actions import chosen
from facade.dialects.mns.queues.call import Answer, Call, Options
from facade.dialects.mns.wire import query, xml
from facade.dialects.mns.wire.errors import (
    ACCESS_DENIED,
    INTERNAL,
    INVALID_ARGUMENT,
    INVALID_VERSION,
    MALFORMED_XML,
    MISSING_AUTHORIZATION,
    MISSING_VERSION,
    SIGNATURE_MISMATCH,
    MnsError,
    mns_error,
)
from facade.dialects.mns.wire.replies import document
from facade.http.bounds.peers import Peers
from facade.http.log import request_ids
from facade.http.problem import ProblemError

if TYPE_CHECKING:
    from engine.engine import Engine

OTHER: Final = "mns.other"  # the verb of what is no operation
VERSION: Final = b"2015-06-06"
_TYPE: Final = (b"content-type", b"text/xml;charset=utf-8")
_VERSION: Final = (b"x-mns-version", VERSION)
_NO_MATCH: Final = (
    "The request signature we calculated does not match the signature you provided. Check your key and signing method."
)


class Common(Struct, frozen=True):
    """What all requests of a worker have in common; `is_open` = a key id is believed; `trusted` = a
    proxy says how clients call us.
    """

    engine: Engine
    is_open: bool
    trusted: bool
    options: Options
    peers: Peers


class MnsExchange(Struct, gc=False):
    """See `facade.dialect.Exchange`."""

    common: Common
    scope: Scope
    headers: Mapping[bytes, bytes]
    verb: str = OTHER
    long_poll: bool = False
    id_header = b"x-mns-request-id"  # in small letters: SDKs look for no other spelling
    short_id = True
    changes = True  # a GET may be a receive, which counts
    suspects_get = False
    signs_body = False  # but its digest, if the head has one
    most_bytes = xml.MAX_BYTES

    def check_head(self) -> None:
        """Never called."""

    def principal(self, body: bytes) -> Principal:
        """Open mode believes the key id, required mode the signature. Raises MnsError,
        NotAuthenticated.
        """
        common, headers, scope = self.common, self.headers, self.scope
        version, authorization = headers.get(b"x-mns-version"), headers.get(b"authorization", b"")
        if version is not None and version != VERSION:
            raise MnsError(INVALID_VERSION, f"x-mns-version should be {VERSION.decode()}")
        if common.is_open:
            return common.engine.callers.authenticate(signature.claimed_key_id(authorization), None)
        if not authorization:
            raise MnsError(MISSING_AUTHORIZATION, "Authorization is required.")
        if version is None:
            raise MnsError(MISSING_VERSION, "x-mns-version is required.")
        claim = signature.claim_of(scope["method"], self._target(), scope["headers"])
        claim.check_time(datetime.now(UTC))
        try:
            return common.engine.callers.authenticate_signed(claim.key_id, claim.fits, common.peers.of(scope, headers))
        except NotAuthenticated as error:
            if error.field != "signature":
                raise
            raise MnsError(SIGNATURE_MISMATCH, _NO_MATCH) from None

    def _target(self) -> bytes:
        """Path and query as they stood in the first line of the request."""
        scope = self.scope
        path: bytes = scope.get("raw_path") or scope["path"].encode("latin-1")
        asked: bytes = scope["query_string"]
        return path + b"?" + asked if asked else path

    def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Any]:
        """Raises MnsError."""
        scope, common = self.scope, self.common
        if (digest := self.headers.get(b"content-md5")) is not None:
            signature.check_digest(digest.strip(), body)
        asked = query.parse(scope["query_string"])
        root = xml.parse(body) if body.strip() else None
        action, name = chosen(scope["method"], scope["path"], asked, root)
        self.verb, self.long_poll = f"mns.{action.name}", action.long_poll
        return action.run(common.engine, Call(by, name, asked, root, self.headers, self._base(), common.options))

    def _base(self) -> str:
        return base_of(self.scope, self.headers, trusted=self.common.trusted).decode("latin-1")

    def output(self, content: Any) -> Response:
        """The answer of the operation."""
        answer: Answer = content
        body = document(answer.root, answer.items) if answer.root else b""
        return _response(answer.status, body, answer.location)

    def error(self, error: Exception) -> Response:
        """An `Error`, with what every client wants in it."""
        told = _told(error)
        items = (
            ("Code", told.code.word),
            ("Message", told.message),
            ("RequestId", request_ids.current()),
            ("HostId", self._base()),
        )
        response = _response(told.code.status, document("Error", items))
        if isinstance(error, Unavailable):
            response.headers.append((b"retry-after", b"%d" % error.retry_after_s))
        return response


def _told(error: Exception) -> MnsError:
    if isinstance(error, MnsError):
        return error
    if isinstance(error, EngineError):
        return mns_error(error)
    if isinstance(error, ProblemError):
        code = {"cross_site": ACCESS_DENIED, "body_too_large": MALFORMED_XML}.get(error.code, INVALID_ARGUMENT)
        return MnsError(code, str(error))
    return MnsError(INTERNAL, "something went wrong in the service")


def _response(status: int, body: bytes, location: str = "") -> Response:
    headers = [_TYPE, _VERSION]
    if location:
        headers.append((b"location", location.encode("latin-1", "replace")))
    if status != 204:
        headers.append((b"content-length", b"%d" % len(body)))
    return Response(status, headers, body)
