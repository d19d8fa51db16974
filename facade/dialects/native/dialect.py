"""The native dialect on its fast path: hot verbs are found by splitting the path by hand; every
other operation is found by FastAPI's routes.

A FastAPI route costs about 70 us a request more than this. The same verbs are routes of that app
too (for 405 and for proxies that mount us under a prefix), with the same exchanges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.types import Scope

from engine.plane import library as lib
from engine.rules.limits import MAX_BATCH_BYTES
from engine.shapes import Principal
from facade.config import Settings
from facade.dialect import Response
from facade.dialects.native.exchange import Bound, OperationExchange
from facade.dialects.native.operations import OPERATIONS
from facade.dialects.native.wire.units import QUEUE_RULE
from facade.http.bounds.peers import peers_of
from facade.http.problem import STATUSES
from facade.http.sockets.routes import Lane, Lanes
from schemas.vocabulary import Verb

if TYPE_CHECKING:
    from engine.engine import Engine
    from facade.http.front import Hosts
    from facade.http.metrics import Metrics

NAME: Final = {
    lib.NATIVE_SEND: "send",
    lib.NATIVE_RECEIVE: "receive",
    lib.NATIVE_ACK: "ack",
    lib.NATIVE_EXTEND: "extend",
    lib.NATIVE_RELEASE: "release",
}
_PREFIX: Final = "/v1/queues/"


class NativeLanes(Lanes):
    """See `Lanes`. `bound`: the operations, by their names."""

    names = NAME
    id_header = OperationExchange.id_header

    def __init__(self, engine: Engine, bound: dict[str, Bound], metrics: Metrics, hosts: Hosts | None) -> None:
        super().__init__(engine, metrics, hosts)
        self._bound = bound

    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        """See `Lanes`."""
        queue = path.decode("ascii").removeprefix(_PREFIX).partition("/")[0]
        if not QUEUE_RULE.pattern.fullmatch(queue):
            raise ValueError(queue)
        return Lane(self._engine.callers.authenticate(None, None), queue, None)

    def route(self, number: int, lane: Lane) -> dict[Verb, str]:
        """See `Lanes`."""
        return self._engine.routes.route(lane.by, lane.queue, lane.tag, number, most_bytes=MAX_BATCH_BYTES)

    def error(self, verb: int, error: Exception, call: Sequence[Any], by: Principal | None) -> Response:
        """See `Lanes`."""
        bound = self._bound[NAME[verb]]
        return OperationExchange(bound, {}, NAME[verb], bound.operation.long_poll, True, {}, b"").error(error)


class NativeDialect:
    """POST /v1/queues/{queue}/{verb}."""

    name: Final = "native"
    errors: Final = STATUSES

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._peers = peers = peers_of(settings.auth, settings.trust_proxy)
        self._counted = settings.auth != "open"
        # A path ends in one word, which need not be the verb's name: send is POST .../messages.
        hot = [operation for operation in OPERATIONS if operation.hot]
        self._hot = {operation.path.rpartition("/")[2]: Bound.to(engine, operation, peers) for operation in hot}
        self._engine = engine

    def lanes(self, metrics: Metrics, hosts: Hosts | None) -> NativeLanes:
        """Returns what knows the requests that the native library has read."""
        return NativeLanes(self._engine, {bound.operation.name: bound for bound in self._hot.values()}, metrics, hosts)

    def claims(self, scope: Scope, headers: Mapping[bytes, bytes]) -> OperationExchange | None:
        """See `Dialect`."""
        if scope["method"] != "POST":
            return None
        path: str = scope["path"]
        if not path.startswith(_PREFIX):
            return None
        queue, _, verb = path[len(_PREFIX) :].partition("/")
        bound = self._hot.get(verb)
        if bound is None or not queue:
            return None
        operation = bound.operation
        peer = self._peers.of(scope, headers) if self._counted else ""
        path_parts = {"queue": queue}
        return OperationExchange(
            bound,
            headers,
            operation.name,
            operation.long_poll,
            True,
            path_parts,
            scope["query_string"],
            None,
            bound.most_bytes,
            peer,
        )
