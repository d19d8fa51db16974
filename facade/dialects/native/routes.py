"""The FastAPI app: a route per operation, and problems for paths and methods that there are not.

It finds the operation; the front serves the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from facade.dialect import Exchange
from facade.dialects.native.exchange import Bound, NoOperation
from facade.http.bounds.peers import Peers
from facade.http.front import Serve
from facade.http.operation import Operation
from facade.http.problem import ProblemError

if TYPE_CHECKING:
    from engine.engine import Engine


class _Served(Response):
    """What the front answers to an exchange."""

    def __init__(self, serve: Serve, exchange: Exchange) -> None:
        super().__init__()
        self._serve = serve
        self._exchange = exchange

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send, self._exchange)


def _endpoint(bound: Bound, serve: Serve) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        return _Served(serve, bound.exchange(request.scope, dict(request.scope["headers"]), request.path_params))

    return endpoint


def allowed_methods(operations: Sequence[Operation]) -> Callable[[str], list[str]]:
    """A function from a path to the methods that some operation has there."""
    patterns = [(compile_path(operation.path)[0], operation.method) for operation in operations]
    return lambda path: sorted({method for pattern, method in patterns if pattern.match(path)})


def fastapi_app(
    engine: Engine,
    operations: Sequence[Operation],
    serve: Serve,
    peers: Peers,
    document: dict[str, Any],
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[Any]],
) -> FastAPI:
    """The app; `document` is what its `openapi()` returns."""
    app = FastAPI(
        title="Leaseway", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan
    )
    allowed = allowed_methods(operations)

    async def refuse(request: Request, error: Exception) -> Response:
        # Starlette names the methods of the first route only, so they are looked up over all of
        # them.
        methods = ", ".join(allowed(request.url.path))
        path = request.scope["path"]
        if isinstance(error, HTTPException) and error.status_code == 405 and methods:
            about = f"{request.method} is not allowed at {path[:200]}."
            refusal = ProblemError(
                "method_not_allowed",
                about,
                field="method",
                limit=methods,
                given=request.method,
                headers=(("allow", methods),),
            )
        else:
            refusal = ProblemError("path_not_found", field="path", given=path)
        return _Served(serve, NoOperation(dict(request.scope["headers"]), refusal))

    app.add_exception_handler(HTTPException, refuse)
    for operation in operations:
        _add(app, operation, _endpoint(Bound.to(engine, operation, peers), serve))
    app.openapi = lambda: document  # type: ignore[method-assign]
    return app


def _add(app: FastAPI, operation: Operation, endpoint: Callable[[Request], Any]) -> None:
    app.add_api_route(
        operation.path,
        endpoint,
        methods=[operation.method],
        name=operation.name,
        summary=operation.summary,
        response_model=None,
        tags=[operation.group],
    )
