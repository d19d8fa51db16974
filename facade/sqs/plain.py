"""Plain requests of SQS over JSON, which the native front has read: how they are begun and told.

Neighbours: `facade.http.sockets.groups` has what dialects share; `dialect` makes one for a worker.
This module must not know HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final

from engine.errors import TooManyInFlight
from engine.shapes import Delivery, Principal
from facade.dialect import Response
from facade.http.front import Hosts
from facade.http.metrics import Metrics
from facade.http.sockets.answers import Answers
from facade.http.sockets.groups import Groups, Lane
from facade.sqs.actions import ACTIONS
from facade.sqs.exchange import JsonExchange, Service
from facade.sqs.messages.messages import shown_id
from facade.sqs.signature import claimed_key_id, signing_key

# Numbers of verbs; native/src/requests.rs has the same.
SEND, SEND_BATCH, RECEIVE, DELETE, DELETE_BATCH = range(1, 6)
ACTION: Final = {
    SEND: "SendMessage",
    SEND_BATCH: "SendMessageBatch",
    RECEIVE: "ReceiveMessage",
    DELETE: "DeleteMessage",
    DELETE_BATCH: "DeleteMessageBatch",
}
_VERB: Final = {number: f"sqs.{name}" for number, name in ACTION.items()}
_NOTHING: Final[list[tuple[str, str, str, bytes]]] = []
_OK: Final = 200
KEY_S: Final = 60
# The front has as many keys at most (native/src/auth/keys.rs), of signers that must be known here.
SIGNERS: Final = 16_384


class SqsGroups(Groups):
    """See `Groups`."""

    names = _VERB
    receives = RECEIVE

    def __init__(self, service: Service, metrics: Metrics, hosts: Hosts | None) -> None:
        super().__init__(service.engine, metrics, hosts)
        self._service = service
        self._signers: dict[bytes, Principal] = {}  # of requests whose signatures are checked by the front
        self.begins = {SEND: self._send, SEND_BATCH: self._send, RECEIVE: self._receive, DELETE: self._delete, DELETE_BATCH: self._delete}

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        """See `Plain`. A key that was told of is asked for again within KEY_S."""
        found = []
        for signer, address in set(map(tuple, signers)):
            key_id, day, region = signer.decode("ascii").split("/")
            at = self._service.peers.of_read(address)
            known = self._engine.signing_key(key_id, partial(signing_key, day=day, region=region), at)
            if known is not None:
                by, key, left_ms = known
                self._signers.pop(signer, None)  # to be the last one to be forgotten
                self._signers[signer] = by
                if len(self._signers) > SIGNERS:
                    del self._signers[next(iter(self._signers))]
                found.append((signer, address, key, min(left_ms // 1000, KEY_S)))
        return found

    def forget(self) -> None:
        """See `Groups`."""
        super().forget()
        self._signers.clear()

    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        """See `Groups`."""
        headers = {b"host": host}
        if signer:
            headers[b"authorization"] = b"AWS4-HMAC-SHA256 Credential=" + signer + b"/"
        scope = {"scheme": "http", "path": path.decode("ascii"), "query_string": b"", "headers": list(headers.items())}
        if self._service.is_open:
            by = self._engine.authenticate(claimed_key_id(headers.get(b"authorization", b""), b""), None)
        else:
            by = self._signers[signer]
        place = self._service.places.place_of(scope, headers)
        if self._engine.accounts:
            place = place.of(by.account)
        at = place.of_url(url)
        return Lane(by, at.queue, at.tag)

    def route(self, number: int, lane: Lane) -> bool:
        """See `Groups`."""
        return self._engine.plane.is_on and not self._engine.route(
            lane.by, lane.queue, lane.tag, number, some=1, most_bytes=self._service.limits.batch_bytes
        )

    def _send(self, verb: int, lane: Lane, items: list[Any], answers: Answers) -> Sequence[int]:
        began = perf_counter()

        def tell(connection: int, told: list[str] | Exception, _: list[int]) -> None:
            if isinstance(told, Exception):
                self.refuse(verb, lane, connection, told, began, answers)
                return
            answers.sent.append((connection, told))
            answers.soon()
            self._metrics.observe(_VERB[verb], _OK, perf_counter() - began)

        if verb == SEND:
            return self._engine.send_soon(lane.by, lane.queue, items, tell)
        most = self._service.limits.batch_bytes
        fit = [item for item in items if sum(map(len, item[1])) <= most]
        left = self._engine.send_soon(lane.by, lane.queue, fit, tell)
        return left if len(fit) == len(items) else [*left, *(item[0] for item in items if item not in fit)]

    def _receive(self, verb: int, lane: Lane, items: list[Any], answers: Answers) -> Sequence[int]:
        began = perf_counter()

        def tell(connection: int, told: list[Delivery] | Exception) -> None:
            if isinstance(told, Exception):
                # AWS tells only who does not wait, and only of standard queues.
                if not (isinstance(told, TooManyInFlight) and (told.waited or told.fifo)):
                    self.refuse(verb, lane, connection, told, began, answers)
                    return
                told = []
            answers.received.append((connection, [_shown(delivery) for delivery in told] if told else _NOTHING))
            answers.soon()
            self._metrics.observe(_VERB[verb], _OK, perf_counter() - began)

        return self.receive_soon(lane, items, 1, began, tell)

    def _delete(self, verb: int, lane: Lane, items: list[Any], answers: Answers) -> Sequence[int]:
        began = perf_counter()

        def tell(connection: int, told: list[str] | Exception) -> None:
            if isinstance(told, Exception):
                self.refuse(verb, lane, connection, told, began, answers)
                return
            answers.deleted.append(connection)
            answers.soon()
            self._metrics.observe(_VERB[verb], _OK, perf_counter() - began)

        return self._engine.ack_soon(lane.by, lane.queue, items, tell)

    def error(self, verb: int, error: Exception) -> Response:
        """See `Groups`."""
        name = ACTION[verb]
        return JsonExchange(self._service, {}, {}, name, _VERB[verb], ACTIONS[name], False).error(error)


def _shown(delivery: Delivery) -> tuple[str, str, str, bytes]:
    """A message for the front: id, handle, digest if it is known, body."""
    message = delivery.message
    return delivery.id if not message.attributes else shown_id(delivery), delivery.handle, delivery.body_md5, message.body
