"""Bad weather: which faults strike, when and for how long, by seed; and the hands that do it.

Every fault is written down when it begins and when it is over. A killed process is over when a
probe has got through again.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import redis
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.judge.history import Line
from tests.outside.book import Book
from tests.outside.lives import Doorbell
from tests.services import Up
from tests.stopping import stand_still

BACK_WITHIN_S = 100.0
STALE, ASLEEP = "stale owner, then flush", "kill kafka, worker asleep"


@dataclass(frozen=True)
class Gust:
    """A fault of the schedule; `part` is a worker's number."""

    name: str
    seconds: float = 0
    part: int = 0
    then: float = 0


class Hands:
    """Does things to the processes of a running stack."""

    def __init__(
        self, up: Up, book: Book, back_since: Callable[[], float], bell: Doorbell, hush: threading.Event
    ) -> None:
        self.up, self.book, self._back_since, self.bell, self._hush = up, book, back_since, bell, hush
        self.url = str(up.run["redis"]["url"])
        self._stopped: set[int] = set()

    def pid(self, part: str, number: int = 0) -> int:
        """The process of a part now."""
        while True:
            with contextlib.suppress(OSError, ValueError, KeyError):
                run = self.up.run
                return int(
                    run["facades"][number % len(run["facades"])]["pid"] if part == "worker" else run[part]["pid"]
                )
            time.sleep(0.05)

    @contextlib.contextmanager
    def struck(self, name: str) -> Iterator[None]:
        """A fault from now to the end of the block."""
        op = self.book.number()
        # What is killed or emptied is healed by the service itself; what stands still is by us.
        args = {"holds_up": "kafka" in name or "worker" in name, "held": "pause" in name or "asleep" in name}
        self.book.write(Line("begin", time.monotonic_ns(), op=op, verb=name, args=args))
        try:
            yield
        finally:
            self.book.write(Line("heal", time.monotonic_ns(), op=op, verb=name))

    def kill(self, part: str, number: int = 0, how: signal.Signals = signal.SIGKILL) -> None:
        """End it; returns when it is another process."""
        pid = self.pid(part, number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)
        end = time.monotonic() + BACK_WITHIN_S
        while self.pid(part, number) == pid and time.monotonic() < end:
            time.sleep(0.05)

    def serving(self, port: int) -> int:
        """Which worker has the connection of a client's port; 0 when none has."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {
            f"socket:[{row[9]}]"
            for row in rows
            if row[1].endswith(f":{self.up.port:04X}") and row[2].endswith(f":{port:04X}")
        }
        for facade in self.up.run["facades"]:
            with contextlib.suppress(OSError):
                for file in Path(f"/proc/{facade['pid']}/fd").iterdir():
                    if str(file.readlink()) in inodes:
                        return int(facade["pid"])
        return 0

    def topic_gone(self, queue: str, within_s: float) -> None:
        """Return as soon as Kafka does not have the topic of a queue."""
        admin, end = AdminClient({**self.up.kafka_client, "log_level": 0}), time.monotonic() + within_s
        while time.monotonic() < end:
            with contextlib.suppress(KafkaException):
                if f"lw.q.{queue}" not in admin.list_topics(timeout=1).topics:
                    return

    @contextlib.contextmanager
    def paused(self, part: str, number: int = 0, pid: int = 0) -> Iterator[int]:
        """Standing still for the length of the block."""
        pid = pid or self.pid(part, number)
        self._stopped.add(pid)
        with contextlib.suppress(ProcessLookupError):
            stand_still(pid)
        try:
            yield pid
        finally:
            self._go_on(pid)

    def flush(self) -> None:
        """FLUSHALL, written as a loss."""
        began = time.monotonic_ns()
        with contextlib.closing(redis.Redis.from_url(self.url, socket_timeout=20)) as store:
            store.flushall()
        self.book.write(Line("loss", time.monotonic_ns(), args={"began": began}))

    def wait_snapshot(self, within_s: float) -> None:
        """Until the first snapshots of a round are in Kafka: who writes them is about to write the
        others.
        """
        group = {"group.id": "outside-snapshots", "auto.offset.reset": "latest", "fetch.wait.max.ms": 5, "log_level": 0}
        consumer = Consumer({**self.up.kafka_client, **group})
        try:
            topic = consumer.list_topics("lw.snapshot", timeout=10).topics["lw.snapshot"]
            parts = [TopicPartition("lw.snapshot", number) for number in topic.partitions]
            consumer.assign(
                [TopicPartition(p.topic, p.partition, consumer.get_watermark_offsets(p, 10)[1]) for p in parts]
            )
            last, end = time.monotonic(), time.monotonic() + within_s
            while time.monotonic() < end:
                message = consumer.poll(0.2)
                if message is not None and time.monotonic() - last > 2:
                    return
                last = time.monotonic() if message is not None else last
        except KafkaException:
            return
        finally:
            consumer.close()

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Nobody asks for anything but the probes."""
        self._hush.set()
        try:
            yield
        finally:
            self._hush.clear()

    def wait_back(self, since: float) -> None:
        """Until a probe that began after `since` got through."""
        end = time.monotonic() + BACK_WITHIN_S
        while self._back_since() <= since and time.monotonic() < end:
            time.sleep(0.05)

    def release_all(self) -> None:
        """Nothing stays stopped."""
        for pid in list(self._stopped):
            self._go_on(pid)

    def _go_on(self, pid: int) -> None:
        self._stopped.discard(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def schedule(seed: int) -> Iterator[Gust]:
    """Gusts without end: every kind once, shuffled; and again."""
    rng = random.Random(f"weather {seed}")
    while True:
        deck = list(KINDS)
        rng.shuffle(deck)
        for name in deck:
            yield Gust(name, _length(rng), rng.randrange(4), rng.uniform(10, 14))


def _length(rng: random.Random) -> float:
    least, most = rng.choice(((1, 5), (1, 5), (5, 20), (30, 50)))
    return rng.uniform(least, most)


def _killed(part: str, how: signal.Signals = signal.SIGKILL) -> Callable[[Hands, Gust], None]:
    def strike(hands: Hands, gust: Gust) -> None:
        since = hands.book.now()
        hands.kill(part, gust.part, how)
        hands.wait_back(since)

    return strike


def _paused(part: str) -> Callable[[Hands, Gust], None]:
    def strike(hands: Hands, gust: Gust) -> None:
        with hands.paused(part, gust.part):
            time.sleep(gust.seconds)

    return strike


def _flushed(hands: Hands, gust: Gust) -> None:
    since = hands.book.now()
    hands.flush()
    hands.wait_back(since)


def _flushed_asleep(hands: Hands, gust: Gust) -> None:
    with hands.paused("worker", gust.part):
        time.sleep(min(gust.seconds, 10) / 2)
        hands.flush()
        time.sleep(gust.seconds)


def _killed_asleep(hands: Hands, gust: Gust) -> None:
    with contextlib.ExitStack() as killed:
        with hands.struck("pause worker"), hands.paused("worker", gust.part):
            time.sleep(1)
            killed.enter_context(hands.struck("kill kafka"))
            since = hands.book.now()
            hands.kill("kafka")
            time.sleep(gust.seconds)
        hands.wait_back(since)


def pause_deleter(hands: Hands, gust: Gust) -> None:
    """A worker that is deleting a queue stands still: from when the topic is gone, or after a
    moment.
    """
    rung = hands.bell.next(40)
    if rung is None:
        return
    port, queue, begin = rung
    pid = hands.serving(port)
    begin.set()
    if gust.part % 2:
        time.sleep(gust.then / 200)
    else:
        hands.topic_gone(queue, 2)
    if pid:
        hands.book.note("note", text=f"worker {pid}, which deletes {queue}, stands still")
        with hands.paused("worker", pid=pid):
            time.sleep(max(gust.seconds, 48))


def _stale_owner(hands: Hands, gust: Gust) -> None:
    """A worker that may be writing snapshots stands still, the other works on; all is quiet when it
    wakes, then Redis is emptied.
    """
    hands.wait_snapshot(15)
    with contextlib.ExitStack() as hush:
        with hands.struck("pause worker"), hands.paused("worker", gust.part):
            time.sleep(max(gust.seconds, 34))
            hush.enter_context(hands.quiet())
            time.sleep(4)
        time.sleep(gust.then)
        with hands.struck("flush redis"):
            _flushed(hands, gust)


def _two_killed(hands: Hands, gust: Gust) -> None:
    since = hands.book.now()
    redis_pid = hands.pid("redis")
    with contextlib.suppress(ProcessLookupError):
        os.kill(redis_pid, signal.SIGKILL)
    hands.kill("kafka")
    hands.wait_back(since)


KINDS: dict[str, Callable[[Hands, Gust], None]] = {
    "kill worker": _killed("worker"),
    "kill kafka": _killed("kafka"),
    "kill redis": _killed("redis"),
    "restart redis": _killed("redis", signal.SIGTERM),
    "kill kafka and redis": _two_killed,
    "pause worker": _paused("worker"),
    "pause worker that deletes": pause_deleter,
    "pause kafka": _paused("kafka"),
    "pause redis": _paused("redis"),
    "flush redis": _flushed,
    "flush redis, worker asleep": _flushed_asleep,
    ASLEEP: _killed_asleep,
    STALE: _stale_owner,
}


LONG = (STALE, "pause worker that deletes")


def strike(hands: Hands, gust: Gust) -> None:
    """One gust from begin to end, and until the service is back."""
    with contextlib.nullcontext() if gust.name in (STALE, ASLEEP) else hands.struck(gust.name):
        KINDS[gust.name](hands, gust)
    hands.wait_back(hands.book.now())


def blow(hands: Hands, seed: int, seconds: float) -> list[str]:
    """Gusts for `seconds`, with pauses of 4 to 10 s; the names of those that struck. None is begun
    that would last beyond.
    """
    rng, end, struck = random.Random(f"pauses {seed}"), time.monotonic() + seconds, []
    for gust in schedule(seed):
        time.sleep(max(0.0, min(rng.uniform(4, 10), end - time.monotonic())))
        left = end - time.monotonic()
        if left < 4:
            break
        if gust.name in LONG and left < 60:
            continue
        short = Gust(
            gust.name,
            gust.seconds if gust.name in LONG else min(gust.seconds, max(1.0, left - 2)),
            gust.part,
            gust.then,
        )
        strike(hands, short)
        struck.append(
            f"{gust.name} {short.seconds:.0f} s" if "pause" in gust.name or "asleep" in gust.name else gust.name
        )
    return struck
