"""Plain requests of the native API, which the native front has read: how they are begun and told.

Neighbours: `facade.http.sockets.groups` has what dialects share; `dialect` makes one for a worker.
This module must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from engine.shapes import Delivery
from facade.dialect import Response
from facade.http.operation import Answer
from facade.http.sockets.answers import Answers
from facade.http.sockets.groups import Groups, Lane
from facade.native.exchange import Bound, OperationExchange, encoded
from facade.native.wire.render import delivery_reply
from facade.native.wire.replies import ReceiveReply, ResultReply, ResultsReply, SendReply, SentReply
from facade.native.wire.units import QUEUE_RULE

if TYPE_CHECKING:
    from engine.engine import Engine
    from facade.http.front import Hosts
    from facade.http.metrics import Metrics

# Numbers of verbs; native/src/requests.rs has the same.
SEND, RECEIVE, ACK = range(12, 15)
NAME: Final = {SEND: "send", RECEIVE: "receive", ACK: "ack"}
_PREFIX: Final = "/v1/queues/"
MOST: Final = 100  # of a receive; native/src/requests.rs has the same


class NativeGroups(Groups):
    """See `Groups`. `bound`: the operations, by their names."""

    names = NAME
    receives = RECEIVE

    def __init__(self, engine: Engine, bound: dict[str, Bound], metrics: Metrics, hosts: Hosts | None) -> None:
        super().__init__(engine, metrics, hosts)
        self._bound = bound
        self.begins = {SEND: self._send, RECEIVE: self._receive, ACK: self._ack}

    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        """See `Groups`."""
        queue = path.decode("ascii").removeprefix(_PREFIX).partition("/")[0]
        if not QUEUE_RULE.pattern.fullmatch(queue):
            raise ValueError(queue)
        return Lane(self._engine.authenticate(None, None), queue, None)

    def _send(self, verb: int, lane: Lane, items: list[Any], answers: Answers) -> Sequence[int]:
        began = perf_counter()
        digests: dict[int, list[str]] = {connection: known for connection, _, known in items}

        def tell(connection: int, told: list[str] | Exception, at_ms: list[int]) -> None:
            if isinstance(told, Exception):
                self.refuse(verb, lane, connection, told, began, answers)
                return
            rows = zip(told, digests[connection], at_ms, strict=True)
            reply = SendReply(messages=[SentReply(id=name, body_md5=digest, sent_at_ms=at) for name, digest, at in rows])
            self.tell(verb, connection, encoded(Answer(reply)), began, answers)

        return self._engine.send_soon(lane.by, lane.queue, items, tell)

    def _receive(self, verb: int, lane: Lane, items: list[Any], answers: Answers) -> Sequence[int]:
        began = perf_counter()

        def tell(connection: int, told: list[Delivery] | Exception) -> None:
            if isinstance(told, Exception):
                self.refuse(verb, lane, connection, told, began, answers)
                return
            try:
                response = encoded(Answer(ReceiveReply(messages=[delivery_reply(delivery) for delivery in told])))
            except Exception as error:
                self.unsent([connection])
                self.refuse(verb, lane, connection, error, began, answers)
                return
            self.tell(verb, connection, response, began, answers, carries=bool(told))

        # The queue's setting bounds them too.
        return self.receive_soon(lane, items, MOST, began, tell)

    def _ack(self, verb: int, lane: Lane, items: list[Any], answers: Answers) -> Sequence[int]:
        began = perf_counter()
        handles: dict[int, list[str]] = dict(items)

        def tell(connection: int, told: list[str] | Exception) -> None:
            if isinstance(told, Exception):
                self.refuse(verb, lane, connection, told, began, answers)
                return
            rows: Any = zip(handles[connection], told, strict=True)
            reply = ResultsReply(results=[ResultReply(handle=handle, status=status) for handle, status in rows])
            self.tell(verb, connection, encoded(Answer(reply)), began, answers)

        return self._engine.ack_soon(lane.by, lane.queue, items, tell)

    def error(self, verb: int, error: Exception) -> Response:
        """See `Groups`."""
        bound = self._bound[NAME[verb]]
        return OperationExchange(bound, {}, NAME[verb], bound.operation.long_poll, True, {}, b"").error(error)
