"""What is promised of transactions, under faults: visible is exactly what was committed, each once.

Producers prepare transactions and then commit, roll back, say that they do not know, or die; other
members of their group answer the service's checks from the application's own book. Meanwhile
workers are killed and suspended, and Redis is emptied and killed. Afterwards the book is compared
with what consumers got, and with every record of the queue's topic.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import redis
from confluent_kafka import Consumer, TopicPartition

from schemas.wire import decode_message
from tests.acceptance.traffic import Client
from tests.services import Up
from tests.stopping import stand_still

QUEUE = "transfers"
GROUP = "bank"
# Short, so that a run sees many checks: the first one after two seconds, then every five.
SETTINGS = {
    "LEASEWAY_TRANSACTION_IMMUNITY_MS": "2000",
    "LEASEWAY_TRANSACTION_INTERVAL_MS": "5000",
    "LEASEWAY_TRANSACTION_CHECKS": "100",
}
LEASE_S = 20


class Book:
    """What the application knows: of each transfer whether it was made. None = not decided yet."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: dict[int, bool | None] = {}
        self.sizes: dict[int, int] = {}
        self.ids: dict[int, list[str]] = {}  # what a commit was answered
        self.received: dict[str, set[str]] = {}  # body -> ids of messages that had it
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []

    def count(self, name: str) -> None:
        with self.lock:
            self.counts[name] += 1

    def complain(self, text: str) -> None:
        with self.lock:
            self.broken.append(text)

    def answered(self, number: int, ids: list[str]) -> None:
        with self.lock:
            before = self.ids.setdefault(number, ids)
            if before != ids:
                self.broken.append(f"transfer {number}: a commit was answered with {ids}, before with {before}")

    def bodies(self) -> set[str]:
        """What must be visible."""
        return {f"{number}/{at}" for number, made in self.made.items() if made for at in range(self.sizes[number])}


