"""Plain requests, which the native front has read: begun in groups, answered one by one.

What the engine does not take at once, and what names no queue, goes the long way: the front then
gives the request to the dialect's exchange as it came, so checks and words are written once.
`Groups` is what the dialects share; `AllGroups` gives each its own. This module must not know the
words of a dialect, or how bytes become requests.
"""

from __future__ import annotations

import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from engine.errors import Denied, EngineError, LogUnavailable, NotStored, StoreUnavailable
from engine.plane.library import FAILED, NOT_STORED, STATE, Library
from engine.shapes import Delivery, Principal, TellReceived
from facade.dialect import Response
from facade.http.asgi import header_lines, status_line
from facade.http.front import GONE, Hosts, answered_id
from facade.http.metrics import BUCKETS
from facade.http.sockets.answers import Answers
from schemas.accounts import full
from schemas.vocabulary import Verb

if TYPE_CHECKING:
    from engine.engine import Engine
    from facade.http.metrics import Metrics

log = logging.getLogger("leaseway.facade")

# The front tells a lane again when it knows this many others; twice as many are kept here, for
# those that requests of before may still name.
LANES: Final = 4096
_OK: Final = 200


class Lane(Struct, frozen=True, gc=False):
    """What requests have in common: who asks, which queue, which tag."""

    by: Principal
    queue: str
    tag: str | None


# Begins requests of one verb, and returns the connections whose requests are left.
Begin = Callable[[int, Lane, list[Any], Answers], Sequence[int]]


class Groups(ABC):
    """Of one dialect and worker. A dialect has `begins` and `names`, by the numbers of its verbs,
    and says what a lane is and how an error is told.
    """

    begins: Mapping[int, Begin]
    names: Mapping[int, str]  # under which they are counted
    receives: int  # the number of its receives

    def __init__(self, engine: Engine, metrics: Metrics, hosts: Hosts | None) -> None:
        self._engine = engine
        self._metrics = metrics
        self._hosts = hosts
        self._lanes: dict[int, Lane | None] = {}
        self._waiting: dict[int, float] = {}  # receives that were not told yet, and when they began
        self.unrouted: list[int] = []  # lanes that the plane does not serve yet
        self._given: dict[int, list[Delivery]] = {}  # to connections, in answers that have not left

    @abstractmethod
    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        """Raises any error for requests that go the long way, which says why."""

    @abstractmethod
    def error(self, verb: int, error: Exception) -> Response:
        """An error as the dialect tells it."""

    def refresh_by(self, refresh: Callable[[], None]) -> None:
        """Calls `refresh` before the metrics are told."""
        self._metrics.refresh_by(refresh)

    def route(self, number: int, lane: Lane) -> bool:
        """Has the plane serve requests of a lane, if it knows the dialect; whether it is to be
        asked again.
        """
        return False

    def failed(self, connection: int, lane: int, verb: int, fault: int, text: str, answers: Answers) -> None:
        """Tells of a request that the plane has begun, and that has not succeeded."""
        known = self._lanes.get(lane)
        if known is not None:
            self.refuse(verb, known, connection, _error(fault, text, known.queue), perf_counter(), answers)
        elif fault == NOT_STORED:
            answers.passed.append(connection)  # nothing was done, and rights may have changed
            answers.soon()
        else:
            # What it named is forgotten; begun again, a message could be stored twice.
            self.tell(verb, connection, self.error(verb, _error(fault, text, "")), perf_counter(), answers)

    def observe(self, verb: int, requests: int, seconds: float, between: Sequence[int]) -> None:
        """Counts requests that the plane has answered."""
        self._metrics.front_read(requests, 0)
        self._metrics.observe_many(self.names[verb], _OK, requests, seconds, between)

    def refuse(self, verb: int, lane: Lane, connection: int, error: Exception, began: float, answers: Answers) -> None:
        """Tells of an error after the engine has begun: the request must not be begun again."""
        if not isinstance(error, EngineError):
            log.error("%s failed", self.names[verb], exc_info=error)
        response = self.error(verb, error)
        if isinstance(error, Denied):
            # Only a receive waits for so long that its caller's right may go meanwhile.
            peer, queue, name = answers.address_of(connection), full(lane.by.account, lane.queue), answered_id(response).decode("latin-1")
            self._engine.audit.refused(peer, lane.by, Verb.RECEIVE, queue, self.names[verb], response.status, error, name)
        self.tell(verb, connection, response, began, answers)

    def tell(self, verb: int, connection: int, response: Response, began: float, answers: Answers, *, carries: bool = False) -> None:
        """Answers a request that began then. `carries`: with messages, which go back if they can't
        be given.
        """
        answer = connection, status_line(response.status) + header_lines(response.headers), response.body
        (answers.carried if carries else answers.other).append(answer)
        answers.soon()
        self._metrics.observe(self.names[verb], response.status, perf_counter() - began)

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        """See `Plain`."""
        return []

    def forget(self) -> None:
        """What was learnt of keys and lanes counts no more."""
        self._lanes.clear()

    def learn(self, number: int, host: bytes, path: bytes, signer: bytes, url: str) -> None:
        """A lane that requests will name."""
        known = None
        if self._hosts is None or self._hosts.allows(host):
            with contextlib.suppress(Exception):  # the long way says what it is
                known = self.lane(host, path, signer, url)
                if self.route(number, known):
                    self.unrouted.append(number)
        self._lanes[number] = known
        while len(self._lanes) > 2 * LANES:
            del self._lanes[next(iter(self._lanes))]

    def ask(self, verb: int, lane: int, items: list[Any], answers: Answers) -> None:
        """See `Plain`."""
        known = self._lanes.get(lane)
        left: Sequence[int] = [item[0] for item in items]
        if known is not None:
            try:
                left = self.begins[verb](verb, known, items, answers)
            except Exception as error:  # of which nothing can be begun any more: the engine raises before it begins
                for connection in left:
                    self.refuse(verb, known, connection, error, perf_counter(), answers)
                return
        self._metrics.front_read(len(items), len(left))
        if left:
            answers.passed.extend(left)
            answers.soon()

    def receive_soon(self, lane: Lane, items: list[Any], most: int, began: float, tell: TellReceived) -> Sequence[int]:
        """As the engine's, for items as the front gives them; `most` of those that do not say. The
        deliveries that `tell` gives to a connection are given back if it has left.
        """
        asked = [
            (connection, most if wanted < 0 else wanted, None if wait_s < 0 else wait_s * 1000, None if lease_s < 0 else lease_s * 1000)
            for connection, wanted, wait_s, lease_s in items
        ]

        def told(connection: int, told: list[Delivery] | Exception) -> None:
            self._end(connection)
            if told and not isinstance(told, Exception):
                self._given[connection] = told
            tell(connection, told)

        for one in asked:
            self._waiting[one[0]] = began
            self._metrics.receive_begins()
        left = self._engine.receive_soon(lane.by, lane.queue, lane.tag, asked, told)
        for connection in left:
            self._end(connection)
        return left

    def _end(self, connection: int) -> None:
        if self._waiting.pop(connection, None) is not None:
            self._metrics.receive_ends()

    def gone(self, connection: int) -> None:
        """See `Plain`."""
        began = self._waiting.pop(connection, None)
        if began is not None:
            self._engine.leave(connection)
            self._metrics.receive_ends()
            self._metrics.observe(self.names[self.receives], GONE, perf_counter() - began)

    def unsent(self, connections: Sequence[int]) -> None:
        """See `Plain`."""
        for connection in connections:
            deliveries = self._given.pop(connection, None)
            if deliveries:
                self._engine.undelivered(deliveries)

    def given(self) -> None:
        """See `Plain`."""
        if self._given:
            self._given.clear()


