"""What calls of EMQ have in common that the native library has read: who asks, and the queue that
the call names. It reads them in open mode: of a signature Python alone says whether it is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.errors import QueueNotFound
from engine.plane import library as lib
from engine.rules.limits import MAX_BATCH_BYTES
from engine.shapes import Principal
from facade.dialect import Response
from facade.dialects.emq.exchange import Common, EmqExchange
from facade.dialects.emq.queues.names import steady_record_of
from facade.dialects.emq.wire.protocols import ThriftCall
from facade.dialects.emq.wire.services import MESSAGE_SERVICE
from facade.http.front import Hosts
from facade.http.metrics import Metrics
from facade.http.sockets.routes import Lane, Lanes
from schemas.vocabulary import Verb

METHOD: Final = {
    lib.EMQ_SEND: "sendMessage",
    lib.EMQ_SEND_BATCH: "sendMessageBatch",
    lib.EMQ_RECEIVE: "receiveMessage",
    lib.EMQ_DELETE: "deleteMessage",
    lib.EMQ_DELETE_BATCH: "deleteMessageBatch",
}
_VERB: Final = {number: f"emq.{name}" for number, name in METHOD.items()}


class EmqLanes(Lanes):
    """See `Lanes`."""

    names = _VERB
    id_header = EmqExchange.id_header

    def __init__(self, common: Common, metrics: Metrics, hosts: Hosts | None) -> None:
        super().__init__(common.engine, metrics, hosts)
        self._common = common

    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        """See `Lanes`. `signer` is a key id, `url` the name of a queue."""
        by = self._engine.callers.authenticate(signer.decode("ascii") or None, None)
        record = steady_record_of(self._engine, url, by)
        if record is None:
            raise QueueNotFound(f"there is no queue {url[:200]!r}", field="queue", given=url[:200])
        return Lane(by, record.name, None)

    def route(self, number: int, lane: Lane) -> dict[Verb, str]:
        """See `Lanes`."""
        return self._engine.routes.route(lane.by, lane.queue, lane.tag, number, most_bytes=MAX_BATCH_BYTES)

    def error(self, verb: int, error: Exception, call: Sequence[Any], by: Principal | None) -> Response:
        """See `Lanes`."""
        media, seqid, queue, query = call or (b"", 0, "", b"")  # none of a client that has gone
        asked = ThriftCall(MESSAGE_SERVICE.methods[METHOD[verb]], seqid, queue) if call else None
        scope, headers = {"query_string": query}, {b"content-type": media}
        return EmqExchange(self._common, MESSAGE_SERVICE, scope, headers, asked, by).error(error)
