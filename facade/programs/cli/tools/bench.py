"""`leaseway bench`: messages a second through the native API, by a few threads of this program."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

from facade.programs.cli.program.command import SETTINGS, ApiCommand
from facade.programs.cli.program.session import Session
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import Client, path_to
from facade.programs.connect.failures import Failure

PATIENCE_S = 30.0  # without a message, a receiver gives up


@dataclass
class Side:
    """What the threads of one side have done, in `seconds` from the start to its last message.
    Times are in seconds.
    """

    messages: int = 0
    times: list[float] = field(default_factory=list)
    failure: Failure | None = None
    seconds: float = 0.0

    def figures(self) -> dict[str, Any]:
        """What is printed of it."""
        times = sorted(self.times)
        return {
            "messages": self.messages,
            "seconds": round(self.seconds, 3),
            "per_second": round(self.messages / max(self.seconds, 1e-9), 1),
            "request_p50_ms": round(times[len(times) // 2] * 1000, 2),
            "request_p99_ms": round(times[int(len(times) * 0.99)] * 1000, 2),
        }


class Bench:
    """One measurement: senders and receivers at once, each a thread with a connection of its
    own.
    """

    def __init__(self, client: Client, queue: str, messages: int, batch: int, size: int) -> None:
        self._client = client
        self._queue = queue
        self._messages = messages
        self._batch = batch
        self._body = {"body": "x" * size}
        self._lock = threading.Lock()
        self._left = messages
        self._began = time.monotonic()
        self._sent, self._received = Side(), Side()

    def run(self, senders: int, receivers: int) -> dict[str, Any]:
        """Raises Failure: a request failed, or messages did not come."""
        self._began = time.monotonic()
        work = [*[(self._sent, self._send)] * senders, *[(self._received, self._receive)] * receivers]
        threads = [threading.Thread(target=self._thread, args=one, daemon=True) for one in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failure := self._sent.failure or self._received.failure:
            raise failure
        return {"sent": self._sent.figures(), **({"received": self._received.figures()} if receivers else {})}

    def _thread(self, side: Side, work: Callable[[Client], None]) -> None:
        own = Client(self._client.connection)
        try:
            work(own)
        except Failure as failure:
            side.failure = failure
        finally:
            own.close()

    def _send(self, client: Client) -> None:
        path = path_to("queues", self._queue, "messages")
        while not self._received.failure:
            with self._lock:
                count = min(self._batch, self._left)
                self._left -= count
            if not count:
                return
            began = time.monotonic()
            client.post(path, {"messages": [self._body] * count})
            self._add(self._sent, count, began)

    def _receive(self, client: Client) -> None:
        receive, ack = (path_to("queues", self._queue, verb) for verb in ("receive", "ack"))
        last = time.monotonic()
        while self._received.messages < self._messages and not (self._sent.failure or self._received.failure):
            began = time.monotonic()
            found = client.post(receive, {"max": self._batch, "wait_seconds": 1}, wait_s=1)["messages"]
            if found:
                client.post(ack, {"handles": [one["handle"] for one in found]})
                self._add(self._received, len(found), began)
                last = time.monotonic()
            elif time.monotonic() - last > PATIENCE_S:
                raise Failure(
                    f"no message came for {PATIENCE_S:g} s; {self._received.messages} of {self._messages} were received"
                )

    def _add(self, side: Side, count: int, began: float) -> None:
        with self._lock:
            side.messages += count
            now = time.monotonic()
            side.times.append(now - began)
            side.seconds = now - self._began


@click.command(
    "bench",
    cls=ApiCommand,
    help=f"{REMOTE['bench'][1].capitalize()}. It makes a queue of its own, and deletes it. What it says is a lower "
    "bound: this program needs more time for a message than the service does.",
    context_settings=SETTINGS,
    examples=("leaseway bench", "leaseway bench --messages 50000 --batch 10 --senders 4 --receivers 4 -o json"),
)
@click.option(
    "--messages",
    type=click.IntRange(1, 10_000_000),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Send N messages.",
)
@click.option(
    "--batch", type=click.IntRange(1, 100), default=10, show_default=True, metavar="N", help="N in a send or receive."
)
@click.option(
    "--bytes",
    "size",
    type=click.IntRange(1, 262_144),
    default=200,
    show_default=True,
    metavar="N",
    help="Bytes of a body.",
)
@click.option(
    "--senders", type=click.IntRange(1, 64), default=2, show_default=True, metavar="N", help="Threads that send."
)
@click.option(
    "--receivers",
    type=click.IntRange(0, 64),
    default=2,
    show_default=True,
    metavar="N",
    help="Threads that receive and ack.",
)
def command(session: Session, messages: int, batch: int, size: int, senders: int, receivers: int) -> None:
    """Sends, receives and acks."""
    queue = f"bench-{secrets.token_hex(6)}"
    session.client.post("/v1/queues", {"name": queue})
    try:
        found = Bench(session.client, queue, messages, batch, size).run(senders, receivers)
    finally:
        session.client.call("DELETE", path_to("queues", queue))
    session.one({"queue": queue, "messages": messages, "batch": batch, "bytes": size, **found}, name="queue")