class Run:
    """One run: `transactions` of them by `producers` threads."""

    def __init__(self, up: Up, transactions: int, producers: int, checkers: int, consumers: int, seed: int) -> None:
        self.up = up
        self.transactions = transactions
        self.book = Book()
        self.seed = seed
        self.ended = threading.Event()  # all is decided
        self.drained = threading.Event()
        self.producers = [
            threading.Thread(target=self._guarded, args=(self._produce, n, producers)) for n in range(producers)
        ]
        self.checkers = [threading.Thread(target=self._guarded, args=(self._check, n, 0)) for n in range(checkers)]
        self.consumers = [threading.Thread(target=self._guarded, args=(self._consume, n, 0)) for n in range(consumers)]

    def _guarded(self, work: Any, number: int, of: int) -> None:
        try:
            work(number, of)
        except BaseException as error:
            self.book.complain(f"{work.__name__} {number}: {error!r}")

    def _produce(self, number: int, of: int) -> None:
        client, rest = Client(self.up.endpoint), random.Random(self.seed * 1000 + number)
        for n in range(number, self.transactions, of):
            self._transfer(client, rest, n)
        client.close()

    def _transfer(self, client: Client, rest: random.Random, n: int) -> None:
        book, fate = self.book, rest.random()
        made, size = rest.random() < 0.6, rest.choice((1, 1, 1, 2, 5))
        with book.lock:
            book.made[n], book.sizes[n] = None, size
        messages = [{"body": f"{n}/{at}"} for at in range(size)]
        status, half = client.call(
            "POST", f"/v1/queues/{QUEUE}/transactions", {"producer_group": GROUP, "messages": messages}
        )
        if status != 201:
            book.count(f"prepare {status}")
            book.made[n] = False  # it may be stored: then somebody is asked, and says so
            return
        book.made[n] = None if fate < 0.1 else made
        book.count("prepared")
        if fate < 0.1:  # not known for a while
            self._insist(client, half["id"], "unknown")
            book.made[n] = made
            book.count("said unknown")
        elif fate < 0.25:
            book.count("died after prepare")
        elif fate < 0.35:  # the answer is sent, and nobody waits for what becomes of it
            client.call("POST", f"/v1/transactions/{half['id']}/{_word(made)}", {}, rest.random() * 0.02 + 0.001)
            client.close()
            book.count("died after the answer")
        else:
            self._decide(client, n, half["id"], made)
            if rest.random() < 0.1:
                self._contradict(client, half["id"], made)

    def _insist(self, client: Client, id: str, word: str) -> tuple[int, Any]:
        """Repeats a call until it is answered."""
        end = time.monotonic() + 120
        while True:
            status, answer = client.call("POST", f"/v1/transactions/{id}/{word}", {})
            if status not in (0, 503):
                return status, answer
            self.book.count(f"{word} {status}")
            if time.monotonic() > end:
                self.book.complain(f"{word} {id} was not answered: {status} {answer}")
                return status, answer
            time.sleep(0.1)

    def _decide(self, client: Client, n: int, id: str, made: bool) -> None:
        status, answer = self._insist(client, id, _word(made))
        if status != 200:
            self.book.complain(f"transfer {n}: {_word(made)} was answered {status} {answer}")
        elif made:
            self.book.answered(n, answer["message_ids"])

    def _contradict(self, client: Client, id: str, made: bool) -> None:
        status, answer = self._insist(client, id, _word(not made))
        if (status, answer.get("code")) != (409, "transaction_decided"):
            self.book.complain(f"{_word(not made)} after {_word(made)} was answered {status} {answer}")
        self.book.count("contradicted")

    def _check(self, number: int, _: int) -> None:
        client, rest = Client(self.up.endpoint), random.Random(self.seed * 1000 + 500 + number)
        while not self.ended.is_set():
            status, answer = client.call("POST", f"/v1/producer-groups/{GROUP}/checks", {"max": 20, "wait_seconds": 2})
            if status != 200:
                time.sleep(0.1)
                continue
            for check in answer["checks"]:
                self.book.count("checks")
                if rest.random() < 0.1:
                    self.book.count("died with a check")
                    continue
                n = int(check["messages"][0]["body"].partition("/")[0])
                made = self.book.made.get(n)
                if made is None:
                    self._insist(client, check["transaction"]["id"], "unknown")
                    continue
                # The producer may answer as well: both say the same.
                self._decide(client, n, check["transaction"]["id"], made)
                self.book.count("answered a check")
        client.close()

    def _consume(self, number: int, _: int) -> None:
        client = Client(self.up.endpoint)
        while not self.drained.is_set():
            asked = {"max": 100, "wait_seconds": 1, "lease_seconds": LEASE_S}
            status, answer = client.call("POST", f"/v1/queues/{QUEUE}/receive", asked)
            if status != 200 or not answer["messages"]:
                time.sleep(0.05)
                continue
            with self.book.lock:
                for message in answer["messages"]:
                    self.book.received.setdefault(message["body"], set()).add(message["id"])
                    self.book.counts["deliveries"] += 1
            client.call(
                "POST", f"/v1/queues/{QUEUE}/ack", {"handles": [message["handle"] for message in answer["messages"]]}
            )
        client.close()

    def open_count(self) -> int:
        """Transactions that are open, as one worker knows; -1 = it does not answer."""
        with contextlib.closing(Client(self.up.endpoint)) as client:
            status, answer = client.call("GET", f"/v1/queues/{QUEUE}/transactions?status=open&limit=1000")
        return len(answer["transactions"]) if status == 200 else -1


def _word(made: bool) -> str:
    return "commit" if made else "rollback"


class Nemesis(threading.Thread):
    """Kills and suspends workers in turn every `every_s`, and twice in the run empties Redis, once
    kills it.
    """

    def __init__(self, up: Up, every_s: float) -> None:
        super().__init__()
        self._up, self._every_s, self._ended = up, every_s, threading.Event()
        self.counts: Counter[str] = Counter()

    def run(self) -> None:
        turn = 0
        while not self._ended.wait(self._every_s):
            turn += 1
            with contextlib.suppress(OSError, redis.RedisError, ValueError):
                if turn % 8 == 5:
                    self._empty_redis()
                elif turn % 8 == 7:
                    os.kill(int(self._up.run["redis"]["pid"]), signal.SIGKILL)
                    self.counts["redis killed"] += 1
                else:
                    self._strike(turn)

    def _strike(self, turn: int) -> None:
        pids = self._up.workers
        if not pids:
            return
        pid = pids[turn % len(pids)]
        if turn % 4 == 2:
            stand_still(pid)
            self.counts["worker suspended"] += 1
            self._ended.wait(8)
            os.kill(pid, signal.SIGCONT)
        else:
            os.kill(pid, signal.SIGKILL)
            self.counts["worker killed"] += 1

    def _empty_redis(self) -> None:
        with redis.Redis.from_url(self._up.run["redis"]["url"], socket_timeout=10) as server:
            server.flushall()
        self.counts["redis emptied"] += 1

    def end(self) -> dict[str, int]:
        self._ended.set()
        self.join()
        return dict(self.counts)


