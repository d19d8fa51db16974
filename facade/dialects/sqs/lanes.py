"""What requests of SQS over JSON have in common that the native library has read, and the keys by
which it checks their signatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from engine.plane import library as lib
from engine.shapes import Principal
from facade.dialect import Response
from facade.dialects.sqs.actions import ACTIONS
from facade.dialects.sqs.exchange import JsonExchange, Service
from facade.dialects.sqs.signature import claimed_key_id, signing_key
from facade.dialects.sqs.wire.limits import VISIBILITY_SECONDS
from facade.http.front import Hosts
from facade.http.metrics import Metrics
from facade.http.sockets.routes import Lane, Lanes
from schemas.vocabulary import Verb

ACTION: Final = {
    lib.SEND: "SendMessage",
    lib.SEND_BATCH: "SendMessageBatch",
    lib.RECEIVE: "ReceiveMessage",
    lib.DELETE: "DeleteMessage",
    lib.DELETE_BATCH: "DeleteMessageBatch",
    lib.CHANGE: "ChangeMessageVisibility",
    lib.CHANGE_BATCH: "ChangeMessageVisibilityBatch",
}
_VERB: Final = {number: f"sqs.{name}" for number, name in ACTION.items()}
KEY_S: Final = 60
# The front has as many keys at most (native/src/auth/keys.rs), of signers that must be known here.
SIGNERS: Final = 16_384


class SqsLanes(Lanes):
    """See `Lanes`."""

    names = _VERB
    id_header = JsonExchange.id_header

    def __init__(self, service: Service, metrics: Metrics, hosts: Hosts | None) -> None:
        super().__init__(service.engine, metrics, hosts)
        self._service = service
        self._signers: dict[bytes, Principal] = {}  # of requests whose signatures are checked by the front

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        """See `Routes`. A key that was told of is asked for again within KEY_S."""
        found = []
        for signer, address in set(map(tuple, signers)):
            key_id, day, region = signer.decode("ascii").split("/")
            at = self._service.peers.of_read(address)
            known = self._engine.callers.signing_key(key_id, partial(signing_key, day=day, region=region), at)
            if known is not None:
                by, key, left_ms = known
                self._signers.pop(signer, None)  # to be the last one to be forgotten
                self._signers[signer] = by
                if len(self._signers) > SIGNERS:
                    del self._signers[next(iter(self._signers))]
                found.append((signer, address, key, min(left_ms // 1000, KEY_S)))
        return found

    def forget(self) -> None:
        """See `Lanes`."""
        super().forget()
        self._signers.clear()

    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        """See `Lanes`."""
        headers = {b"host": host}
        if signer:
            headers[b"authorization"] = b"AWS4-HMAC-SHA256 Credential=" + signer + b"/"
        scope = {"scheme": "http", "path": path.decode("ascii"), "query_string": b"", "headers": list(headers.items())}
        if self._service.is_open:
            by = self._engine.callers.authenticate(claimed_key_id(headers.get(b"authorization", b""), b""), None)
        else:
            by = self._signers[signer]
        place = self._service.places.place_of(scope, headers)
        if self._engine.callers.accounts:
            place = place.of(by.account)
        at = place.of_url(url)
        return Lane(by, at.queue, at.tag)

    def route(self, number: int, lane: Lane) -> dict[Verb, str]:
        """See `Lanes`."""
        most_bytes, most_s = self._service.limits.batch_bytes, VISIBILITY_SECONDS[1]
        return self._engine.routes.route(
            lane.by, lane.queue, lane.tag, number, some=1, most_bytes=most_bytes, most_leased_s=most_s
        )

    def error(self, verb: int, error: Exception, call: Sequence[Any], by: Principal | None) -> Response:
        """See `Lanes`."""
        name = ACTION[verb]
        return JsonExchange(self._service, {}, {}, name, _VERB[verb], ACTIONS[name], False).error(error)
