"""Groups of a FIFO queue that are parked while workers and Redis are killed: none is received, none
is forgotten, and each goes on in its order. The real `leaseway up`.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.traffic import Client
from tests.conftest import StartUp
from tests.services import Up

WITHIN_S = 90
EACH = 4
BAD = [f"bad{number}" for number in range(8)]
GOOD = [f"good{number}" for number in range(4)]


class Consumer:
    """Receives and acks, but for the first messages of bad groups while it `refuses`: those, and
    what came behind them, it gives back. What it has settled is in `done`, by group.
    """

    def __init__(self, up: Up) -> None:
        self.endpoint = up.endpoint
        self.refuses = True
        self.done: dict[str, list[int]] = {group: [] for group in (*BAD, *GOOD)}
        self.lock = threading.Lock()
        self.over = threading.Event()

    def run(self) -> None:
        with contextlib.closing(Client(self.endpoint)) as client:
            while not self.over.is_set():
                status, answer = client.call(
                    "POST", "/v1/queues/q/receive", {"max": 10, "wait_seconds": 1, "lease_seconds": 5}
                )
                failed: set[str] = set()
                for message in answer["messages"] if status == 200 else []:
                    self._handle(client, message, failed)

    def _handle(self, client: Client, message: dict[str, Any], failed: set[str]) -> None:
        group, number, body = message["group"], int(message["body"]), {"handles": [message["handle"]]}
        if group in failed or (self.refuses and group in BAD and number == 0):
            failed.add(group)
            client.call("POST", "/v1/queues/q/release", body)
            return
        first, answer = client.call("POST", "/v1/queues/q/ack", body)
        if first != 200:
            answer = insist(client, "POST", "/v1/queues/q/ack", body)
        # After a try without an answer a stale handle is that of a message which it has settled.
        if answer["results"][0]["status"] == "ok" or first != 200:
            with self.lock:
                self.done[group].append(number)
        else:
            failed.add(group)


@pytest.fixture
def up(leaseway_up: StartUp) -> Up:
    started = leaseway_up("--workers", "2")
    started.wait_ready()
    return started


def insist(client: Client, method: str, path: str, body: Any = None, ok: tuple[int, ...] = (200, 201)) -> Any:
    """Repeats a call until it is answered well; what it answers then."""
    end = time.monotonic() + WITHIN_S
    while True:
        status, answer = client.call(method, path, body)
        if status in ok:
            return answer
        assert time.monotonic() < end, f"{method} {path}: {status} {answer}"
        time.sleep(0.2)


def until(check: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN_S
    while not check():
        assert time.monotonic() < end, "did not come to that"
        time.sleep(0.2)


def kill(up: Up, *parts: str) -> None:
    """SIGKILL of parts, all at once."""
    run = up.run
    pids = {"redis": run["redis"]["pid"], **{f"facade-{n}": one["pid"] for n, one in enumerate(run["facades"])}}
    for part in parts:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pids[part]), signal.SIGKILL)


def parked(client: Client) -> dict[str, int]:
    return {one["group"]: one["held"] for one in insist(client, "GET", "/v1/queues/q/parked?limit=100")["groups"]}


def test_parked_groups_outlive_kills_of_workers_and_redis(up: Up) -> None:
    consumer, rest = Consumer(up), random.Random(20261125)
    with contextlib.closing(Client(up.endpoint)) as client:
        settings = {
            "fifo": True,
            "dedup_scope": "group",
            "partitions": 4,
            "on_exhausted": "park",
            "max_receive_count": 3,
        }
        insist(client, "POST", "/v1/queues", {"name": "q", **settings})
        for number in range(EACH):
            for group in (*BAD, *GOOD):
                message = {"body": str(number), "group": group, "dedup_id": str(number)}
                insist(client, "POST", "/v1/queues/q/messages", {"messages": [message]})
        threads = [threading.Thread(target=consumer.run) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(4):
                time.sleep(1.5)
                kill(up, rest.choice(["redis", "facade-0", "facade-1"]))
            until(lambda: parked(client) == dict.fromkeys(BAD, EACH - 1))
            kill(up, "redis", "facade-0", "facade-1")
            time.sleep(2)
            assert parked(client) == dict.fromkeys(BAD, EACH - 1)
            assert {group: consumer.done[group] for group in BAD} == {group: [] for group in BAD}
            until(lambda: all(set(consumer.done[group]) == set(range(EACH)) for group in GOOD))

            consumer.refuses = False
            for group in BAD:
                insist(client, "POST", "/v1/queues/q/unpark", {"group": group})
                if group in BAD[2:4]:
                    kill(up, rest.choice(["redis", "facade-0", "facade-1"]))
            until(lambda: all(set(done) == set(range(EACH)) for done in consumer.done.values()))
        finally:
            consumer.over.set()
            for thread in threads:
                thread.join()
        assert parked(client) == {}
    for group, done in consumer.done.items():
        assert list(dict.fromkeys(done)) == list(range(EACH)), f"group {group} was settled as {done}"