def run(
    up: Up, transactions: int, *, kill_every_s: float, within_s: float, seed: int = 1, producers: int = 8
) -> dict[str, Any]:
    """The figures of a run; `broken` lists what was not as promised, and is empty."""
    with contextlib.closing(Client(up.endpoint)) as client:
        status, answer = client.call("POST", "/v1/queues", {"name": QUEUE, "partitions": 4})
        assert status in (200, 201), answer
    one = Run(up, transactions, producers, checkers=4, consumers=2, seed=seed)
    nemesis, began = Nemesis(up, kill_every_s), time.monotonic()
    nemesis.start()
    for thread in (*one.producers, *one.checkers, *one.consumers):
        thread.start()
    for thread in one.producers:
        thread.join()
    took = time.monotonic() - began
    faults = nemesis.end()
    # From here on nothing is killed: how long the producers took is the machine's.
    end = time.monotonic() + within_s
    left = _settle(one, end)
    expected = one.book.bodies()
    _drain(one, expected, end)
    return _judge(one, expected, left, faults, round(took, 1), round(time.monotonic() - began, 1))


def _settle(one: Run, end: float) -> int:
    """Waits until nothing is open; how much still is."""
    quiet = 0
    left = -1
    while time.monotonic() < end and quiet < 5:
        left = one.open_count()
        quiet = quiet + 1 if left == 0 else 0
        time.sleep(1)
    one.ended.set()
    for thread in one.checkers:
        thread.join()
    return left


def _drain(one: Run, expected: set[str], end: float) -> None:
    """Waits until all that is expected has come, and then for what must not come."""
    while time.monotonic() < end and expected - one.book.received.keys():
        time.sleep(0.5)
    time.sleep(LEASE_S + 10 if end > time.monotonic() + 60 else 5)
    one.drained.set()
    for thread in one.consumers:
        thread.join()


def _judge(
    one: Run, expected: set[str], left: int, faults: dict[str, int], took_s: float, in_all_s: float
) -> dict[str, Any]:
    book, broken = one.book, list(one.book.broken)
    got = book.received
    records = read_topic(one.up)
    unknown = [body for body in records if body not in expected]
    answered = {f"{n}/{at}": one_id for n, ids in book.ids.items() for at, one_id in enumerate(ids)}
    for name, found in (
        ("committed and never seen", sorted(expected - got.keys())),
        ("seen and not committed", sorted(got.keys() - expected)),
        ("seen under two ids", sorted(body for body, ids in got.items() if len(ids) > 1)),
        ("in the queue's topic and not committed", sorted(unknown)),
        (
            "seen under another id than the commit's answer",
            sorted(b for b, i in answered.items() if b in got and got[b] != {i}),
        ),
    ):
        if found:
            broken.append(f"{len(found)} {name}, as {found[:3]}")
    if left:
        broken.append(f"{left} are open at the end")
    return {
        "transactions": one.transactions,
        "committed": sum(made is True for made in book.made.values()),
        "rolled_back": sum(made is False for made in book.made.values()),
        "messages_seen": len(got),
        "messages_expected": len(expected),
        "second_copies_in_the_log": sum(records.values()) - len(records),
        "seconds": took_s,
        "seconds_until_judged": in_all_s,
        "faults": faults,
        "counts": dict(sorted(book.counts.items())),
        "broken": broken,
    }


def read_topic(up: Up) -> Counter[str]:
    """How often each body is in the queue's topic, read by a plain Kafka consumer."""
    consumer = Consumer(
        {"bootstrap.servers": up.run["kafka"]["bootstrap"], "group.id": "bar", "enable.partition.eof": True}
    )
    topic, bodies = f"lw.q.{QUEUE}", Counter[str]()
    parts = list(consumer.list_topics(topic, 10).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, part, 0) for part in parts])
    ended: set[int] = set()
    while len(ended) < len(parts):
        record = consumer.poll(10)
        assert record is not None, "Kafka does not answer"
        error = record.error()
        if error is None:
            bodies[decode_message(record.value(), record.headers()).body.decode()] += 1  # type: ignore[arg-type]
        else:
            ended.add(record.partition() or 0)
    consumer.close()
    return bodies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--producers", type=int, default=8)
    parser.add_argument("--kill-every", type=float, default=10)
    parser.add_argument("--within", type=float, default=1_800)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(Up(Path(folder), "--workers", str(asked.workers), environment=SETTINGS)) as up,
    ):
        up.wait_ready()
        found = run(
            up,
            asked.transactions,
            kill_every_s=asked.kill_every,
            within_s=asked.within,
            seed=asked.seed,
            producers=asked.producers,
        )
    print(json.dumps(found, indent=2))
    return 1 if found["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