def _error(fault: int, text: str, queue: str) -> EngineError:
    if fault == STATE:
        return StoreUnavailable(text)
    return NotStored.of(queue) if fault == NOT_STORED else LogUnavailable(text)


class AllGroups:
    """Of all dialects of a worker; see `facade.http.sockets.listener.Plain`. `named`: those whose
    requests name a queue by a URL in their bodies; of the others the path says it.
    """

    def __init__(self, engine: Engine, request_prefix: bytes, named: Groups, others: Groups, *, signed: bool, trusts_proxy: bool) -> None:
        self.request_prefix = request_prefix
        self.wants_signatures = signed
        self.trusts_proxy = trusts_proxy
        self._engine = engine
        self._key_changes = engine.key_changes
        self._named = named
        self._others = others
        self._all = named, others
        self._of = {verb: groups for groups in self._all for verb in groups.begins}
        self._library: Library | None = None
        named.refresh_by(self.collect)

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        """See `Plain`."""
        return [key for groups in self._all for key in groups.keys(signers)]

    def is_stale(self) -> bool:
        """See `Plain`."""
        changes, self._key_changes = self._key_changes, self._engine.key_changes
        if changes == self._key_changes:
            return False
        for groups in self._all:
            groups.forget()
        return True

    def learn(self, lanes: list[tuple[int, bytes, bytes, bytes, str]]) -> None:
        """See `Plain`."""
        for lane in lanes:
            (self._named if lane[-1] else self._others).learn(*lane)

    def ask(self, verb: int, lane: int, items: list[Any], answers: Answers) -> None:
        """See `Plain`."""
        self._of[verb].ask(verb, lane, items, answers)

    def start_plane(self, library: Library) -> None:
        """See `Plain`."""
        self._library = library
        self._engine.plane.start(library, BUCKETS)

    def take_plane(self, news: Sequence[Any], answers: Answers) -> None:
        """See `Plain`."""
        for one in news:
            if one[0] == FAILED:
                _, connection, lane, verb, fault, text = one
                self._of[verb].failed(connection, lane, verb, fault, text, answers)
            else:
                self._engine.plane_news.take(one)

    def collect(self) -> None:
        """See `Plain`."""
        if self._library is not None and self._engine.plane.is_on:
            self._engine.plane_news.collect(self._library, lambda verb, *counts: self._of[verb].observe(verb, *counts))
            for groups in self._all:
                if groups.unrouted:
                    self._engine.plane.retell(groups.unrouted)
                    groups.unrouted.clear()

    def gone(self, connection: int) -> None:
        """See `Plain`."""
        for groups in self._all:
            groups.gone(connection)

    def unsent(self, connections: list[int]) -> None:
        """See `Plain`."""
        for groups in self._all:
            groups.unsent(connections)

    def given(self) -> None:
        """See `Plain`."""
        for groups in self._all:
            groups.given()
