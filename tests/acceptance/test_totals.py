"""Numbers that only grow, against a client's book: two workers, kill -9 of each process in
mid-traffic, FLUSHALL and the rebuild after it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from engine.queues.overview.overview import FRESH_S
from schemas.vocabulary import EventKind
from tests.acceptance.test_bad_days import PARTS, journal, make_queue, started_again, wait_for
from tests.acceptance.traffic import Client, Traffic
from tests.conftest import StartUp
from tests.services import Up

QUEUE = "book"


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    started = leaseway_up_module("--workers", "2")
    started.wait_ready()
    return started


def look(up: Up) -> dict[str, int]:
    """The numbers that one of the workers shows; none while Redis has lost them."""
    with contextlib.closing(Client(up.endpoint)) as client:
        status, answer = client.call("GET", f"/v1/queues?counts=true&prefix={QUEUE}", timeout=10)
    if status != 200:
        return {}
    (row,) = answer["counts"]
    if row["as_of_ms"] is None:
        return {}
    (tag,) = row["tags"]
    return {"sent": row["sent"], "backlog": row["backlog"], **{name: tag[name] for name in tag if name != "name"}}


class Watcher:
    """Looks again and again, at whichever worker takes the connection, and notes what went back."""

    def __init__(self, up: Up) -> None:
        self._up = up
        self._over = threading.Event()
        self.looks: list[dict[str, int]] = []
        self.back: list[tuple[dict[str, int], dict[str, int]]] = []
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        # A worker shows rows that it has read for so long: another one may have newer ones.
        while not self._over.wait(FRESH_S + 0.2):
            found = look(self._up)
            if not found:
                continue
            if self.looks and any(found[name] < before for name, before in self.looks[-1].items() if name != "backlog"):
                self.back.append((self.looks[-1], found))
            self.looks.append(found)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


class Losses:
    """Ends processes and wipes Redis, each when the journal has all that was done before; adds up
    how many deliveries Redis may have forgotten with it.
    """

    def __init__(self, up: Up, traffic: Traffic) -> None:
        self._up = up
        self._traffic = traffic
        self.forgotten = 0

    def kill(self, part: Callable[[dict[str, Any]], int]) -> None:
        """Returns when the process is there again and serves."""
        old = part(self._up.run)
        with self._noted():
            os.kill(old, signal.SIGKILL)
        back_at = wait_for(started_again(self._up, part, old), within_s=60)
        self._traffic.wait_back(back_at, within_s=60)

    def wipe(self) -> None:
        """As `kill`, with FLUSHALL."""
        with self._noted(), contextlib.closing(redis.Redis.from_url(self._up.run["redis"]["url"])) as store:
            store.flushall()
        self._traffic.wait_back(time.monotonic(), within_s=60)

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        before = self._traffic.delivered()
        with contextlib.closing(redis.Redis.from_url(self._up.run["redis"]["url"])) as store:
            wait_drained(store)
        yield
        # Both receivers may have an answer on the way, of 20 at most.
        self.forgotten += self._traffic.delivered() + 2 * 20 - before


def wait_drained(store: Any) -> None:
    """Returns when the journal has all that was done before the call: another worker drains for
    one that was killed.
    """
    seqs = {meta: int(store.hget(meta, "seq") or 0) for meta in store.scan_iter("*:meta")}
    wait_for(lambda: all(int(store.hget(meta, "drained") or 0) >= seq for meta, seq in seqs.items()), within_s=60)


def test_totals_are_equal_to_a_clients_book_and_never_go_back(up: Up) -> None:
    make_queue(up, QUEUE)
    traffic, watcher = Traffic(up.endpoint, QUEUE, lease_s=3), Watcher(up)
    losses = Losses(up, traffic)
    traffic.start()
    try:
        wait_for(lambda: len(traffic.acks) > 250, within_s=60)
        for part in (*PARTS.values(), lambda run: int(run["facades"][1]["pid"])):
            losses.kill(part)
        losses.wipe()
        traffic.stop_sending()
        # As far as the journal knows, every message was acked once; its first delivery counts once.
        settle(up)
    finally:
        traffic.stop(quiet_s=5)
        watcher.stop()
    shown = [look(up) for _ in range(8)]
    print(f"{len(watcher.looks)} looks, {len(traffic.acked_sends)} sends answered, {shown[0]}, {traffic.statuses}")
    assert watcher.back == []
    assert shown == shown[:1] * 8, "workers differ"
    assert traffic.lost() == set()
    assert len(traffic.acked_sends) <= shown[0]["sent"]
    assert len(traffic.acks) <= shown[0]["acked"]
    # What Redis had not given to the journal when it lost everything is forgotten.
    assert traffic.delivered() - shown[0]["received"] <= losses.forgotten
    assert shown[0]["released"] == shown[0]["dead"] == 0
    for name, numbers in history(up).items():
        assert numbers, f"{name}: nothing was noted"
        assert numbers == sorted(numbers), name
        assert numbers[-1] <= shown[0][name], name


def history(up: Up) -> dict[str, list[int]]:
    """The totals as they were noted every 10 s, also before Redis was killed and wiped."""
    with contextlib.closing(Client(up.endpoint)) as client:
        status, answer = client.call("GET", f"/v1/queues/{QUEUE}/history?span=hour")
    assert status == 200, answer
    (tag,) = answer["tags"]
    columns = {"sent": answer["sent"], **{name: tag[name] for name in ("received", "redelivered", "acked")}}
    return {name: [number for number in column if number is not None] for name, column in columns.items()}


def settle(up: Up) -> None:
    """Waits until nothing is open and the numbers agree with each other; else says which there
    are.
    """
    end, row = time.monotonic() + 120, look(up)
    while not _is_settled(row, up):
        assert time.monotonic() < end, row
        time.sleep(0.1)
        row = look(up)


def _is_settled(row: dict[str, int], up: Up) -> bool:
    """Whether each message was delivered and acked. When Kafka was killed, it may have stored the
    first records only of a send that was not answered: those are no messages, and the journal says
    so.
    """
    if not row or row["backlog"] or row["received"] - row["redelivered"] != row["acked"]:
        return False
    return row["acked"] == row["sent"] or row["acked"] == row["sent"] - len(skipped(up))


def skipped(up: Up) -> set[tuple[int, int]]:
    """Partition and offset of each record that was settled unseen."""
    return {
        (record.partition, offset)
        for record in journal(up)
        for entry in record.entries
        if record.queue == QUEUE and entry.kind == EventKind.SKIPPED
        for offset in entry.offsets
    }
