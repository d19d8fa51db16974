"""Plain requests of SQS over JSON, which the native front has read: begun in groups, answered one
by one.

What the engine does not take at once, and what names no queue, goes the long way: the front then
gives the request to `exchange` as it came, so its checks and its words are written once.
Neighbours: `dialect` makes one for a worker. This module must not know HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Final

from msgspec import Struct

from engine.errors import EngineError, TooManyInFlight
from engine.shapes import Delivery, Principal
from facade.http.cycle import header_lines, status_line
from facade.http.front import GONE, Hosts
from facade.http.metrics import Metrics
from facade.http.sockets.answers import Answers
from facade.sqs.actions import ACTIONS
from facade.sqs.exchange import REQUEST_PREFIX, JsonExchange, Service
from facade.sqs.messages.messages import shown_id
from facade.sqs.signature import claimed_key_id, signing_key

log = logging.getLogger("leaseway.facade")

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
# The front tells a lane again when it knows this many others; twice as many are kept here, for
# those that requests of before may still name.
LANES: Final = 4096
_OK: Final = 200
KEY_S: Final = 60


class Lane(Struct, frozen=True, gc=False):
    """What requests have in common: who asks, which queue, which tag."""

    by: Principal
    queue: str
    tag: str | None


class PlainRequests:
    """Of one worker; see `facade.http.sockets.listener.Plain`."""

    def __init__(self, service: Service, metrics: Metrics, hosts: Hosts | None) -> None:
        self.request_prefix = REQUEST_PREFIX
        self._service = service
        self._engine = service.engine
        self._metrics = metrics
        self._hosts = hosts
        self._lanes: dict[int, Lane | None] = {}
        self._waiting: dict[int, float] = {}  # receives that were not told yet, and when they began
        self._signers: dict[bytes, Principal] = {}  # of requests whose signatures are checked by the front
        self._key_changes = self._engine.key_changes
        self._given: dict[int, list[Delivery]] = {}  # to connections, in answers that have not left
        self._begin: dict[int, Callable[[int, Lane, list[Any], Answers], Sequence[int]]] = {
            SEND: self._send,
            SEND_BATCH: self._send,
            RECEIVE: self._receive,
            DELETE: self._delete,
            DELETE_BATCH: self._delete,
        }

    @property
    def wants_signatures(self) -> bool:
        """See `Plain`."""
        return not self._service.is_open

    def keys(self, signers: list[bytes]) -> list[tuple[bytes, bytes, int]]:
        """See `Plain`. A key that was told of is asked for again within KEY_S."""
        found = []
        for signer in set(signers):
            key_id, day, region = signer.decode("ascii").split("/")
            known = self._engine.signing_key(key_id, partial(signing_key, day=day, region=region))
            if known is not None:
                by, key, left_ms = known
                if len(self._signers) >= LANES:
                    self._signers.clear()
                self._signers[signer] = by
                found.append((signer, key, min(left_ms // 1000, KEY_S)))
        return found

    def is_stale(self) -> bool:
        """See `Plain`."""
        changes, self._key_changes = self._key_changes, self._engine.key_changes
        if changes == self._key_changes:
            return False
        self._signers.clear()
        self._lanes.clear()
        return True

    def learn(self, lanes: list[tuple[int, bytes, bytes, bytes, str]]) -> None:
        """See `Plain`."""
        for number, host, path, signer, url in lanes:
            self._lanes[number] = self._lane(host, path, signer, url)
        while len(self._lanes) > 2 * LANES:
            del self._lanes[next(iter(self._lanes))]

    def _lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane | None:
        """None: its requests go the long way, which says why."""
        if self._hosts is not None and not self._hosts.allows(host):
            return None
        headers = {b"host": host}
        if signer:
            headers[b"authorization"] = b"AWS4-HMAC-SHA256 Credential=" + signer + b"/"
        scope = {"scheme": "http", "path": path.decode("ascii"), "query_string": b"", "headers": list(headers.items())}
        try:
            if self._service.is_open:
                by = self._engine.authenticate(claimed_key_id(headers.get(b"authorization", b""), b""), None)
            else:
                by = self._signers[signer]
            place = self._service.places.place_of(scope, headers)
            if self._engine.accounts:
                place = place.of(by.account)
            at = place.of_url(url)
        except Exception:
            return None
        return Lane(by, at.queue, at.tag)

    def ask(self, verb: int, lane: int, items: list[Any], answers: Answers) -> None:
        """See `Plain`."""
        known = self._lanes.get(lane)
        left: Sequence[int]
        try:
            left = [item[0] for item in items] if known is None else self._begin[verb](verb, known, items, answers)
        except Exception as error:  # of which nothing can be begun any more: the engine raises before it begins
            for item in items:
                self._refuse(verb, item[0], error, perf_counter(), answers)
            return
        self._metrics.front_read(len(items), len(left))
        if left:
            answers.passed.extend(left)
            answers.soon()

    def _send(self, verb: int, lane: Lane, items: list[Any], answers: Answers) -> Sequence[int]:
        began = perf_counter()

        def tell(connection: int, told: list[str] | Exception) -> None:
            if isinstance(told, Exception):
                self._refuse(verb, connection, told, began, answers)
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
            if self._waiting.pop(connection, None) is not None:
                self._metrics.receive_ends()
            if isinstance(told, Exception):
                # AWS tells only who does not wait, and only of standard queues.
                if not (isinstance(told, TooManyInFlight) and (told.waited or told.fifo)):
                    self._refuse(verb, connection, told, began, answers)
                    return
                told = []
            if told:
                self._given[connection] = told
                answers.received.append((connection, [_shown(delivery) for delivery in told]))
            else:
                answers.received.append((connection, _NOTHING))
            answers.soon()
            self._metrics.observe(_VERB[verb], _OK, perf_counter() - began)

        asked = [
            (connection, 1 if most < 0 else most, None if wait_s < 0 else wait_s * 1000, None if lease_s < 0 else lease_s * 1000)
            for connection, most, wait_s, lease_s in items
        ]
        for one in asked:
            self._waiting[one[0]] = began
            self._metrics.receive_begins()
        left = self._engine.receive_soon(lane.by, lane.queue, lane.tag, asked, tell)
        for connection in left:
            if self._waiting.pop(connection, None) is not None:
                self._metrics.receive_ends()
        return left

    def _delete(self, verb: int, lane: Lane, items: list[Any], answers: Answers) -> Sequence[int]:
        began = perf_counter()

        def tell(connection: int, told: Exception | None) -> None:
            if told is not None:
                self._refuse(verb, connection, told, began, answers)
                return
            answers.deleted.append(connection)
            answers.soon()
            self._metrics.observe(_VERB[verb], _OK, perf_counter() - began)

        return self._engine.ack_soon(lane.by, lane.queue, items, tell)

    def _refuse(self, verb: int, connection: int, error: Exception, began: float, answers: Answers) -> None:
        """Tells of an error after the engine has begun: the request must not be begun again."""
        name = ACTION[verb]
        response = JsonExchange(self._service, {}, {}, name, _VERB[verb], ACTIONS[name], False).error(error)
        if not isinstance(error, EngineError):
            log.error("%s failed", _VERB[verb], exc_info=error)
        answers.other.append((connection, status_line(response.status) + header_lines(response.headers), response.body))
        answers.soon()
        self._metrics.observe(_VERB[verb], response.status, perf_counter() - began)

    def gone(self, connection: int) -> None:
        """See `Plain`."""
        began = self._waiting.pop(connection, None)
        if began is not None:
            self._engine.leave(connection)
            self._metrics.receive_ends()
            self._metrics.observe(_VERB[RECEIVE], GONE, perf_counter() - began)

    def unsent(self, connections: list[int]) -> None:
        """See `Plain`."""
        for connection in connections:
            deliveries = self._given.get(connection)
            if deliveries:
                self._engine.undelivered(deliveries)

    def given(self) -> None:
        """See `Plain`."""
        if self._given:
            self._given.clear()


def _shown(delivery: Delivery) -> tuple[str, str, str, bytes]:
    """A message for the front: id, handle, digest if it is known, body."""
    message = delivery.message
    return delivery.id if not message.attributes else shown_id(delivery), delivery.handle, delivery.body_md5, message.body
