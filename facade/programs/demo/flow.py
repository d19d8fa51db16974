"""The traffic: one sender and three consumers, all at once, each a thread with a connection of its
own.

It must not print.

Consumers fail as real ones do: one that can't use a row gives it back (release), or does nothing
and lets its lease run out.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from facade.programs.demo.airports import BadRow, Job, Row
from facade.programs.demo.client import Client, Json

BATCH = 100
WAIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Duty:
    """What a consumer is for. `back_off_s` = delay of a release after a failure; None = the lease
    is left to run out.
    """

    name: str
    tag: str
    job: Job
    lease_s: float
    back_off_s: float | None


@dataclass(slots=True)
class Sent:
    """What the sender did: rows by message id, in the order sent. Written by its thread alone."""

    read: int = 0
    batches: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    began: float = 0.0
    ended: float = 0.0


@dataclass(slots=True)
class Tally:
    """What a consumer did, by message id. Written by its thread alone."""

    polls: int = 0
    received: int = 0
    deliveries: Counter[str] = field(default_factory=Counter)
    acked: Counter[str] = field(default_factory=Counter)
    failures: dict[str, BadRow] = field(default_factory=dict)
    failed: int = 0
    not_settled: Counter[str] = field(default_factory=Counter)
    last_first_at: float = 0.0


class Flow:
    """The threads. `start` once, `stop` at the end whatever happened; `error` is the first failure
    of a thread.
    """

    def __init__(self, connect: Callable[[], Client], queue: str, rows: Iterable[Row], duties: Iterable[Duty]) -> None:
        self.sent = Sent()
        self.tallies = {duty: Tally() for duty in duties}
        self.error: Exception | None = None
        self._connect = connect
        self._queue = queue
        self._rows = rows
        self._stopping = threading.Event()
        works = [self._send, *(self._consumer(duty, tally) for duty, tally in self.tallies.items())]
        self._threads = [threading.Thread(target=self._watched, args=(work,)) for work in works]

    def start(self) -> None:
        """Begin sending and receiving."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all threads; returns when they have ended."""
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    @property
    def progress(self) -> tuple[int, int, int]:
        """Rows sent, messages delivered and messages acked so far; what doesn't change for long is
        stuck.
        """
        received = sum(tally.received for tally in self.tallies.values())
        return len(self.sent.rows), received, sum(len(tally.acked) for tally in self.tallies.values())

    def settled(self, tag: str) -> int:
        """Messages acked so far by the consumers of a tag."""
        return sum(len(tally.acked) for duty, tally in self.tallies.items() if duty.tag == tag)

    def _watched(self, work: Callable[[Client], None]) -> None:
        try:
            with contextlib.closing(self._connect()) as client:
                work(client)
        except Exception as error:  # told by the main thread
            self.error = self.error or error

    def _send(self, client: Client) -> None:
        self.sent.began = time.monotonic()
        rows = iter(self._rows)
        while not self._stopping.is_set() and (batch := list(islice(rows, BATCH))):
            self.sent.read += len(batch)
            ids = client.send(self._queue, [message_of(row) for row in batch])
            self.sent.batches += 1
            self.sent.rows.update(zip(ids, batch, strict=True))
        self.sent.ended = time.monotonic()

    def _consumer(self, duty: Duty, tally: Tally) -> Callable[[Client], None]:
        def work(client: Client) -> None:
            while not self._stopping.is_set():
                messages = client.receive(self._queue, duty.tag, WAIT_S, duty.lease_s)
                _count(messages, tally)
                done, failed = _work_on(messages, duty.job, tally)
                if done:
                    _ack(client, self._queue, done, tally)
                if failed and duty.back_off_s is not None:
                    client.release(self._queue, [message["handle"] for message in failed], duty.back_off_s)

        return work


def message_of(row: Row) -> Json:
    """The message of a row: all of it as JSON, its state as an attribute, for filters."""
    return {"body": json.dumps(row), "attributes": {"state": row["state"]}}


def _count(messages: list[Json], tally: Tally) -> None:
    tally.polls += 1
    tally.received += len(messages)
    tally.deliveries.update(message["id"] for message in messages)
    if any(message["receive_count"] == 1 for message in messages):
        tally.last_first_at = time.monotonic()


def _work_on(messages: list[Json], job: Job, tally: Tally) -> tuple[list[Json], list[Json]]:
    done, failed = [], []
    for message in messages:
        try:
            job.take(json.loads(message["body"]))
            done.append(message)
        except BadRow as error:
            tally.failures[message["id"]] = error
            tally.failed += 1
            failed.append(message)
    return done, failed


def _ack(client: Client, queue: str, done: list[Json], tally: Tally) -> None:
    for message, status in zip(done, client.ack(queue, [message["handle"] for message in done]), strict=True):
        if status == "ok":
            tally.acked[message["id"]] += 1
        else:
            tally.not_settled[status] += 1  # its lease was lost: it comes again
