"""Clients of two workers and their book: what was sent, delivered and acknowledged, and when."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TIMEOUT_S = 20.0
LEASE_S = 6


@dataclass(frozen=True)
class Delivered:
    """`began` is when the receive was asked for, `at` when its answer was read."""

    queue: str
    uid: str
    worker: int
    began: float
    at: float


@dataclass
class Book:
    """Appended to by many threads; read when they have ended."""

    sent: dict[str, tuple[str, float, float]] = field(default_factory=dict)  # uid -> queue, began, answered
    doubtful: set[str] = field(default_factory=set)
    deliveries: list[Delivered] = field(default_factory=list)
    acked: dict[str, tuple[float, float]] = field(default_factory=dict)  # uid -> began, answered
    refused: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def refuse(self, verb: str, status: int, answer: Any) -> None:
        self.refused[f"{verb} {status}"] = self.refused.get(f"{verb} {status}", 0) + 1
        if status not in (0, 429, 503):
            self.wrong.append(f"{verb} {status}: {str(answer)[:200]}")


class Client:
    """One connection to one worker."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """(status, JSON); status 0 = no answer."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIMEOUT_S)
            data = None if body is None else json.dumps(body)
            self._connection.request(method, path, data, {"content-type": "application/json"})
            response = self._connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            return 0, repr(error)

    def close(self) -> None:
        """Ends the connection; the next question opens another one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Crowd:
    """Senders and consumers, each a thread; `calm` ends the senders, `end` all."""

    def __init__(self, ports: list[int], queues: list[str], seed: int) -> None:
        self.book = Book()
        self._ports = ports
        self._queues = queues
        self._sending, self._going = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self.checks: list[Callable[[], None]] = []
        for worker in range(len(ports)):
            for number, queue in enumerate(queues):
                self._add(self._send, worker, queue, random.Random(f"{seed}/s/{worker}/{number}"))
                for more in range(2):
                    self._add(self._consume, worker, queue, random.Random(f"{seed}/c/{worker}/{number}/{more}"))

    def _add(self, work: Any, worker: int, *arguments: Any) -> None:
        def play() -> None:
            with contextlib.closing(Client(self._ports[worker])) as client:
                work(client, worker, *arguments)

        self._threads.append(threading.Thread(target=play, daemon=True))

    def start(self) -> None:
        self._sending.set()
        self._going.set()
        for thread in self._threads:
            thread.start()

    def later(self, check: Callable[[], None]) -> None:
        """A check of the book when it is full."""
        self.checks.append(check)

    def calm(self) -> None:
        self._sending.clear()

    def end(self) -> None:
        self._going.clear()
        self._sending.clear()
        for thread in self._threads:
            thread.join(60)

    def _send(self, client: Client, worker: int, queue: str, rng: random.Random) -> None:
        number = 0
        while self._sending.is_set():
            uids = [f"{queue}/{worker}/{number + n}" for n in range(rng.randint(1, 3))]
            number += len(uids)
            messages: list[dict[str, Any]] = [{"body": uid} for uid in uids]
            if queue == "fifo":
                for message, uid in zip(messages, uids, strict=True):
                    message.update(group=f"g{rng.randint(0, 5)}", dedup_id=uid)
            began = time.monotonic()
            status, answer = client.ask("POST", f"/v1/queues/{queue}/messages", {"messages": messages})
            if 200 <= status < 300:
                self.book.sent.update({uid: (queue, began, time.monotonic()) for uid in uids})
            else:
                self.book.doubtful.update(uids)
                self.book.refuse("send", status, answer)
            time.sleep(rng.uniform(0.01, 0.06))

    def _consume(self, client: Client, worker: int, queue: str, rng: random.Random) -> None:
        while self._going.is_set():
            began = time.monotonic()
            body = {"max": rng.randint(1, 10), "wait_seconds": rng.choice((0, 0, 1)), "lease_seconds": LEASE_S}
            status, answer = client.ask("POST", f"/v1/queues/{queue}/receive", body)
            if not 200 <= status < 300:
                self.book.refuse("receive", status, answer)
                time.sleep(0.1)
                continue
            at = time.monotonic()
            found = answer["messages"]
            self.book.deliveries += [Delivered(queue, m["body"], worker, began, at) for m in found]
            if not found or rng.random() < 0.05:
                time.sleep(0.02)
                continue
            self._ack(client, queue, found)

    def _ack(self, client: Client, queue: str, found: list[dict[str, Any]]) -> None:
        began = time.monotonic()
        status, answer = client.ask("POST", f"/v1/queues/{queue}/ack", {"handles": [m["handle"] for m in found]})
        if not 200 <= status < 300:
            self.book.refuse("ack", status, answer)
            return
        for message, result in zip(found, answer["results"], strict=True):
            if result["status"] == "ok":
                self.book.acked.setdefault(message["body"], (began, time.monotonic()))
