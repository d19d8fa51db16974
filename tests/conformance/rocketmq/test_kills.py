"""Ordered messages by RocketMQ's own client while workers, Redis and Kafka are killed: counted at
the client, each accepted message is consumed, and no message comes for the first time before those
before it in its group are acked.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import NotFetched
from tests.conformance.rocketmq.client import Refused, Rocketmq
from tests.conformance.rocketmq.test_service import asked
from tests.conftest import absent
from tests.services import Up

TOPIC = "ordered"
GROUPS, EACH, PRODUCERS, CONSUMERS = 6, 30, 2, 3
LEASE_S = 10
# What is killed, one after the other: each is started again, and serves again, before the next.
VICTIMS = ("facades", "redis", "kafka", "facades", "redis")
BACK_S = 180.0  # at load average 50; on an idle machine it takes a few
DRAIN_S = 60.0
INVALID_HANDLE = 40013


class Book:
    """What clients were told, in the order in which they were."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Acked, or an ack is under way: it may be gone.
        self._acking = Counter[tuple[str, int]]()
        self._seen = set[tuple[str, int]]()
        self.accepted = set[tuple[str, int]]()
        self.acked = set[tuple[str, int]]()
        self.breaches: list[str] = []
        self.counts = Counter[str]()

    def accept(self, group: str, number: int) -> None:
        with self._lock:
            self.accepted.add((group, number))

    def deliver(self, answer: list[tuple[str, int]]) -> None:
        """Messages of one answer, in its order."""
        with self._lock:
            here: dict[str, set[int]] = defaultdict(set)
            for group, number in answer:
                self.counts["deliveries"] += 1
                before = [n for n in range(number) if not self._acking[group, n] and n not in here[group]]
                if before and (group, number) not in self._seen:
                    self.breaches.append(f"{group}-{number} came before {before[:5]} were acked")
                self._seen.add((group, number))
                here[group].add(number)

    def begin_ack(self, key: tuple[str, int]) -> None:
        with self._lock:
            self._acking[key] += 1

    def end_ack(self, key: tuple[str, int], outcome: str) -> None:
        with self._lock:
            self.counts[f"acks {outcome}"] += 1
            if outcome == "done":
                self.acked.add(key)
            elif outcome == "refused":  # it did nothing
                self._acking[key] -= 1

    def left(self) -> set[tuple[str, int]]:
        with self._lock:
            return self.accepted - self.acked


def key_of(one: dict[str, Any]) -> tuple[str, int]:
    return one["group"], int(one["body"])


def produce(client: Rocketmq, book: Book, groups: list[str]) -> None:
    """Sends each message until it is accepted: one that failed may be there, with another id."""
    producer = client.producer(topics=[TOPIC])
    for number in range(EACH):
        for group in groups:
            end = time.monotonic() + BACK_S + 20
            while True:
                try:
                    client.send(producer, TOPIC, str(number), group=group)
                    break
                except Refused:
                    book.counts["sends failed"] += 1
                    assert time.monotonic() < end, "no send was accepted for too long"
                    time.sleep(0.2)
            book.accept(group, number)
            time.sleep(0.25)  # so that there is traffic all the time


def consume(client: Rocketmq, book: Book, done: threading.Event, seed: int) -> None:
    """Receives and acks; forgets some, and acks only a part of some answers."""
    rest, consumer = random.Random(seed), client.simple("readers", TOPIC, wait_s=2)
    while not done.is_set():
        try:
            got = client.receive(consumer, most=rest.choice((1, 1, 4)), lease_s=LEASE_S)
        except Refused:
            book.counts["receives failed"] += 1
            time.sleep(0.2)
            continue
        book.deliver([key_of(one) for one in got])
        for one in got:
            if rest.random() < 0.02:
                book.counts["forgotten"] += 1
                break  # and what comes after it, which must not be acked before
            if not ack(client, consumer, book, one):
                break


def ack(client: Rocketmq, consumer: int, book: Book, one: dict[str, Any]) -> bool:
    """Asks again while the outcome is in doubt: of a message that is settled it is OK."""
    book.begin_ack(key_of(one))
    end = time.monotonic() + BACK_S + 20
    while True:
        try:
            client.ask("ack", by=consumer, number=one["number"])
        except Refused as error:
            if error.code != INVALID_HANDLE:
                book.counts["acks in doubt"] += 1
                assert time.monotonic() < end, "no ack was answered for too long"
                time.sleep(0.2)
                continue
            book.end_ack(key_of(one), "refused")
            return False
        book.end_ack(key_of(one), "done")
        return True


def pids(up: Up, victim: str) -> list[int]:
    run = up.run
    return [facade["pid"] for facade in run["facades"]] if victim == "facades" else [run[victim]["pid"]]


def kill_all(up: Up, book: Book) -> None:
    """kill -9 of each victim. Of the workers all at once."""
    for victim in VICTIMS:
        time.sleep(3)
        before = pids(up, victim)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + BACK_S
        while set(before) & set(pids(up, victim)) or up.status("/ready") != 200:
            assert time.monotonic() < end, f"{victim} did not come back within {BACK_S:.0f} s"
            time.sleep(0.1)
        book.counts[f"{victim} killed"] += 1


@contextlib.contextmanager
def clients(up: Up, number: int) -> Iterator[list[Rocketmq]]:
    made: list[Rocketmq] = []
    try:
        for _ in range(number):
            made.append(Rocketmq(up.run["rocketmq"]))  # noqa: PERF401  # those before are closed too
        yield made
    except NotFetched as error:
        absent(str(error))
    finally:
        for client in made:
            client.close()


@pytest.mark.long
def test_order_and_every_message_outlive_the_death_of_each_part(programs: None, tmp_path: Path) -> None:
    book, done, failures, began = Book(), threading.Event(), list[BaseException](), time.monotonic()

    def guarded(work: Callable[..., None], *arguments: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run, name=work.__name__)
        thread.start()
        return thread

    with contextlib.closing(Up(tmp_path, "--rocketmq-port", "0", "--workers", "2")) as up:
        up.wait_ready()
        asked(up, "POST", "/v1/queues", {"name": TOPIC, "partitions": 2, "fifo": True, "dedup_scope": "group"})
        with clients(up, PRODUCERS + CONSUMERS) as made:
            groups = [f"g{n}" for n in range(GROUPS)]
            consumers = [guarded(consume, one, book, done, n) for n, one in enumerate(made[PRODUCERS:])]
            producers = [guarded(produce, one, book, groups[n::PRODUCERS]) for n, one in enumerate(made[:PRODUCERS])]
            for thread in (*producers, guarded(kill_all, up, book)):
                thread.join()
            end = time.monotonic() + DRAIN_S
            while book.left() and time.monotonic() < end:
                time.sleep(0.2)
            time.sleep(1)
            done.set()
            for thread in consumers:
                thread.join()
    print(f"{time.monotonic() - began:.0f} s: {len(book.accepted)} accepted, {dict(book.counts)}")
    assert failures == []
    assert book.left() == set(), "accepted and never consumed"
    assert book.breaches == []
    assert len(book.accepted) == GROUPS * EACH
    assert book.counts["deliveries"] >= GROUPS * EACH and book.counts["acks done"] >= GROUPS * EACH
    assert [book.counts[f"{victim} killed"] for victim in ("facades", "redis", "kafka")] == [2, 2, 1]
