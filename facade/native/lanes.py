"""What requests of the native API have in common that the native library has read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.rules.limits import MAX_BATCH_BYTES
from facade.dialect import Response
from facade.http.sockets.routes import Lane, Lanes
from facade.native.exchange import Bound, OperationExchange
from facade.native.wire.units import QUEUE_RULE

if TYPE_CHECKING:
    from engine.engine import Engine
    from facade.http.front import Hosts
    from facade.http.metrics import Metrics

# Numbers of verbs; native/src/requests.rs has the same.
SEND, RECEIVE, ACK = range(12, 15)
NAME: Final = {SEND: "send", RECEIVE: "receive", ACK: "ack"}
_PREFIX: Final = "/v1/queues/"


class NativeLanes(Lanes):
    """See `Lanes`. `bound`: the operations, by their names."""

    names = NAME

    def __init__(self, engine: Engine, bound: dict[str, Bound], metrics: Metrics, hosts: Hosts | None) -> None:
        super().__init__(engine, metrics, hosts)
        self._bound = bound

    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        """See `Lanes`."""
        queue = path.decode("ascii").removeprefix(_PREFIX).partition("/")[0]
        if not QUEUE_RULE.pattern.fullmatch(queue):
            raise ValueError(queue)
        return Lane(self._engine.authenticate(None, None), queue, None)

    def route(self, number: int, lane: Lane) -> bool:
        """See `Lanes`."""
        return self._engine.route(lane.by, lane.queue, lane.tag, number, most_bytes=MAX_BATCH_BYTES)

    def error(self, verb: int, error: Exception) -> Response:
        """See `Lanes`."""
        bound = self._bound[NAME[verb]]
        return OperationExchange(bound, {}, NAME[verb], bound.operation.long_poll, True, {}, b"").error(error)
