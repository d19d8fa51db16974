"""One request of an operation: credentials, path and query, then the body; any error becomes a
problem.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from engine.errors import EngineError, NotAuthenticated
from engine.shapes import Principal
from facade.dialect import Carried, Response
from facade.http.asgi import check_media_type, credentials
from facade.http.bounds.peers import Peers
from facade.http.decode import decode_json, decode_query
from facade.http.operation import JSON, Answer, Call, Operation
from facade.http.problem import CODES, MEDIA_TYPE, Problem, ProblemError, headers_of, problem, problem_of

if TYPE_CHECKING:
    from starlette.types import Scope

    from engine.engine import Engine

_NOBODY = Principal("anonymous")
_JSON_HEADER = (b"content-type", JSON.encode())
NO_BODY_BYTES = 1024  # of a request without a body: room for an empty JSON object
BODY_BYTES = 1_048_576  # of one whose body holds no messages: 10,000 ids of a task have 0.4 MB
_encode = msgspec.json.Encoder().encode


class Bound(Struct, frozen=True):
    """An operation and the engine that does it."""

    operation: Operation
    engine: Engine
    decoder: msgspec.json.Decoder[Any] | None
    peers: Peers

    @property
    def most_bytes(self) -> int | None:
        """See `Exchange`. Where no body is wanted, as in what anybody may ask, none is read."""
        if self.decoder is None:
            return NO_BODY_BYTES
        return None if self.operation.bulky else BODY_BYTES

    @classmethod
    def to(cls, engine: Engine, operation: Operation, peers: Peers) -> Bound:
        """Binds an operation."""
        return cls(operation, engine, msgspec.json.Decoder(operation.body) if operation.body else None, peers)

    def exchange(self, scope: Scope, headers: Mapping[bytes, bytes], path: Mapping[str, str]) -> OperationExchange:
        """A request; `path` holds the parts that the path template names."""
        operation = self.operation
        peer = self.peers.of(scope, headers)
        query = scope["query_string"]
        return OperationExchange(
            self,
            headers,
            operation.name,
            operation.long_poll,
            operation.changes,
            path,
            query,
            None,
            self.most_bytes,
            peer,
        )


class OperationExchange(Struct, gc=False):
    """A request of an operation."""

    bound: Bound
    headers: Mapping[bytes, bytes]
    verb: str
    long_poll: bool
    changes: bool
    path: Mapping[str, str]
    query_string: bytes
    query: Any = None
    most_bytes: int | None = None
    peer: str = ""  # from where it comes, if that is counted
    suspects_get = False
    signs_body = False
    id_header = b"x-request-id"
    short_id = False

    def check_head(self) -> None:
        """Never called."""

    def principal(self, body: bytes) -> Principal:
        """See `Exchange`; the path and the query are read too."""
        operation, path = self.bound.operation, self.path
        if operation.anonymous or operation.or_anonymous:
            by = _NOBODY if operation.anonymous else self._perhaps()
        else:
            by = self.bound.engine.callers.authenticate(*credentials(self.headers), self.peer)
        for name, rule in operation.rules.items():
            if not rule.pattern.fullmatch(path[name]):
                raise ProblemError(
                    "invalid_value", f"{name} must be {rule.about}.", field=name, limit=rule.about, given=path[name]
                )
        if operation.query is not None:
            self.query = decode_query(operation.query, self.query_string)
        return by

    def _perhaps(self) -> Principal:
        """Who asks, or nobody, when they do not say."""
        given = credentials(self.headers)
        try:
            return self.bound.engine.callers.authenticate(*given, self.peer)
        except NotAuthenticated:
            if given == (None, None):
                return _NOBODY
            raise

    def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Answer | Carried]:
        """See `Exchange`."""
        operation, engine, decoder = self.bound.operation, self.bound.engine, self.bound.decoder
        if decoder is None:
            if body.strip() not in (b"", b"{}"):
                raise ProblemError("unknown_field", "The request has no body.", field="body", given=body)
            return operation.run(engine, Call(by, None, self.path, self.query))
        if body:
            check_media_type(self.headers)
        elif not operation.body_optional:
            raise ProblemError("missing_body", field="body")
        return operation.run(engine, Call(by, decode_json(decoder, body or b"{}"), self.path, self.query))

    def output(self, content: Answer) -> Response:
        """See `Exchange`."""
        return encoded(content)

    def error(self, error: Exception) -> Response:
        """See `Exchange`."""
        operation = self.bound.operation
        if isinstance(error, EngineError) and operation.reword is not None:
            error = operation.reword(error)
        if isinstance(error, EngineError | ProblemError):
            found, headers = problem_of(error), headers_of(error)
        else:
            found, headers = problem("internal", CODES["internal"].title), ()
        answer = problem_answer(found) if operation.render is None else operation.render(found)
        return encoded(msgspec.structs.replace(answer, headers=answer.headers + headers))


class NoOperation(Struct, gc=False):
    """A request at a path, or by a method, that no operation has."""

    headers: Mapping[bytes, bytes]
    refusal: ProblemError
    verb = "none"
    long_poll = changes = suspects_get = signs_body = False
    most_bytes = NO_BODY_BYTES
    id_header = b"x-request-id"
    short_id = False

    def check_head(self) -> None:
        """Never called."""

    def principal(self, body: bytes) -> Principal:
        """See `Exchange`."""
        raise self.refusal

    def start(self, by: Principal, body: bytes) -> Coroutine[Any, Any, Answer | Carried]:
        """Never called: `principal` has refused."""
        raise self.refusal

    def output(self, content: Answer) -> Response:
        """Never called."""
        return encoded(content)

    def error(self, error: Exception) -> Response:
        """See `Exchange`."""
        return encoded(problem_answer(problem_of(self.refusal), headers_of(self.refusal)))


def encoded(answer: Answer) -> Response:
    """`answer` as bytes."""
    content = answer.content
    if content is None:
        headers, body = [(b"content-length", b"0")] if answer.status != 204 else [], b""
    else:
        body = content if isinstance(content, bytes) else _encode(content)
        media_type = (
            _JSON_HEADER if answer.media_type is JSON else (b"content-type", answer.media_type.encode("latin-1"))
        )
        headers = [media_type, (b"content-length", b"%d" % len(body))]
    if answer.headers:
        headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    return Response(answer.status, headers, body)


def problem_answer(found: Problem, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """A problem as problem+json."""
    return Answer(found, found.status, headers, MEDIA_TYPE)
