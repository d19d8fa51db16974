"""Brings a service to a state: queues, tags, stored, leased and delayed messages; and asks whether
it is there.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import Any

from benchmarks.backlog import in_threads
from benchmarks.scale.load import LEASED
from benchmarks.scale.wire import Broken, Wire, request
from tests.acceptance.traffic import Client

BATCH = 100
BODY = "x" * 100
THREADS = 4
# The longest there is: nothing that is leased here comes back while others are measured.
LEASE_S = 12 * 3600
DELAY_S = 3600
PATIENCE_S = 30.0


class Unreachable(Exception):
    """The state can't be brought about; the text says what stopped it."""


def make_queues(endpoint: str, names: list[str], partitions: int | None = None) -> None:
    """Makes queues. Raises Unreachable."""

    def work(number: int) -> None:
        with contextlib.closing(Client(endpoint)) as client:
            for name in names[number::THREADS]:
                body = {"name": name} if partitions is None else {"name": name, "partitions": partitions}
                _must(client, f"/v1/queues of {name}", *client.call("POST", "/v1/queues", body))

    _in_threads(work)


def make_tags(endpoint: str, queue: str, names: list[str]) -> None:
    """Makes tags of a queue, one after the other: each changes the queue's record. Raises
    Unreachable.
    """
    with contextlib.closing(Client(endpoint)) as client:
        for name in names:
            _must(client, f"tag {name}", *client.call("POST", f"/v1/queues/{queue}/tags", {"name": name}))


def send(port: int, queue: str, count: int, *, delay_s: int = 0) -> None:
    """Sends `count` small messages. Raises Unreachable."""
    message: dict[str, Any] = {"body": BODY, "delay_seconds": delay_s} if delay_s else {"body": BODY}

    def work(number: int) -> None:
        with contextlib.closing(Wire(port)) as wire:
            for start in range(number * BATCH, count, THREADS * BATCH):
                _patiently(
                    wire, request(f"/v1/queues/{queue}/messages", {"messages": [message] * min(BATCH, count - start)})
                )

    _in_threads(work)


def lease(port: int, queue: str, count: int) -> None:
    """Receives `count` messages and keeps them. Raises Unreachable."""
    shares = [len(range(number, count, THREADS)) for number in range(THREADS)]

    def work(number: int) -> None:
        left, last = shares[number], time.perf_counter()
        with contextlib.closing(Wire(port)) as wire:
            while left:
                asked = {"max": min(BATCH, left), "wait_seconds": 1, "lease_seconds": LEASE_S}
                got = len(LEASED.decode(_patiently(wire, request(f"/v1/queues/{queue}/receive", asked))).messages)
                left -= got
                last = time.perf_counter() if got else last
                if time.perf_counter() - last > PATIENCE_S:
                    raise Unreachable(
                        f"no message came for {PATIENCE_S:.0f} s with {left:,} of {shares[number]:,} still to be leased"
                    )

    _in_threads(work)


def check(endpoint: str, queue: str, kind: str, least: int) -> None:
    """Raises Unreachable unless the queue has at least so many messages that are `kind`: backlog,
    leased or delayed.
    """
    with contextlib.closing(Client(endpoint)) as client:
        status, answer = client.call("GET", f"/v1/queues/{queue}")
    found = answer["tags"][0][kind] if status == 200 else 0
    if found < least:
        raise Unreachable(f"{found:,} messages are {kind}, wanted {least:,}")


def _must(client: Client, what: str, status: int, answer: Any) -> None:
    if status not in (200, 201):
        raise Unreachable(f"{what}: {status} {str(answer)[:200]}")


def _patiently(wire: Wire, wanted: bytes) -> bytes:
    """The answer; a service that is busy (429, 503) is asked again for PATIENCE_S."""
    end = time.perf_counter() + PATIENCE_S
    for pause in itertools.chain((0.05, 0.1, 0.2), itertools.repeat(0.5)):
        status, answer = wire.ask(wanted)
        if status == 200:
            return answer
        if status not in (429, 503) or time.perf_counter() > end:
            raise Unreachable(f"{status} {answer[:200].decode(errors='replace')}")
        time.sleep(pause)
    raise AssertionError


def _in_threads(work: Any) -> None:
    """Runs `work(number)` in THREADS threads and raises what one of them raised."""
    failed: list[Exception] = []

    def kept(number: int) -> None:
        try:
            work(number)
        except (Unreachable, Broken, OSError) as error:
            failed.append(error)

    in_threads(THREADS, kept)
    if failed:
        raise Unreachable(str(failed[0])) from failed[0]
