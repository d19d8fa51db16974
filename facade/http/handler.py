"""Runs one operation for one request: credentials, body, shape, engine, answer; any error becomes a
problem.

Neighbours: the bare path and FastAPI's routes both call `Handler.respond`, so a request is treated
the same on either. This module must not know any operation.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.types import Receive, Scope

from engine.errors import EngineError
from engine.shapes import Principal
from facade.http.asgi import ClientGone, Intake, Response, check_media_type, credentials, unless_gone, whole_of
from facade.http.decode import decode_json, decode_query
from facade.http.metrics import Metrics
from facade.http.operation import JSON, Answer, Call, Operation
from facade.http.problem import CODES, MEDIA_TYPE, Problem, ProblemError, headers_of, problem, problem_of

if TYPE_CHECKING:
    from engine.engine import Engine


log = logging.getLogger("leaseway.facade")
_NOBODY = Principal("anonymous")
GONE = Response(499, [], b"")  # for the metrics only: there is nobody to send it to
_JSON_HEADER = (b"content-type", JSON.encode())
_encode = msgspec.json.Encoder().encode


def encoded(answer: Answer) -> Response:
    """`answer` as bytes."""
    content = answer.content
    if content is None:
        headers, body = [(b"content-length", b"0")] if answer.status != 204 else [], b""
    else:
        body = content if isinstance(content, bytes) else _encode(content)
        media_type = _JSON_HEADER if answer.media_type is JSON else (b"content-type", answer.media_type.encode("latin-1"))
        headers = [media_type, (b"content-length", b"%d" % len(body))]
    if answer.headers:
        headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    return Response(answer.status, headers, body, answer.unsent)


def problem_answer(found: Problem, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """A problem as problem+json."""
    return Answer(found, found.status, headers, MEDIA_TYPE)


class Handler:
    """One operation bound to an engine. Safe for any number of requests at once."""

    def __init__(self, operation: Operation, engine: Engine, intake: Intake, metrics: Metrics) -> None:
        self._operation = operation
        self._engine = engine
        self._intake = intake
        self._metrics = metrics
        self._decoder: msgspec.json.Decoder[Any] | None = msgspec.json.Decoder(operation.body) if operation.body else None

    async def respond(self, scope: Scope, receive: Receive, path: Mapping[str, str]) -> Response:
        """The response to one request; `path` holds the parts that the path template names. Raises
        nothing but cancellation.
        """
        started = perf_counter()
        try:
            answer = await self._answer(scope, receive, path)
            try:
                response = encoded(answer)
            except BaseException:
                if answer.unsent is not None:
                    answer.unsent()
                raise
        except ClientGone:
            response = GONE
        except (EngineError, ProblemError) as error:
            if isinstance(error, EngineError) and self._operation.reword is not None:
                error = self._operation.reword(error)
            found = problem_of(error)
            if found.status == 500:
                log.exception("%s failed", self._operation.name)
            response = self._refusal(found, headers_of(error))
        except Exception:
            log.exception("%s failed", self._operation.name)
            response = self._refusal(problem("internal", CODES["internal"].title))
        self._metrics.observe(self._operation.name, response.status, perf_counter() - started)
        return response

    def _refusal(self, found: Problem, headers: tuple[tuple[str, str], ...] = ()) -> Response:
        render = self._operation.render
        if render is None:
            return encoded(problem_answer(found, headers))
        answer = render(found)
        return encoded(msgspec.structs.replace(answer, headers=answer.headers + headers))

    async def _answer(self, scope: Scope, receive: Receive, path: Mapping[str, str]) -> Answer:
        operation = self._operation
        headers = dict(scope["headers"])
        # In open mode the browser of somebody on this machine is all that stands between us and any
        # page they look at.
        if operation.method != "GET" and headers.get(b"sec-fetch-site") == b"cross-site":
            raise ProblemError("cross_site", field="Sec-Fetch-Site", limit="same-origin", given="cross-site")
        by = self._principal(headers)
        for name, rule in operation.rules.items():
            if not rule.pattern.fullmatch(path[name]):
                raise ProblemError("invalid_value", f"{name} must be {rule.about}.", field=name, limit=rule.about, given=path[name])
        query = None if operation.query is None else decode_query(operation.query, scope["query_string"])
        body = self._intake.taken(whole_of(scope))
        if body is None:
            body = await self._intake.read(headers, receive)
        try:
            call = operation.run(self._engine, Call(by, path, query, self._decoded(headers, body)))
            if operation.long_poll:
                self._metrics.receive_begins()
                try:
                    return await unless_gone(call, receive)
                finally:
                    self._metrics.receive_ends()
            return await call
        finally:
            self._intake.release(body)

    def _principal(self, headers: Mapping[bytes, bytes]) -> Principal:
        if self._operation.anonymous:
            return _NOBODY
        key_id, secret = credentials(headers)
        return self._engine.authenticate(key_id, secret)

    def _decoded(self, headers: Mapping[bytes, bytes], body: bytes) -> Any:
        if self._decoder is None:
            if body.strip() not in (b"", b"{}"):
                raise ProblemError("unknown_field", "The request has no body.", field="body", given=body)
            return None
        if not body:
            if not self._operation.body_optional:
                raise ProblemError("missing_body", field="body")
            body = b"{}"
        else:
            check_media_type(headers)
        return decode_json(self._decoder, body)
