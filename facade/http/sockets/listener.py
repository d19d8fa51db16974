"""The native front in the event loop of a worker: one call when something is ready, one for all
answers of a turn.

Each request that the plane does not serve is a `Request`, which the app answers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from engine.plane.library import LEARNT, Library
from facade.http.asgi import DIRECT
from facade.http.sockets.answers import Answers
from facade.http.sockets.library import ALL, BAD, FORWARDED, MORE, NOTHING, SIGNED, UNSENT, Limits, NativeFront
from facade.http.sockets.request import Address, Request, scope_of
from runtime.background import Background

log = logging.getLogger("leaseway.http")

BACKLOG: Final = 2048
MOST: Final = 10_000
TICK_S: Final = 0.5
# A request that the plane could serve is waited for so long; then the app answers it.
PART_S: Final = 1.0
# Kinds of news; native/src/batch.rs has the same.
LANES, REQUESTS, DRAINED, GONE, SIGNERS, READS, PLANE = 0, 6, 9, 7, 10, 11, 15
_background = Background()


class Routes(Protocol):
    """Knows the requests that the plane may serve."""

    @property
    def request_prefix(self) -> bytes:
        """What the ids of its replies begin with."""

    @property
    def wants_signatures(self) -> bool:
        """Whether the plane serves only what is signed by a key of `keys`."""

    @property
    def is_traced(self) -> bool:
        """Whether requests that carry a sampled trace context are the app's."""

    @property
    def trusts_proxy(self) -> bool:
        """Whether a proxy tells where requests come from."""

    def keys(self, signers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes, int]]:
        """Of these signers (`key/day/region`), each with an address from which it has signed, those
        that have proved their keys there lately, with their signing keys and the seconds for which
        these count.
        """

    def is_stale(self) -> bool:
        """Whether what was learnt of keys and lanes counts no more, since the last call."""

    def learn(self, lanes: list[tuple[int, int, bytes, bytes, bytes, str]]) -> None:
        """Takes in lanes that requests will name: number, dialect, host, path, signer, URL of the
        queue.
        """

    def start_plane(self, library: Library) -> None:
        """Has the library serve hot requests of plain queues by itself."""

    def take_plane(self, news: list[Any], answers: Answers) -> None:
        """Takes in what the plane tells."""

    def collect(self) -> None:
        """Counts what the plane has answered."""

    def end_plane(self) -> None:
        """Counts that for the last time: the library is about to end."""


@dataclass(slots=True)
class Served:
    """What answers requests that go the long way: an ASGI app, with the state of its lifespan.
    `tasks` has those that are being answered.
    """

    app: Any
    state: dict[str, Any] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    scheme: str = "http"
    requests: int = 0  # that were answered


