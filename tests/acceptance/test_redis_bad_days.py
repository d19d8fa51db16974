"""Redis' bad days through the real `leaseway up`: what the client gets meanwhile, and that nothing
is lost or forgotten.

Kill -9 and FLUSHALL: test_bad_days.py. An older state: tests/integration/test_rebuild.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.acceptance.test_bad_days import make_queue, started_again, wait_for
from tests.acceptance.test_kafka_bad_days import metric, send, take_all
from tests.acceptance.traffic import Client, Traffic
from tests.services import Up
from tests.stopping import stand_still


@pytest.fixture
def store(up: Up) -> Iterator[redis.Redis]:
    with contextlib.closing(redis.Redis.from_url(up.run["redis"]["url"], socket_timeout=30)) as opened:
        yield opened


def command(store: redis.Redis, *words: str) -> Any:
    return store.execute_command(*words)  # type: ignore[no-untyped-call]


def redis_pid(run: dict[str, Any]) -> int:
    return int(run["redis"]["pid"])


def expect_unavailable(client: Client, within_s: float) -> None:
    """What needs Redis is refused in time, with a word of when to try again."""
    began = time.monotonic()
    # What Redis reads when it wakes may still be leased to us, whom nobody told: for a second.
    status, answer = client.call("POST", "/v1/queues/held/receive", {"wait_seconds": 0, "lease_seconds": 1})
    assert (status, answer.get("code")) == (503, "store_unavailable"), answer
    assert client.headers["retry-after"] == "1"
    assert time.monotonic() - began < within_s


class Held:
    """Queue `held`: ten messages, four acked, three leased by us, three waiting; and what must be
    true of it at rest.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        client.call("DELETE", "/v1/queues/held")
        wait_for(lambda: client.call("POST", "/v1/queues", {"name": "held", "partitions": 1})[0] in (200, 201))
        assert send(client, "held", *map(str, range(10)))[0] == 200
        got = self.receive(7)
        self.leased = got[4:]
        assert self.ack(got[:4]) == 200
        self.open = {m["body"] for m in self.leased} | {"7", "8", "9"}
        self.unanswered: set[str] = set()

    def receive(self, count: int) -> list[dict[str, Any]]:
        ask = {"max": count, "wait_seconds": 5, "lease_seconds": 300}
        status, answer = self.client.call("POST", "/v1/queues/held/receive", ask)
        assert status == 200, answer
        return answer["messages"]  # type: ignore[no-any-return]

    def ack(self, messages: list[dict[str, Any]]) -> int:
        return self.client.call("POST", "/v1/queues/held/ack", {"handles": [m["handle"] for m in messages]})[0]

    def send_meanwhile(self, body: str) -> int:
        """A send during the fault: answered, or clearly refused."""
        status, answer = send(self.client, "held", body)
        assert status in (200, 503), answer
        (self.open if status == 200 else self.unanswered).add(body)
        return status

    def check(self) -> None:
        """Leases are as they were, nothing acked comes again, all that was answered is there,
        once.
        """
        wait_for(lambda: self.ack(self.leased) == 200)
        self.open -= {m["body"] for m in self.leased}
        got = take_all(self.client, "held", 3)
        assert len(got) == len(set(got))
        assert self.open <= set(got) <= self.open | self.unanswered, (got, self.open)


def test_a_redis_that_stands_still_is_not_waited_for_long(up: Up, client: Client) -> None:
    held = Held(client)
    pid = redis_pid(up.run)
    stand_still(pid)
    try:
        expect_unavailable(client, 8)
        began = time.monotonic()
        assert held.send_meanwhile("stopped") == 200, "a send does not need Redis"
        print(f"a send with Redis stopped took {time.monotonic() - began:.1f} s")
        assert time.monotonic() - began < 8
    finally:
        os.kill(pid, signal.SIGCONT)
    held.check()


