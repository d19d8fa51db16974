"""What requests have in common that the native library has read: who asks, and of which queue.

The library gives such a thing a number when it first meets it, and the plane serves its requests
where the engine says that it may. All others go to the app as they came.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from engine.errors import EngineError, LogUnavailable, NotStored, StoreUnavailable, word_of
from engine.plane.library import FAILED, NOT_STORED, OF_LANES, SERVED, STATE, VERB_OF, WHYS, Library
from engine.plane.whys import CHANGED, LANE, NEW, OF_LIBRARY, REFUSED, VERBS, of_all
from engine.plane.whys import FAILED as HAS_FAILED
from engine.shapes import Principal
from facade.dialect import Response
from facade.http.asgi import header_lines, status_line
from facade.http.front import GONE, Hosts
from facade.http.log import request_ids
from facade.http.log.access_log import AccessLog
from facade.http.metrics import BUCKETS
from facade.http.sockets.answers import Answers
from runtime.asked import Asked
from schemas.accounts import full
from schemas.records.watching import Request
from schemas.vocabulary import CLIENT_GONE, OK, Verb

if TYPE_CHECKING:
    from engine.engine import Engine
    from facade.http.metrics import Metrics

# Whose lanes they are; native/src/requests.rs has the same.
SQS, NATIVE, EMQ = range(3)
# The library tells a lane again when it knows this many others; twice as many are kept here, for
# those that requests of before may still name.
LANES: Final = 4096
_OK: Final = 200


class Lane(Struct, frozen=True, gc=False):
    """What requests have in common: who asks, which queue, which tag."""

    by: Principal
    queue: str
    tag: str | None

    @property
    def full_queue(self) -> str:
        """The name of the queue in the engine."""
        return full(self.by.account, self.queue)


# Of whom a request was that the plane served while rights were looked up again.
_FORGOTTEN: Final = Lane(Principal(""), "", None)


class Lanes(ABC):
    """Those of one dialect at one worker. `names`: under which its verbs are counted, by their
    numbers.
    """

    names: Mapping[int, str]
    id_header: bytes  # as `facade.dialect.Exchange` has it

    def __init__(self, engine: Engine, metrics: Metrics, hosts: Hosts | None) -> None:
        self._engine = engine
        self._metrics = metrics
        self._hosts = hosts
        self._lanes: dict[int, Lane | None] = {}
        self._before: dict[int, Lane | None] = {}  # that counted until rights were looked up again
        self._whys: dict[int, Mapping[Verb, str]] = {}
        self.unrouted: list[int] = []  # that the plane does not serve yet

    @abstractmethod
    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        """Raises any error for requests that the app answers, which says why."""

    @abstractmethod
    def error(self, verb: int, error: Exception, call: Sequence[Any], by: Principal | None) -> Response:
        """Returns an error as the dialect tells it. `call`: what an answer of EMQ repeats; `by`
        is None when it is not known any more.
        """

    @abstractmethod
    def route(self, number: int, lane: Lane) -> dict[Verb, str]:
        """Has the plane serve requests of a lane. Returns which verbs it does not, and why."""

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        """See `facade.http.sockets.listener.Routes`."""
        return []

    def forget(self) -> None:
        """What was learnt of keys and lanes counts no more."""
        self._before, self._lanes = self._lanes, {}
        self._whys.clear()

    def learn(self, number: int, host: bytes, path: bytes, signer: bytes, url: str) -> None:
        """Takes in a lane that requests will name."""
        known, refused = None, of_all(REFUSED)
        if self._hosts is None or self._hosts.allows(host):
            with contextlib.suppress(Exception):  # the app says what it is
                known = self.lane(host, path, signer, url)
                refused = self.route(number, known)
                if len(refused) == len(VERBS):
                    self.unrouted.append(number)
        self._lanes[number], self._whys[number] = known, refused
        while len(self._lanes) > 2 * LANES:
            oldest = next(iter(self._lanes))
            del self._lanes[oldest], self._whys[oldest]

    def _of(self, lane: int) -> Lane:
        """Returns whose lane it is, or was."""
        return self._lanes.get(lane) or self._before.get(lane) or _FORGOTTEN

    def why(self, lane: int, verb: Verb) -> str:
        """Returns why the plane does not serve a verb of a lane; empty = nothing is known of it."""
        known = self._whys.get(lane)
        return "" if known is None else known.get(verb, NEW)  # it may, since a moment ago

    def failed(self, told: Sequence[Any], answers: Answers, access: AccessLog) -> None:
        """Answers a request that the plane has begun, and that has not succeeded."""
        connection, lane, verb, fault, took_us, text, call = told
        known = self._lanes.get(lane)
        if known is None and fault == NOT_STORED:
            answers.passed.append(connection)  # nothing was done, and rights may have changed
            answers.soon()
            self._metrics.count_way(CHANGED, 1)
            return
        # Begun again, a message could be stored twice, also where what it named is forgotten.
        error = _error(fault, text, "" if known is None else known.queue)
        response = self.error(verb, error, call, None if known is None else known.by)
        request_id = request_ids.new()
        response.headers.append((self.id_header, request_id.encode()))
        answers.other.append((connection, status_line(response.status) + header_lines(response.headers), response.body))
        answers.soon()
        known = self._of(lane)
        asked = Asked("", verb=VERB_OF[verb], queue=known.full_queue, caller=known.by.id)
        self._metrics.observe(self.names[verb], response.status, took_us / 1_000_000, asked, word_of(error))
        self._metrics.count_way(HAS_FAILED, 1)
        if access.wants(response.status):
            access.write(
                self.names[verb], response.status, took_us / 1_000_000, request_id,
                by="plane", principal=known.by.id, queue=known.queue, tag=known.tag or "",
            )  # fmt: skip

    def served(self, told: Sequence[Any], access: AccessLog) -> None:
        """Writes the line of a request that the plane has answered, and whose turn it was."""
        lane, verb, took_us, number, peer = told
        known = self._of(lane)
        access.write(
            self.names[verb], _OK, took_us / 1_000_000, request_ids.of(number),
            by="plane", principal=known.by.id, queue=known.queue, tag=known.tag or "", peer=peer,
        )  # fmt: skip

    def observe(self, verb: int, gone: bool, requests: int, seconds: float, between: Sequence[int]) -> None:
        """Counts requests that the plane has answered, or whose clients have gone."""
        self._metrics.observe_many(self.names[verb], GONE if gone else _OK, requests, seconds, between)
        self._metrics.count_way("", requests)

    def count(self, lane: int, verb: int, gone: bool, requests: int, sum_us: int, max_us: int) -> None:
        """Counts the same requests by who has asked."""
        known = self._of(lane)
        outcome = CLIENT_GONE if gone else OK
        request = Request(known.by.id, known.full_queue, self.names[verb], VERB_OF[verb], outcome)
        self._metrics.counted(request, requests, sum_us, max_us)


def _error(fault: int, text: str, queue: str) -> EngineError:
    if fault == STATE:
        return StoreUnavailable(text)
    return NotStored.of(queue) if fault == NOT_STORED else LogUnavailable(text)


class AllLanes:
    """Those of all dialects of a worker, by their numbers; see
    `facade.http.sockets.listener.Routes`.
    """

    def __init__(
        self,
        engine: Engine,
        metrics: Metrics,
        access: AccessLog,
        lanes: Mapping[int, Lanes],
        *,
        signed: bool,
        trusts_proxy: bool,
        is_traced: bool = False,
    ) -> None:
        self.request_prefix = request_ids.PREFIX.encode()
        self.wants_signatures = signed
        self.trusts_proxy = trusts_proxy
        self.is_traced = is_traced
        self._engine = engine
        self._key_changes = engine.callers.key_changes
        self._by_dialect = lanes
        self._all = tuple(lanes.values())
        self._of = {verb: lanes for lanes in self._all for verb in lanes.names}
        self._library: Library | None = None
        self._metrics = metrics
        self._access = access
        metrics.refresh_by(self._refresh)

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        """See `Routes`."""
        return [key for lanes in self._all for key in lanes.keys(signers)]

    def is_stale(self) -> bool:
        """See `Routes`."""
        changes, self._key_changes = self._key_changes, self._engine.callers.key_changes
        if changes == self._key_changes:
            return False
        self.collect()
        for lanes in self._all:
            lanes.forget()
        return True

    def learn(self, lanes: list[tuple[int, int, bytes, bytes, bytes, str]]) -> None:
        """See `Routes`."""
        for number, dialect, host, path, signer, url in lanes:
            self._by_dialect[dialect].learn(number, host, path, signer, url)

    def start_plane(self, library: Library) -> None:
        """See `Routes`."""
        self._library = library
        self._engine.plane.start(library, BUCKETS, self._access.every)
        self._engine.plane_news.wanted.connect(self.collect)

    def end_plane(self) -> None:
        """See `Routes`."""
        self.collect()
        self._library = None

    def take_plane(self, news: Sequence[Any], answers: Answers) -> None:
        """See `Routes`."""
        for one in news:
            if one[0] == FAILED:
                self._of[one[3]].failed(one[1:], answers, self._access)
            elif one[0] == SERVED:
                self._of[one[2]].served(one[1:], self._access)
            else:
                self._engine.plane_news.take(one)

    def collect(self) -> None:
        """See `Routes`."""
        if self._library is None:
            return
        for why, lane, bit, count in self._library.ask(WHYS):
            self._metrics.count_way(self._why(lane, bit) if why == LANE else OF_LIBRARY[why], count)
        for lane, verb, gone, *counts in self._library.ask(OF_LANES):
            self._of[verb].count(lane, verb, bool(gone), *counts)
        self._engine.plane_news.collect(self._library, lambda verb, *counts: self._of[verb].observe(verb, *counts))
        if self._engine.plane.is_on:
            for lanes in self._all:
                if lanes.unrouted:
                    self._engine.plane.retell(lanes.unrouted)
                    lanes.unrouted.clear()

    def _refresh(self) -> None:
        self.collect()
        self._metrics.note_waiting(self._engine.plane.waiting()[0])

    def _why(self, lane: int, bit: int) -> str:
        verb = VERBS[bit]
        return next((why for lanes in self._all if (why := lanes.why(lane, verb))), CHANGED)