class Listener:
    """Owns the front of a worker."""

    def __init__(
        self,
        bound: socket.socket,
        routes: Routes | None,
        served: Served,
        patience_s: float,
        most: int = MOST,
        on_empty: Callable[[Listener], None] = lambda listener: None,
        count: Callable[[int, int, int], None] = lambda refused, closed, gave_way: None,
        limits: Limits | None = None,
        certificate: tuple[bytes, bytes] | None = None,
    ) -> None:
        """Accepts `most` connections at once on `bound`, the caller's still. `count` is told how
        many were refused, how many idle ones closed for others, and how many requests gave way, so
        far. `certificate`, with its chain, and its key, in PEM: connections are in TLS. Raises
        OSError, ValueError for a certificate that can't be shown.
        """
        bound.listen(BACKLOG)
        self._loop = asyncio.get_running_loop()
        self._routes = routes
        self._served = served
        self._patience_s = patience_s
        self._on_empty = on_empty
        self._count = count
        prefix = routes.request_prefix if routes else b""
        self._looks = self._is_freed = self._drains = False
        limits = (limits or Limits())._replace(traced=int(routes is not None and routes.is_traced))
        self._native = NativeFront(os.dup(bound.fileno()), prefix, most, _reads(routes), limits, self._heed)
        if certificate is not None:
            self.certify(*certificate)  # before the first connection is accepted
        if routes is not None:
            routes.start_plane(self._native)
        self._descriptor = self._native.descriptor
        self.answers = Answers(self._flush_soon)
        self._ends: dict[int, tuple[Address | None, Address | None]] = {}
        self._requests: dict[int, Request] = {}
        self._each = {READS: self._read, GONE: self._lost, DRAINED: self._drained}
        self._ticks: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._descriptor, self._on_readable)
        self._tick()

    def certify(self, certificate: bytes, key: bytes) -> None:
        """Has new connections shown a certificate with its chain, in PEM. Raises ValueError for one
        that can't be shown; then they are shown what they were.
        """
        if not self._is_freed and (wrong := self._native.certify(certificate, key)):
            raise ValueError(wrong)

    @property
    def connections(self) -> int:
        """How many there are."""
        return 0 if self._is_freed else self._native.connections

    def shutdown(self) -> None:
        """As uvicorn's server asks its connections: accepts nothing more, and ends each when what
        it has asked is answered. `on_empty` is called when all have ended.
        """
        self._drains = True
        self._heed(self._native.drain())
        self._check_empty()

    def _check_empty(self) -> None:
        if self._drains and not self.connections:
            self._on_empty(self)

    def close(self) -> None:
        """Ends every connection."""
        self._flush()
        self._loop.remove_reader(self._descriptor)
        if self._ticks is not None:
            self._ticks.cancel()
        for connection in list(self._ends):
            self._lost(connection)
        if self._routes is not None:
            self._routes.end_plane()
        self._is_freed = True
        self._native.free()

    def _tick(self) -> None:
        self._heed(self._native.tick(self._patience_s, PART_S))
        self._count(*self._native.ended)
        if self._routes is not None:
            self._routes.collect()
        self._check_empty()
        self._ticks = self._loop.call_later(TICK_S, self._tick)

    def _heed(self, flags: int) -> None:
        if flags & BAD:
            log.error("the native front could not read a batch of answers")
        if flags & MORE and not self._looks:
            self._looks = True
            self._loop.call_soon(self._look_again)

    def _on_readable(self) -> None:
        """A look that is to come anyway sees that too. One more for each would ask for one more
        each, and a turn of the loop would have dozens before it came to anything else.
        """
        if not self._looks:
            self._look()

    def _look_again(self) -> None:
        self._looks = False
        self._look()

    def _look(self) -> None:
        if self._is_freed:
            return
        if self._routes is not None and self._routes.is_stale():
            self._native.forget()
        news, more = self._native.look()
        for kind, items in news:
            try:
                self._take(kind, items)
            except Exception:  # one kind must not keep the others from being served
                log.exception("news of kind %d could not be taken", kind)
        if more:
            self._heed(MORE)
        self._check_empty()

    def _take(self, kind: int, items: list[Any]) -> None:
        if kind == REQUESTS:
            for told in items:
                self._begin(told)
        elif kind in self._each:
            for connection in items:
                self._each[kind](connection)
        elif self._routes is None:
            raise RuntimeError("a library that reads nothing has read a request")
        elif kind == PLANE:
            self._routes.take_plane(items, self.answers)
        elif kind == LANES:
            try:
                self._routes.learn(items)
            finally:
                # Their first requests wait for that.
                self._native.tell(LEARNT, [lane[0] for lane in items])
        elif kind == SIGNERS:
            for found in self._routes.keys(items):
                self._native.learn(*found)

    def _begin(self, told: list[Any]) -> None:
        """Has the app answer a request."""
        connection, ends, flags, waited_us, body = *told[:4], told[-1]
        if ends:
            self._ends[connection] = _address(*ends[:2]), _address(*ends[2:])
        here, there = self._ends[connection]
        served = self._served
        scope = scope_of(told, here, there, served.scheme, served.state)
        request = self._requests[connection] = Request(self, connection, scope, body, flags, waited_us)
        scope["extensions"] = {DIRECT: request}
        task = _background.start(request.run(served.app), "request")
        served.tasks.add(task)
        task.add_done_callback(served.tasks.discard)

    def _read(self, connection: int) -> None:
        data, whole = self._native.receive(connection)
        self._heed(MORE)
        if (data or whole) and (request := self._requests.get(connection)) is not None:
            request.came(data, whole=whole)

    def _drained(self, connection: int) -> None:
        if connection in self._requests:
            self._requests[connection].drained()

    def give(self, connection: int, head: bytes, body: bytes) -> bool:
        """See `facade.http.sockets.request.Way`."""
        self._flush()  # who gets that too can't be kept waiting, nor be taken for this one
        if self._is_freed:
            return False
        self.answers.carried.append((connection, head, body))
        return connection not in self._flush()

    def write(self, connection: int) -> bool:
        """See `facade.http.sockets.request.Way`."""
        self._flush()
        return self._is_freed or not self._native.waiting(connection)

    def ended(self, connection: int) -> None:
        """See `facade.http.sockets.request.Way`."""
        self._served.requests += 1
        self._requests.pop(connection, None)

    def _lost(self, connection: int) -> None:
        self._ends.pop(connection, None)
        request = self._requests.pop(connection, None)
        if request is not None:
            request.lost()

    def _flush_soon(self) -> None:
        self._loop.call_soon(self._flush)

    def _flush(self) -> Sequence[int]:
        """Gives all answers; returns the connections that could not be given their messages."""
        batch = b"" if self._is_freed else self.answers.take()
        if not batch:
            return ()
        flags = self._native.answer(batch)
        unsent: Sequence[int] = self._native.unsent() if flags & UNSENT else ()
        self._heed(flags)
        return unsent


def _address(host: str, port: int) -> Address | None:
    return (host, port) if host else None


def _reads(routes: Routes | None) -> int:
    if routes is None:
        return NOTHING
    if not routes.wants_signatures:
        return ALL
    return FORWARDED if routes.trusts_proxy else SIGNED