def test_a_redis_out_of_memory_refuses_leases_and_takes_sends(client: Client, store: redis.Redis) -> None:
    held = Held(client)
    before = str(store.config_get("maxmemory")["maxmemory"])
    store.config_set("maxmemory", "100kb")
    try:
        expect_unavailable(client, 3)
        assert held.send_meanwhile("oom") == 200
        # An ack frees memory, and Redis lets a script go on that began with a removal.
        assert held.ack(held.leased) == 200
        assert client.call("GET", "/ready")[0] == 200
    finally:
        store.config_set("maxmemory", before)
    held.check()


def test_a_blocked_redis_delays_and_loses_nothing(up: Up, client: Client, store: redis.Redis) -> None:
    held = Held(client)
    command(store, "CLIENT", "PAUSE", "2500", "ALL")
    began = time.monotonic()
    assert held.send_meanwhile("paused") == 200
    assert time.monotonic() - began < 2.4, "a send is answered when Kafka has it, while Redis is blocked still"
    held.check()
    held = Held(client)
    pid = redis_pid(up.run)
    waker = threading.Timer(6, os.kill, (pid, signal.SIGCONT))
    stand_still(pid)
    waker.start()
    try:
        expect_unavailable(client, 8)
        held.send_meanwhile("slept")
    finally:
        waker.join()
    held.check()


def test_a_read_only_redis_is_refused_and_taken_again(client: Client, store: redis.Redis) -> None:
    held = Held(client)
    # It follows a master that is not there, so it keeps what it has and takes no writes.
    command(store, "REPLICAOF", "127.0.0.1", "1")
    try:
        expect_unavailable(client, 3)
        assert held.ack(held.leased) == 503
        assert held.send_meanwhile("read-only") == 200
    finally:
        command(store, "REPLICAOF", "NO", "ONE")
    held.check()


def test_connections_cut_in_mid_reply_are_made_anew(up: Up, client: Client, store: redis.Redis) -> None:
    make_queue(up, "cut")
    traffic = Traffic(up.endpoint, "cut", lease_s=4)
    traffic.start()
    end = time.monotonic() + 4
    cuts = 0
    while time.monotonic() < end:
        time.sleep(0.05)
        cuts += int(command(store, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
        cuts += int(command(store, "CLIENT", "KILL", "TYPE", "pubsub"))
    traffic.stop(quiet_s=5, within_s=30)
    print(f"{cuts} connections cut: {len(traffic.acked_sends)} sends answered, statuses {dict(traffic.statuses)}")
    assert cuts > 40
    assert traffic.statuses.keys() <= {200, 503}
    # A message whose answer was cut off after it was leased comes again when its lease has lapsed.
    assert traffic.lost() == set()
    assert traffic.again_after_ack == []


def cut_tail(folder: Path, size: int) -> None:
    (file,) = [
        p
        for p in folder.rglob("*")
        if p.is_file() and (p.suffix == ".aof" or ".incr" in p.name) and "base" not in p.name
    ]
    with file.open("r+b") as opened:
        opened.truncate(max(0, file.stat().st_size - size))


@pytest.mark.parametrize("size", [7, 3000], ids=["in mid-command", "with the last acks"])
def test_an_append_only_file_cut_at_its_end_forgets_no_ack(up: Up, client: Client, size: int) -> None:
    held = Held(client)
    time.sleep(1)  # the journal has it, in Kafka
    rebuilds = metric(up, "rebuilds_total")
    kill_and(up, lambda: cut_tail(up.data / "redis", size))
    held.check()
    print(f"{size} bytes cut: {metric(up, 'rebuilds_total') - rebuilds:.0f} units rebuilt")
    if size > 1000:
        assert metric(up, "rebuilds_total") > rebuilds, "the state was taken for whole"


def kill_and(up: Up, meanwhile: Callable[[], None]) -> None:
    """kill -9 of redis-server; `meanwhile` is done before its next life has read its file."""
    old = redis_pid(up.run)
    os.kill(old, signal.SIGKILL)
    time.sleep(0.05)
    meanwhile()
    wait_for(started_again(up, redis_pid, old))
