"""One request in one of the two protocols of SQS: AWS JSON 1.0, and the older query protocol that
answers in XML.

Both turn a request into an action and its input struct, and a reply struct or an error into bytes;
so an action is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, structs
from starlette.types import Scope

from engine.errors import EngineError, NotAuthenticated, Unavailable
from engine.shapes import Principal
from facade.dialect import Response
from facade.dialects.sqs import signature
from facade.dialects.sqs.actions import ACTIONS, READS
from facade.dialects.sqs.paths import of_queue
from facade.dialects.sqs.places import Places
from facade.dialects.sqs.queues.call import Action, Call
from facade.dialects.sqs.wire import forms, xml
from facade.dialects.sqs.wire.errors import (
    ACCESS_DENIED,
    INTERNAL_FAILURE,
    INVALID_ACTION,
    INVALID_PARAMETER,
    MISSING_ACTION,
    MISSING_TOKEN,
    QUEUE_DOES_NOT_EXIST,
    SERIALIZATION,
    SIGNATURE_DOES_NOT_MATCH,
    UNKNOWN_OPERATION,
    Shape,
    SqsError,
    sqs_error,
)
from facade.dialects.sqs.wire.limits import REQUEST_BYTES, Limits
from facade.dialects.sqs.wire.shapes import GetQueueUrl, OfQueue, SendMessage
from facade.dialects.sqs.wire.words import INTERNAL, unreadable_text
from facade.http.bounds.peers import Peers
from facade.http.decode import check_values
from facade.http.log import request_ids
from facade.http.problem import ProblemError

if TYPE_CHECKING:
    from engine.engine import Engine

_JSON_TYPE: Final = (b"content-type", b"application/x-amz-json-1.0")
_XML_TYPE: Final = (b"content-type", b"text/xml")
_NO_QUEUE: Final = "The specified queue does not exist for this wsdl version."  # this protocol's own words
_NO_MATCH: Final = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)
SENDS: Final = frozenset(("SendMessage", "SendMessageBatch"))
OTHER: Final = "sqs.other"  # the verb of what is no action
_encode = msgspec.json.Encoder().encode


class Service(Struct, frozen=True):
    """What all requests of a worker have in common; `is_open` = a key id is believed."""

    engine: Engine
    places: Places
    limits: Limits
    cool_down_s: int
    is_open: bool
    peers: Peers


class SqsExchange(Struct, gc=False):
    """What both protocols have in common."""

    service: Service
    scope: Scope
    headers: Mapping[bytes, bytes]
    name: str = ""  # of the action, once it is known
    verb: str = OTHER
    action: Action | None = None
    long_poll: bool = False
    claim: signature.Claim | None = None
    changes = True
    id_header = b"x-amzn-requestid"
    short_id = False
    unknown = UNKNOWN_OPERATION  # what is answered to an action that is not there

    @property
    def suspects_get(self) -> bool:
        """See `Exchange`."""
        return False

    @property
    def signs_body(self) -> bool:
        """See `Exchange`. The hash of the body that is signed may stand in the head, and mostly
        does not.
        """
        return not self.service.is_open

    def check_head(self) -> None:
        """See `Exchange`. Raises SqsError, NotAuthenticated."""
        self.service.engine.callers.check_key(self._claimed().key_id, self._peer())

    def principal(self, body: bytes) -> Principal:
        """See `Exchange`. Open mode believes the key id, required mode the signature. Raises
        SqsError.
        """
        service, scope = self.service, self.scope
        if not service.is_open:
            return self._signer(body)
        return service.engine.callers.authenticate(
            signature.claimed_key_id(self.headers.get(b"authorization", b""), scope.get("query_string", b"")), None
        )

    def _claimed(self) -> signature.Claim:
        """What the head claims. Raises SqsError."""
        if self.claim is None:
            scope = self.scope
            path = scope.get("raw_path") or scope["path"].encode("latin-1")
            called = self.service.places.called(scope, self.headers)
            self.claim = signature.claim_of(signature.Asked(scope["method"], path, scope["query_string"], called))
            if self.claim is None:
                raise SqsError(MISSING_TOKEN, "Request is missing Authentication Token")
            self.claim.check_time(datetime.now(UTC))
        return self.claim

    def _peer(self) -> str:
        return self.service.peers.of(self.scope, self.headers)

    def _signer(self, body: bytes) -> Principal:
        claim = self._claimed()
        try:
            return self.service.engine.callers.authenticate_signed(
                claim.key_id, lambda secret: claim.fits(secret, body), self._peer()
            )
        except NotAuthenticated as error:
            if error.field != "signature":
                raise
            raise SqsError(SIGNATURE_DOES_NOT_MATCH, _NO_MATCH) from None

    def run(self, action: Action, by: Principal, given: Any) -> Coroutine[Any, Any, Any]:
        """Begins the action with its input."""
        service, headers = self.service, self.headers
        place = service.places.place_of(self.scope, headers)
        if service.engine.callers.accounts:
            place = place.of(by.account)
        trace = headers.get(b"x-amzn-trace-id", b"")
        return action.run(service.engine, Call(by, given, place, service.limits, service.cool_down_s, trace))

    def error(self, error: Exception) -> Response:
        """See `Exchange`."""
        if isinstance(error, SqsError):
            return self.refusal(error)
        if isinstance(error, EngineError):
            response = self.refusal(sqs_error(error, self.name))
            if isinstance(error, Unavailable):
                response.headers.append((b"retry-after", b"%d" % error.retry_after_s))
            return response
        if isinstance(error, ProblemError):
            return self.refusal(
                SqsError(ACCESS_DENIED if error.code == "cross_site" else INVALID_PARAMETER, str(error))
            )
        return self.refusal(SqsError(INTERNAL_FAILURE, INTERNAL))

    def refusal(self, error: SqsError) -> Response:
        """The reply that says an error of SQS."""
        raise NotImplementedError

    def not_there(self) -> SqsError:
        """That there is no such action."""
        return SqsError(self.unknown, f"The action {self.name[:100]} is not valid for this endpoint.")


def _fault(error: SqsError) -> str:
    return "Sender" if error.shape.sender_fault else "Receiver"


class JsonExchange(SqsExchange, gc=False):
    """AWS JSON 1.0: the action in a header, the input in the body."""

    @property
    def most_bytes(self) -> int | None:
        """See `Exchange`."""
        return self.service.limits.json_bytes if self.name in SENDS else REQUEST_BYTES

    def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Any]:
        """See `Exchange`."""
        if self.action is None:
            raise self.not_there()
        check_values(body)
        try:
            given = self.action.decoder.decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise SqsError(SERIALIZATION, unreadable_text(error)) from None
        return self.run(self.action, by, given)

    def output(self, content: Struct) -> Response:
        """See `Exchange`."""
        return _json(200, _encode(content))

    def refusal(self, error: SqsError) -> Response:
        """See `SqsExchange`."""
        shape = error.shape
        response = _json(
            shape.status, _encode({"__type": shape.type, "message": error.message.encode("utf-8", "replace").decode()})
        )
        response.headers.append((b"x-amzn-query-error", f"{shape.code};{_fault(error)}".encode("ascii")))
        return response


def _json(status: int, body: bytes) -> Response:
    return Response(status, [_JSON_TYPE, (b"content-length", b"%d" % len(body))], body)


class QueryExchange(SqsExchange, gc=False):
    """The query protocol: action and input as fields of the query string or of a form; the queue
    may be the path.
    """

    unknown = INVALID_ACTION

    @property
    def suspects_get(self) -> bool:
        """See `Exchange`. In required mode a signature proves who asks, in the URL too."""
        if not self.service.is_open:
            return False
        try:
            name = forms.parse(self.scope["query_string"], b"").get("Action")
        except SqsError:
            return False  # it is refused when it is read again
        return isinstance(name, str) and name in ACTIONS and name not in READS

    @property
    def most_bytes(self) -> int | None:
        """See `Exchange`."""
        return self.service.limits.form_bytes

    def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Any]:
        """See `Exchange`."""
        fields = forms.parse(self.scope["query_string"], body)
        name = fields.get("Action")
        if not isinstance(name, str) or not name:
            if of_queue(self.scope["path"]) and not body:
                raise SqsError(UNKNOWN_OPERATION, "The request names no action.")
            raise SqsError(MISSING_ACTION, "The request must contain the parameter Action.")
        self.name = name
        action = ACTIONS.get(name)
        if action is None:
            raise self.not_there()
        if name not in SENDS and len(body) > REQUEST_BYTES:
            raise SqsError(
                INVALID_PARAMETER, f"A request of {name} may have {REQUEST_BYTES} bytes, this one has {len(body)}."
            )
        self.verb, self.long_poll = f"sqs.{name}", action.long_poll
        return self.run(action, by, self._input(action, fields))

    def _input(self, action: Action, fields: Any) -> Any:
        path: str = self.scope["path"]
        found = forms.struct_of(action.body, fields, self.name)
        if not of_queue(path) or isinstance(found, GetQueueUrl):
            return found
        if not isinstance(found, OfQueue | SendMessage):
            raise SqsError(INVALID_ACTION, f"The action {self.name} is not valid for this endpoint.")
        return found if found.queue_url else structs.replace(found, queue_url=path)

    def output(self, content: Struct) -> Response:
        """See `Exchange`."""
        return _xml(200, lambda number: xml.reply(self.name, content, number))

    def refusal(self, error: SqsError) -> Response:
        """See `SqsExchange`."""
        shape: Shape = error.shape
        if shape is UNKNOWN_OPERATION:  # AWS's framework says so itself, whatever the protocol is
            return _xml(shape.status, lambda number: b"<UnknownOperationException/>\n")
        message = _NO_QUEUE if shape is QUEUE_DOES_NOT_EXIST else error.message
        return _xml(shape.status, lambda number: xml.error(_fault(error), shape.code, message, number))


class GetExchange(QueryExchange, gc=False):
    """The query protocol by GET, which has no body."""

    @property
    def most_bytes(self) -> int | None:
        """See `Exchange`."""
        return 1024


def _xml(status: int, text: Callable[[str], bytes]) -> Response:
    body = text(request_ids.current())
    return Response(status, [_XML_TYPE, (b"content-length", b"%d" % len(body))], body)
