"""The FastAPI app: a route per operation, and problems for paths and methods that there are not.

Neighbours: `facade.app` gives the operations and their handlers; `openapi` the document. This
module must not know what an operation does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from facade.http.asgi import Response as Encoded
from facade.http.asgi import Whole, reply, whole_of
from facade.http.handler import Handler, encoded, problem_answer
from facade.http.metrics import Metrics
from facade.http.operation import Operation
from facade.http.problem import CODES, problem

NO_OPERATION = "none"  # the verb of requests that match no operation, in the metrics


class _Carrying(Response):
    """A response of which somebody must hear when it can't be sent."""

    def __init__(self, found: Encoded, whole: Whole | None) -> None:
        super().__init__(found.body, found.status)
        self._found = found
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await reply(self._whole, send, self._found)


def _response(found: Encoded) -> Response:
    response = Response(found.body, found.status)
    response.raw_headers = list(found.headers)
    return response


def _endpoint(handler: Handler) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        whole = whole_of(request.scope)
        found = await handler.respond(request.scope, request.receive, request.path_params)
        return _response(found) if found.unsent is None else _Carrying(found, whole)

    return endpoint


def allowed_methods(operations: Sequence[Operation]) -> Callable[[str], list[str]]:
    """A function from a path to the methods that some operation has there."""
    patterns = [(compile_path(operation.path)[0], operation.method) for operation in operations]
    return lambda path: sorted({method for pattern, method in patterns if pattern.match(path)})


def fastapi_app(
    operations: Sequence[Operation],
    handlers: Mapping[str, Handler],
    metrics: Metrics,
    document: dict[str, Any],
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]],
) -> FastAPI:
    """The app. `handlers` has one entry per operation's name; `document` is what its `openapi()`
    returns.
    """
    app = FastAPI(title="Leaseway", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan)
    allowed = allowed_methods(operations)

    async def refuse(request: Request, error: Exception) -> Response:
        # Starlette names the methods of the first route only, so they are looked up over all of
        # them.
        methods = allowed(request.url.path)
        path = request.scope["path"]
        if isinstance(error, HTTPException) and error.status_code == 405 and methods:
            found = problem(
                "method_not_allowed",
                f"{request.method} is not allowed at {path[:200]}.",
                field="method",
                limit=", ".join(methods),
                given=request.method,
            )
            response = encoded(problem_answer(found, (("allow", ", ".join(methods)),)))
        else:
            found = problem("path_not_found", CODES["path_not_found"].title, field="path", given=path)
            response = encoded(problem_answer(found))
        metrics.observe(NO_OPERATION, response.status, 0.0)
        return _response(response)

    app.add_exception_handler(HTTPException, refuse)
    for operation in operations:
        app.add_api_route(
            operation.path,
            _endpoint(handlers[operation.name]),
            methods=[operation.method],
            name=operation.name,
            summary=operation.summary,
            response_model=None,
            tags=[operation.group],
        )
    app.openapi = lambda: document  # type: ignore[method-assign]
    return app
