"""The native front in the event loop of a worker: one call when something is ready, one for all
answers of a turn.

What is not plain goes to `facade.http.connection` by a transport, on the same connection. Plain
requests go to a `Plain`; with none, all requests go the long way. Neighbours: the worker makes one.
This module must not know a dialect.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

from facade.http.bounds.peers import address_read
from facade.http.sockets.answers import ABORT, Answers
from facade.http.sockets.library import ALL, BAD, FORWARDED, MORE, NOTHING, SIGNED, UNSENT, NativeFront
from facade.http.sockets.transport import Transport

log = logging.getLogger("leaseway.http")

BACKLOG: Final = 2048
MOST: Final = 10_000
TICK_S: Final = 0.5
# A request that could be plain is waited for so long; then the protocol is told, which knows how
# long a client may take.
PART_S: Final = 1.0
# Groups of news beside those of plain requests; native/src/batch.rs has the same.
LANES, DATA, BLOCKED, DRAINED, GONE, SIGNERS, READS = 0, 6, 8, 9, 7, 10, 11


class Plain(Protocol):
    """Serves plain requests. It answers each, or says that it is to go the long way."""

    @property
    def request_prefix(self) -> bytes:
        """What the ids of its replies begin with."""

    @property
    def wants_signatures(self) -> bool:
        """Whether a request must be signed by a key of `keys` to be plain."""

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

    def learn(self, lanes: list[tuple[int, bytes, bytes, bytes, str]]) -> None:
        """Lanes that requests will name: number, host, path, signer, URL of the queue."""

    def ask(self, verb: int, lane: int, items: list[Any], answers: Answers) -> None:
        """Begins requests of one verb; see native/src/batch.rs. Raises nothing."""

    def gone(self, connection: int) -> None:
        """Nobody is there to hear what the connection has asked, if it has."""

    def unsent(self, connections: list[int]) -> None:
        """The messages that these were to get have been given to nobody."""

    def given(self) -> None:
        """What was answered so far has left, or was named by `unsent`."""


class Listener:
    """Owns the front of a worker. `protocol` makes what serves a connection the long way."""

    def __init__(
        self,
        bound: socket.socket,
        plain: Plain | None,
        protocol: Callable[[], Any],
        patience_s: float,
        most: int = MOST,
        on_empty: Callable[[Listener], None] = lambda listener: None,
        count: Callable[[int, int], None] = lambda refused, closed: None,
    ) -> None:
        """Accepts `most` connections at once on `bound`, the caller's still. `count` is told how
        many were refused, and how many idle ones closed for others, so far. Raises OSError.
        """
        bound.listen(BACKLOG)
        self._loop = asyncio.get_running_loop()
        self._plain = plain
        self._protocol = protocol
        self._patience_s = patience_s
        self._on_empty = on_empty
        self._count = count
        prefix = plain.request_prefix if plain else b""
        self._native = NativeFront(os.dup(bound.fileno()), prefix, most, _reads(plain))
        self._descriptor = self._native.descriptor
        self._answers = Answers(self._flush_soon, self._address)
        self._open: dict[int, tuple[Any, Transport]] = {}
        self._each = {READS: self._read, GONE: self._lost, BLOCKED: self._pause, DRAINED: self._resume}
        self._ticks: asyncio.TimerHandle | None = None
        self._looks = False
        self._is_freed = self._drains = False
        self._loop.add_reader(self._descriptor, self._on_readable)
        self._tick()

    # Of the server's connections the listener is one, which is never idle.
    idle_since: Final = None
    peer: Final = ""

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
        for connection in list(self._open):
            self._lost(connection)
        self._is_freed = True
        self._native.free()

    def _tick(self) -> None:
        self._heed(self._native.tick(self._patience_s, PART_S))
        self._count(*self._native.refused)
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
        if self._plain is not None and self._plain.is_stale():
            self._native.forget()
        news, more = self._native.look()
        for kind, lane, items in news:
            try:
                self._take(kind, lane, items)
            except Exception:  # one group must not keep the others from being served
                log.exception("news of kind %d could not be taken", kind)
        if more:
            self._heed(MORE)
        self._check_empty()

    def _take(self, kind: int, lane: int, items: list[Any]) -> None:
        if kind == DATA:
            for connection, data in items:
                self._guarded(self._pass, connection, data)
        elif kind in self._each:
            for connection in items:
                self._guarded(self._each[kind], connection)
        elif self._plain is None:
            raise RuntimeError("a front that reads nothing has read a request")
        elif kind == LANES:
            self._plain.learn(items)
        elif kind == SIGNERS:
            for found in self._plain.keys(items):
                self._native.learn(*found)
        else:
            self._plain.ask(kind, lane, items, self._answers)

    def _guarded(self, act: Callable[..., None], connection: int, *more: bytes) -> None:
        """One connection must not keep the others of its group from being served."""
        try:
            act(connection, *more)
        except Exception:
            log.exception("a connection is cut off")
            self._answers.done.append((ABORT, connection, b""))
            self._answers.soon()

    def _pass(self, connection: int, data: bytes | memoryview) -> None:
        found = self._open.get(connection)
        if found is None:
            protocol = self._protocol()
            transport = Transport(connection, protocol, self._answers, self._socket, self._flush_now)
            found = self._open[connection] = protocol, transport
            protocol.connection_made(transport)
        protocol, transport = found
        transport.came()
        if not transport.is_closing():
            protocol.data_received(data)

    def _read(self, connection: int) -> None:
        data = self._native.receive(connection)
        self._heed(MORE)
        if data:
            self._pass(connection, data)

    def _pause(self, connection: int) -> None:
        if connection in self._open:
            self._open[connection][0].pause_writing()

    def _resume(self, connection: int) -> None:
        if connection in self._open:
            self._open[connection][0].resume_writing()

    def _socket(self, connection: int) -> int:
        return -1 if self._is_freed else self._native.socket(connection)

    def _address(self, connection: int) -> str:
        return "" if self._is_freed else address_read(self._native.address(connection))

    def _lost(self, connection: int) -> None:
        if self._plain is not None:
            self._plain.gone(connection)
        found = self._open.pop(connection, None)
        if found is not None:
            found[1].lost()
            found[0].connection_lost(None)

    def _flush_now(self, connection: int) -> int:
        self._flush()
        return 0 if self._is_freed else self._native.waiting(connection)

    def _flush_soon(self) -> None:
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._is_freed:
            return
        batch = self._answers.take()
        if not batch:
            return
        flags = self._native.answer(batch)
        if self._plain is not None:
            if flags & UNSENT:
                self._plain.unsent(self._native.unsent())
            self._plain.given()
        self._heed(flags)


def _reads(plain: Plain | None) -> int:
    if plain is None:
        return NOTHING
    if not plain.wants_signatures:
        return ALL
    return FORWARDED if plain.trusts_proxy else SIGNED
