"""Clients that behave badly: they go away, stop half-way, take their time, or ask for what is
wrong.

A client that goes away in mid-poll closes only its own side and reads on until the server ends: so
it knows for certain whether it was answered.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any

from tests.outside.actors import Actor
from tests.outside.book import DONE, REFUSED, UNKNOWN, UNREACHED, body_of
from tests.outside.door import Letter, Trouble
from tests.outside.native import Native, lent_of, outcome_of


def request_of(path: str, body: dict[str, Any]) -> bytes:
    """A whole request."""
    text = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: "
        f"{len(text)}\r\n\r\n"
    )
    return head.encode() + text


def answer_in(data: bytes) -> tuple[int, Any] | None:
    """Status and JSON of a whole answer, else None."""
    head, mark, body = data.partition(b"\r\n\r\n")
    if not mark:
        return None
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    if len(body) < int(fields.get(b"content-length", b"0")):
        return None
    return int(head.split(b" ", 2)[1]), json.loads(body) if body else None


class Rude(Actor):
    """Shared: a socket by hand."""

    def __init__(self, door: Native, queue: str, seed: str) -> None:
        super().__init__(door._book, f"{queue}/{type(self).__name__.lower()}/{door.who}", seed)
        self.door, self.queue = door, queue
        self.number = 0

    def connect(self) -> socket.socket | None:
        """A connection, or None after a rest."""
        try:
            return socket.create_connection(("127.0.0.1", self.door._port), timeout=3)
        except OSError:
            self.rest(0.3, 0.6)
            return None

    def token(self, mark: str = "") -> str:
        """A new one."""
        self.number += 1
        return f"tk-{self.queue}-{self.who.rsplit('/', 2)[1]}{mark}-{self.door.who}-{self.number}"


class Leaver(Rude):
    """Long polls that it leaves after a moment, reading what still comes; what it was given it acks
    or lets lapse.
    """

    def step(self) -> None:
        """One poll."""
        lease = round(self.rng.uniform(1.0, 2.5), 2)
        wait = self.rng.choice((1.0, 3.0, 5.0))
        limit = self.rng.randint(1, 3)
        line = self.connect()
        if line is None:
            return
        t0 = self.book.now()
        with line:
            data, ended = self._ask_and_leave(line, {"max": limit, "wait_seconds": wait, "lease_seconds": lease})
        found = answer_in(data)
        if found is None:
            # The end of the stream without a byte: no answer was carried. Anything else leaves it
            # open.
            gone = ended and not data
            self.door.wrote_receive(self.queue, t0, limit, lease, None, Trouble(UNKNOWN, 0, ""), gone=gone)
        elif outcome_of(found[0]) != DONE:
            self.door.wrote_receive(self.queue, t0, limit, lease, None, Trouble(outcome_of(found[0]), found[0], ""))
        else:
            leased = [lent_of(row) for row in found[1]["messages"]]
            self.door.wrote_receive(self.queue, t0, limit, lease, leased, None)
            good = [one for one in leased if self.rng.random() < 0.5]
            if good:
                self.door.settle(self.queue, good)
        self.rest(0, 0.05)

    def _ask_and_leave(self, line: socket.socket, body: dict[str, Any]) -> tuple[bytes, bool]:
        data, end = b"", time.monotonic() + 15
        try:
            line.sendall(request_of(f"/v1/queues/{self.queue}/receive", body))
            line.settimeout(self.rng.choice((0.005, 0.02, 0.05, 0.1, 0.3)))
            with contextlib.suppress(TimeoutError):
                while not answer_in(data):
                    part = line.recv(65536)
                    if not part:
                        return data, True
                    data += part
                return data, False
            line.shutdown(socket.SHUT_WR)
            line.settimeout(1)
            while time.monotonic() < end and not answer_in(data):
                with contextlib.suppress(TimeoutError):
                    part = line.recv(65536)
                    if not part:
                        return data, True
                    data += part
        except OSError:
            return data, False
        return data, False


class Vandal(Rude):
    """Half requests, whole requests without waiting for the answer, polls cut off, and very slow
    ones.
    """

    def step(self) -> None:
        """One of the four."""
        line = self.connect()
        if line is None:
            return
        t0 = self.book.now()
        with line:
            self.rng.choice((self._half, self._unheard, self._cut_poll, self._slow))(line, t0)
        self.rest(0.1, 0.8)

    def _message(self, token: str) -> bytes:
        return request_of(f"/v1/queues/{self.queue}/messages", {"messages": [{"body": body_of(token)}]})

    def _half(self, line: socket.socket, t0: float) -> None:
        token = self.token("half")
        text = self._message(token)
        with contextlib.suppress(OSError):
            line.sendall(text[: self.rng.randint(20, len(text) - 1)])
            self.rest(0, 0.2)
        self.door.wrote_send(self.queue, t0, token, Trouble(REFUSED, 0, ""))

    def _unheard(self, line: socket.socket, t0: float) -> None:
        token = self.token("unheard")
        with contextlib.suppress(OSError):
            line.sendall(self._message(token))
        self.door.wrote_send(self.queue, t0, token, Trouble(UNKNOWN, 0, ""))

    def _cut_poll(self, line: socket.socket, t0: float) -> None:
        with contextlib.suppress(OSError):
            line.sendall(
                request_of(f"/v1/queues/{self.queue}/receive", {"max": 2, "wait_seconds": 3, "lease_seconds": 2})
            )
            self.rest(0, 0.3)
        line.close()
        self.door.wrote_receive(self.queue, t0, 2, 2, None, Trouble(UNKNOWN, 0, ""))

    def _slow(self, line: socket.socket, t0: float) -> None:
        token, data = self.token("slow"), b""
        text = self._message(token)
        size = max(1, len(text) // 12)
        outcome, status = UNKNOWN, 0
        try:
            for i in range(0, len(text), size):
                line.sendall(text[i : i + size])
                self.rest(0, 0.2)
            line.settimeout(14)
            while not answer_in(data) and (part := line.recv(7)):
                data += part
            found = answer_in(data)
            if found:
                outcome, status = outcome_of(found[0]), found[0]
        except OSError as error:
            outcome = UNREACHED if not data and isinstance(error, ConnectionRefusedError) else UNKNOWN
        trouble = None if outcome == DONE else Trouble(outcome, status, "")
        self.door.wrote_send(self.queue, t0, token, trouble)


class Wrong(Actor):
    """Asks for what is refused, beside what is right: a refusal must leave everything as it was."""

    def __init__(self, door: Native, queue: str, seed: str) -> None:
        super().__init__(door._book, f"{queue}/wrong", seed)
        self.door, self.queue = door, queue
        self.number = 0

    def step(self) -> None:
        """Good letters; a refused batch; an ack that is refused for one of its handles."""
        self.number += 1
        name = f"tk-{self.queue}-{self.number}"
        self.door.send(self.queue, [Letter(f"{name}-good-{i}") for i in range(2)])
        bad = [Letter(f"{name}-bad-{i}") for i in range(2)]
        self.door.send(self.queue, [*bad, Letter(f"{name}-bad-delay", delay=99999999)], wrong=True)
        leased = self.door.receive(self.queue, 4, 0.5, 3) or []
        for one in leased:
            self._refused_ack(one.handle)
        if self.rng.random() < 0.7 and leased:
            self.door.settle(self.queue, leased)
        self.rest(0.2, 0.6)

    def _refused_ack(self, handle: str) -> None:
        t0 = self.book.now()
        with contextlib.suppress(Exception):
            status, _ = self.door.call(
                "POST", f"/v1/queues/{self.queue}/ack", {"handles": [handle, "no-handle-of-ours"]}
            )
            args = {"wrong": True, "status": status}
            self.book.op("ack", t0, outcome_of(status), queue=self.queue, process=self.who, args=args)
