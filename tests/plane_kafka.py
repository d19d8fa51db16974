"""The plane's way to Kafka without a plane: a producer of the native library that a test turns."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import Consumer, Message, TopicPartition

from facade.http.sockets.library import loaded


class Entry(NamedTuple):
    """A record to be appended."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = 0


class Outcome(NamedTuple):
    """What became of an append: `stored` with its first offset and the broker's time, else
    `not_stored` or `unknown` with an error code and a text.
    """

    kind: str
    number: int
    more: Any


_pack = msgspec.msgpack.encode


class PlaneKafka:
    """The producer, and all outcomes so far by token. One thread may use it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Raises ValueError with what the library says of an option."""
        # Not the front's handle of the library: while this waits, other threads of the test run.
        self._library = ctypes.CDLL(str(loaded()._name))
        self._library.front_kafka_new.restype = ctypes.c_void_p
        self._library.front_kafka_ask.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)
        self._library.front_kafka_ask.restype = ctypes.c_void_p
        self._library.front_kafka_free.argtypes = (ctypes.c_void_p,)
        self.outcomes: dict[int, Outcome] = {}
        self.is_reached = False
        self.trouble: tuple[int, str] | None = None
        self.held = 0
        self._next = 0
        self._trial = self._library.front_kafka_new()
        self._ask("open", _head(len(options)), *(_pack(text) for pair in options.items() for text in pair))

    def close(self) -> None:
        self._library.front_kafka_free(self._trial)

    def _ask(self, name: str, *parts: bytes) -> None:
        call, size = _pack(name) + b"".join(parts), ctypes.c_size_t()
        answer = self._library.front_kafka_ask(self._trial, call, len(call), ctypes.byref(size))
        news = msgspec.msgpack.decode(ctypes.string_at(answer, size.value))
        if isinstance(news, str):
            raise ValueError(news)
        reached, trouble, self.held, outcomes = news
        self.is_reached, self.trouble = bool(reached), tuple(trouble) if trouble else None
        for token, kind, (number, more) in outcomes:
            assert token not in self.outcomes, f"append {token} was answered twice"
            self.outcomes[token] = Outcome(kind, number, more)

    def append(self, topic: str, partition: int, entries: Sequence[Entry], within_ms: int = 10_000) -> int:
        """Begins an append; returns its token."""
        self._next += 1
        parts = [*map(_pack, (topic, partition, self._next, within_ms)), _head(len(entries))]
        for entry in entries:
            parts += [_optional(entry.key), _optional(entry.value), _head(len(entry.headers))]
            parts += [_pack(name) + _optional(value) for name, value in entry.headers]
            parts.append(_pack(entry.timestamp_ms))
        self._ask("append", *parts)
        return self._next

    def reach(self) -> None:
        """Connects to any broker."""
        self._ask("reach")

    def stop(self) -> None:
        """Closes all connections; what is under way is answered."""
        self._ask("stop")

    def turn(self, wait_ms: int = 50) -> None:
        """Waits for the brokers once, `wait_ms` at most, and takes in what there is."""
        self._ask("turn", _pack(wait_ms))

    def until(self, done: Callable[[], object], within_s: float = 60.0) -> None:
        """Turns it until `done`. Fails after `within_s`."""
        end = time.monotonic() + within_s
        while not done():
            assert time.monotonic() < end, (
                f"not within {within_s:g} s; {self.trouble}, {len(self.outcomes)} of {self._next} answered"
            )
            self.turn()

    def settle(self, within_s: float = 60.0) -> None:
        """Turns it until each append has its outcome."""
        self.until(lambda: len(self.outcomes) == self._next, within_s)

    def outcome(self, topic: str, partition: int, entries: Sequence[Entry], within_ms: int = 10_000) -> Outcome:
        """Appends, and returns what became of it."""
        token = self.append(topic, partition, entries, within_ms)
        self.until(lambda: token in self.outcomes)
        return self.outcomes[token]


@contextmanager
def plane_kafka(options: Mapping[str, str]) -> Iterator[PlaneKafka]:
    """A producer until the end. Raises ValueError as `PlaneKafka` does."""
    producer = PlaneKafka(options)
    try:
        yield producer
    finally:
        producer.close()


def kept(bootstrap: str, topic: str, partition: int) -> list[Message]:
    """Returns all records of a partition, as Kafka's own client reads them."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "plane", "enable.auto.commit": False, "check.crcs": True}
    )
    place = TopicPartition(topic, partition, 0)
    try:
        _, end = consumer.get_watermark_offsets(place, timeout=30)
        consumer.assign([place])
        found: list[Message] = []
        while not found or (found[-1].offset() or 0) < end - 1:
            if not end:
                return []
            found += consumer.consume(1_000, timeout=1)
            assert all(message.error() is None for message in found)
        return found
    finally:
        consumer.close()


def _head(items: int) -> bytes:
    """The head of a MessagePack array."""
    return b"\xdd" + items.to_bytes(4, "big")


def _optional(value: bytes | None) -> bytes:
    return _pack([] if value is None else [value])
