"""The generator for Kafka's share groups: load, book and report are those of benchmarks/loadgen,
the client is confluent-kafka. A receive is a poll of at most a batch, and an ack is of one message,
sent with the others of its poll and awaited.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Message, Producer, ShareConsumer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

PARTITIONS = 4
IDLE_S = 4.0


class Book:
    """What became of each message: stored, received, acked."""

    def __init__(self) -> None:
        self.run = secrets.token_hex(4).encode()
        self.begun: dict[int, float] = {}
        self.stored: set[int] = set()
        self.seen: dict[int, int] = {}
        self.acked: set[int] = set()
        self.times: list[float] = []
        self.errors: list[str] = []
        self.doubled_after = self.doubled = self.foreign = self.corrupt = 0
        self.last_ack = self.last_move = time.perf_counter()
        self._lock = threading.Lock()

    def received(self, body: bytes, size: int, asked: float) -> int:
        """Notes a delivery by a poll that began at `asked`; returns its number, or -1."""
        head = body[:23].split(b".")
        now = time.perf_counter()
        with self._lock:
            self.last_move = now
            if len(head) < 3 or head[1] != self.run:
                self.foreign += 1
                return -1
            number = int(head[2])
            self.corrupt += len(body) != size
            self.seen[number] = self.seen.get(number, 0) + 1
            if self.seen[number] == 1:
                self.times.append(now - self.begun[number])
            elif number in self.acked:
                self.doubled_after += 1
            else:
                self.doubled += 1
            return number

    def verdict(self) -> dict[str, int]:
        """Returns the report's part of that name."""
        return {
            "acked": len(self.stored),
            "received_unique": len(self.seen),
            "deleted": len(self.acked),
            "lost": len(self.stored - self.seen.keys()),
            "duplicated_after_delete": self.doubled_after,
            "duplicated_before_delete": self.doubled,
            "out_of_order": 0,
            "foreign": self.foreign,
            "corrupt": self.corrupt,
        }


class Load:
    """One run of so many seconds."""

    def __init__(self, options: argparse.Namespace, seconds: float, rate: float) -> None:
        self.options, self.rate, self.book = options, rate, Book()
        self._next, self._lock = 0, threading.Lock()
        self._sent = threading.Event()
        self._began = time.perf_counter()
        self._until = self._began + seconds

    def run(self, consumers: Sequence[ShareConsumer], producers: Sequence[Producer]) -> dict[str, Any]:
        """Sends and receives at once, until all that is stored is acked."""
        senders = [threading.Thread(target=self._guard, args=(self._produce, one)) for one in producers]
        receivers = [threading.Thread(target=self._guard, args=(self._consume, one)) for one in consumers]
        for thread in (*receivers, *senders):
            thread.start()
        for thread in senders:
            thread.join()
        self._sent.set()
        for thread in receivers:
            thread.join()
        book, seconds = self.book, max(0.001, self.book.last_ack - self._began)
        times = sorted(book.times)
        return {
            "messages": len(book.acked),
            "seconds": seconds,
            "msgs_per_s": len(book.acked) / seconds,
            "end_to_end": {
                f"{name}_ms": _quantile(times, q)
                for name, q in (("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999), ("max", 1.0))
            },
            "call_errors": len(book.errors),
            "error_texts": book.errors[:5],
            "timed_out": False,
        }

    def _guard(self, work: Callable[[Any], None], client: Any) -> None:
        try:
            work(client)
        except KafkaException as error:
            self.book.errors.append(str(error))

    def _numbers(self) -> range:
        with self._lock:
            first, self._next = self._next, self._next + self.options.batch
        return range(first, first + self.options.batch)

    def _produce(self, producer: Producer) -> None:
        filler = b"x" * (self.options.body - 24)
        while True:
            numbers = self._numbers()
            start = self._began + numbers[0] / self.rate if self.rate else time.perf_counter()
            if start >= self._until:
                return
            time.sleep(max(0.0, start - time.perf_counter()))
            for number in numbers:
                self.book.begun[number] = start
                producer.produce(
                    self.options.queue,
                    b"lg1.%b.%010d.%b" % (self.book.run, number, filler),
                    on_delivery=self._stored(number),
                )
            producer.flush()

    def _stored(self, number: int) -> Callable[[Any, Message], None]:
        def report(error: Any, _: Message) -> None:
            if error is None:
                self.book.stored.add(number)
            else:
                self.book.errors.append(str(error))

        return report

    def _finished(self) -> bool:
        book = self.book
        idle = time.perf_counter() - book.last_move > IDLE_S
        return self._sent.is_set() and (len(book.acked) >= len(book.stored) or idle)

    def _consume(self, consumer: ShareConsumer) -> None:
        while not self._finished():
            asked = time.perf_counter()
            numbers = []
            for message in consumer.poll(0.5):
                if message.error():
                    self.book.errors.append(str(message.error()))
                    continue
                numbers.append(self.book.received(message.value() or b"", self.options.body, asked))
                consumer.acknowledge(message)
            if numbers:
                failed = [error for error in consumer.commit_sync(10.0).values() if error is not None]
                self.book.errors += map(str, failed)
                if not failed:
                    self.book.acked.update(number for number in numbers if number >= 0)
                    self.book.last_ack = time.perf_counter()


def _quantile(times: Sequence[float], q: float) -> float:
    return round(times[min(len(times) - 1, int(q * len(times)))] * 1000, 3) if times else 0.0


def _prepare(options: argparse.Namespace) -> None:
    admin = AdminClient({"bootstrap.servers": options.endpoint})
    if options.queue not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic(options.queue, PARTITIONS, 1)])[options.queue].result(30)
        entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        group = ConfigResource(ResourceType.GROUP, options.queue, incremental_configs=[entry])
        admin.incremental_alter_configs([group])[group].result(30)


def _consumer(options: argparse.Namespace) -> ShareConsumer:
    settings = {
        "bootstrap.servers": options.endpoint,
        "group.id": options.queue,
        "share.acknowledgement.mode": "explicit",
    }
    consumer = ShareConsumer({**settings, "max.poll.records": options.batch})
    consumer.subscribe([options.queue])
    return consumer


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("endpoint", ""), ("queue", "bench"), ("json", ""), ("api", "share")):
        parser.add_argument(f"-{name}", default=usual)
    for name, number in (("batch", 1), ("producers", 8), ("consumers", 8), ("body", 1024)):
        parser.add_argument(f"-{name}", type=int, default=number)
    for name, length in (("seconds", 4.0), ("warmup", 0.3), ("rate", 0.0)):
        parser.add_argument(f"-{name}", type=float, default=length)
    parser.add_argument("-held", action="store_true")
    return parser.parse_args()


def _hold(options: argparse.Namespace, word: str) -> None:
    if options.held:
        print(word, flush=True)
        sys.stdin.readline()


def main() -> int:
    options = _options()
    _prepare(options)
    producers = [Producer({"bootstrap.servers": options.endpoint, "acks": "all", "enable.idempotence": True,
                           "linger.ms": 0})
                 for _ in range(options.producers)]  # fmt: skip
    consumers = [_consumer(options) for _ in range(options.consumers)]
    Load(options, options.warmup, 0.0).run(consumers, producers)
    _hold(options, "begin")
    load = Load(options, options.seconds, options.rate)
    report = load.run(consumers, producers)
    _hold(options, "end")
    for consumer in consumers:
        consumer.close()
    report["book"] = load.book.verdict()
    if options.json:
        Path(options.json).write_text(json.dumps(report))
    print(f"{report['msgs_per_s']:.0f} msg/s {report['book']} {report['error_texts']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
