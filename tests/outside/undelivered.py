"""Whether a message may die that nobody was given: asked from outside, over HTTP, with a book of
what clients have read.

    python -m tests.outside.undelivered --messages 100000 --stop 20

Plants messages in a queue of which one delivery is the last (max_receive_count 1), starts the
service again, so that no worker has their bodies, and receives with waits of 20 to 120 ms and
leases of a few seconds. Nothing is ever acknowledged: each message must become a dead letter, after
a delivery that somebody has read. Meanwhile clients go away in mid-poll, and Kafka stands still for
a while.

A client that goes closes its side of the connection and reads on: the service sees what it would
see of one that has closed all of it, and what it had sent before it saw that is still read, so the
book is exact. `--broken` has some clients end the connection at once instead, by a reset: what the
service sent in the moment before the reset came to it is lost to the book. Letters that no book has
are then counted as in doubt, and there can't be more than such clients had asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import struct
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.services import Up
from tests.stopping import stand_still

QUEUE, DEAD = "work", "work.dead"
MOST = 10
LEASE_S = 3
PATIENCE_S = 30.0
_COUNTERS = ("leaseway_deliveries_", "leaseway_plane_requests_total")
_RESET = struct.pack("ii", 1, 0)


@dataclass
class Book:
    """What clients have read, by body: how often. `statuses` of receives; `left` and `broken`: how
    many clients went, and how.
    """

    carried: Counter[str] = field(default_factory=Counter)
    counts: Counter[int] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    left: int = 0
    left_with_answer: int = 0
    broken: int = 0
    longest_s: float = 0.0

    def write(self, status: int, text: bytes) -> bool:
        """An answer that was read to its end; whether it carried anything."""
        answer = json.loads(text)
        self.statuses["200" if status == 200 else f"{status} {answer.get('code')}"] += 1
        messages = answer["messages"] if status == 200 else []
        for message in messages:
            self.carried[message["body"]] += 1
            self.counts[message["receive_count"]] += 1
        return bool(messages)


class Line:
    """A connection of its own for calls one after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, path: str, body: Any) -> None:
        """Sends a request. Raises OSError."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        text = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: "
            f"{len(text)}\r\n\r\n"
        )
        self._writer.write(head.encode() + text)
        await self._writer.drain()

    async def hear(self) -> tuple[int, bytes]:
        """The answer. Raises OSError, or EOFError when the connection ends before the answer
        does.
        """
        assert self._reader is not None
        head = await self._reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2])
        return int(head.split(b" ", 2)[1]), await self._reader.readexactly(int(fields[b"content-length"]))

    async def call(self, path: str, body: Any) -> tuple[int, Any]:
        """(status, JSON); (0, None) when there was no answer."""
        try:
            await self.ask(path, body)
            async with asyncio.timeout(PATIENCE_S):
                status, text = await self.hear()
            return status, json.loads(text)
        except (OSError, EOFError):
            self.close()
            return 0, None

    def leave(self) -> None:
        """Says that nothing more comes from here."""
        assert self._writer is not None
        if self._writer.can_write_eof():
            self._writer.write_eof()

    def close(self, *, reset: bool = False) -> None:
        if self._writer is not None:
            if reset:
                self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self._writer.transport.abort()
            self._writer.close()
        self._reader = self._writer = None


@dataclass(frozen=True)
class Plan:
    """`leaves` and `broken`: of a hundred receives, how many have a client that goes. `stop_s`: how
    long Kafka stands still. `kept`: the worker has kept the bodies, so that its plane serves.
    """

    messages: int
    clients: int = 24
    leaves: int = 30
    broken: int = 0
    stop_s: float = 20.0
    seed: int = 1
    workers: int = 1
    within_s: float = 3600.0
    kept: bool = False


@dataclass
class Verdict:
    """`undelivered`: letters that no client was given, though the book is exact; `lost`: messages
    of which nothing is left.
    """

    messages: int
    letters: int
    undelivered: int
    in_doubt: int
    twice: int
    lost: int
    receives: dict[str, int]
    left: int
    left_with_answer: int
    broken: int
    longest_s: float
    seconds: float
    other_counts: int
    returned: dict[str, float]


class Receiving:
    """Clients that receive until nothing of the queue is left."""

    def __init__(self, port: int, plan: Plan) -> None:
        self._port = port
        self._plan = plan
        self._random = random.Random(plan.seed)
        self.book = Book()
        self.over = False

    async def client(self) -> None:
        line = Line(self._port)
        while not self.over:
            roll = self._random.randrange(100)
            # The plane takes whole seconds.
            wait_s = 1 if self._plan.kept else self._random.randint(20, 120) / 1000
            try:
                await line.ask(
                    f"/v1/queues/{QUEUE}/receive", {"max": MOST, "wait_seconds": wait_s, "lease_seconds": LEASE_S}
                )
                began = time.monotonic()
                if roll >= self._plan.leaves + self._plan.broken:
                    async with asyncio.timeout(PATIENCE_S):
                        status, text = await line.hear()
                    self.book.write(status, text)
                    self.book.longest_s = max(self.book.longest_s, time.monotonic() - began)
                    await asyncio.sleep(0 if status == 200 else 0.05)
                    continue
                await self._go(line, reset=roll >= self._plan.leaves)
            except (OSError, EOFError):
                self.book.statuses["no answer"] += 1
                await asyncio.sleep(0.05)
            line.close()
        line.close()

    async def _go(self, line: Line, *, reset: bool) -> None:
        """Goes away in mid-poll, or with the answer if that was faster."""
        hearing = asyncio.ensure_future(line.hear())
        await asyncio.wait({hearing}, timeout=self._random.uniform(0, 0.005 if self._plan.kept else 0.14))
        if reset:
            line.close(reset=True)
            self.book.broken += 1
        else:
            line.leave()
            self.book.left += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                self.book.left_with_answer += self.book.write(*await hearing)
        except (OSError, EOFError):
            pass  # it was not answered, and never will be


async def _plant(port: int, messages: int) -> None:
    """Sends messages, with their numbers as bodies."""
    batches = iter(range(0, messages, 100))

    async def sender() -> None:
        line = Line(port)
        for first in batches:
            numbers = range(first, min(first + 100, messages))
            while (await line.call(f"/v1/queues/{QUEUE}/messages", {"messages": [{"body": str(n)} for n in numbers]}))[
                0
            ] != 200:
                raise RuntimeError("a send was not answered: what is planted is not known")
        line.close()

    await asyncio.gather(*(sender() for _ in range(4)))


async def _letters(port: int, most: int) -> list[str]:
    """The dead letters, each taken."""
    bodies: list[str] = []
    line, quiet = Line(port), 0
    while len(bodies) < most and quiet < 5:
        status, answer = await line.call(
            f"/v1/queues/{DEAD}/receive", {"max": 100, "wait_seconds": 2, "lease_seconds": 600}
        )
        messages = answer["messages"] if status == 200 else []
        quiet = 0 if messages else quiet + 1
        bodies += [message["body"] for message in messages]
        if messages:
            await line.call(f"/v1/queues/{DEAD}/ack", {"handles": [message["handle"] for message in messages]})
    line.close()
    return bodies


async def _settled(port: int, messages: int, book: Book, end: float) -> None:
    """Returns when the dead-letter queue has all, or at the time `end`."""
    said = time.monotonic()
    while time.monotonic() < end and (dead := await asyncio.to_thread(_backlog, port)) < messages:
        if time.monotonic() - said > 10:
            said = time.monotonic()
            print(f"  {dead} dead letters, {len(book.carried)} of {messages} delivered", flush=True)
        await asyncio.sleep(0.5)


def _backlog(port: int) -> int:
    """Messages in the dead-letter queue; -1 = the service does not say now."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/queues/{DEAD}", timeout=10) as reply:
            return int(sum(tag["backlog"] for tag in json.loads(reply.read())["tags"]))
    except (OSError, ValueError):
        return -1


async def _stop_kafka(up: Up, plan: Plan, book: Book) -> None:
    """Has Kafka stand still when about a third has been delivered."""
    while len(book.carried) * 3 < plan.messages:
        await asyncio.sleep(0.05)
    pid = int(up.run["kafka"]["pid"])
    stand_still(pid)
    try:
        await asyncio.sleep(plan.stop_s)
    finally:
        os.kill(pid, signal.SIGCONT)
    print(f"  Kafka stood still for {plan.stop_s:g} s", flush=True)


async def _traffic(up: Up, plan: Plan) -> tuple[Book, list[str], dict[str, float]]:
    receiving = Receiving(up.port, plan)
    clients = [asyncio.create_task(receiving.client()) for _ in range(plan.clients)]
    fault = asyncio.create_task(_stop_kafka(up, plan, receiving.book))
    await _settled(up.port, plan.messages, receiving.book, time.monotonic() + plan.within_s)
    receiving.over = True
    fault.cancel()
    await asyncio.gather(fault, return_exceptions=True)
    await asyncio.gather(*clients)
    returned = await asyncio.to_thread(_returned, up.port)
    return receiving.book, await _letters(up.port, plan.messages), returned


def _returned(port: int) -> dict[str, float]:
    """What the service says of deliveries that it gave back, and of who served requests (of the
    worker that answers).
    """
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
        lines = reply.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(_COUNTERS)}


def run(plan: Plan, folder: Path) -> Verdict:
    """Starts a service in `folder`, does it all, and compares."""
    began = time.monotonic()
    up = Up(folder, "--workers", str(plan.workers))
    try:
        up.wait_ready(120)
        asyncio.run(_prepare(up.port, plan))
        if not plan.kept:
            up.stop()
            up = Up(folder, "--workers", str(plan.workers), port=up.port)
            up.wait_ready(120)
        book, letters, returned = asyncio.run(_traffic(up, plan))
    finally:
        up.close()
    unseen = set(letters) - set(book.carried)
    if unseen:
        print(f"  nobody had {sorted(unseen, key=int)[:50]}", flush=True)
    return Verdict(
        messages=plan.messages,
        letters=len(letters),
        undelivered=0 if plan.broken else len(unseen),
        in_doubt=len(unseen) if plan.broken else 0,
        twice=sum(times > 1 for times in book.carried.values()),
        lost=len({str(n) for n in range(plan.messages)} - set(letters)),
        receives=dict(book.statuses),
        left=book.left,
        left_with_answer=book.left_with_answer,
        broken=book.broken,
        longest_s=round(book.longest_s, 2),
        seconds=round(time.monotonic() - began, 1),
        returned=returned,
        other_counts=sum(number for count, number in book.counts.items() if count != 1),
    )


async def _prepare(port: int, plan: Plan) -> None:
    line = Line(port)
    for settings in (
        {"name": DEAD},
        {"name": QUEUE, "redrive_policy": {"dead_letter_queue": DEAD, "max_receive_count": 1}},
    ):
        status, answer = await line.call("/v1/queues", settings)
        if status != 201:
            raise RuntimeError(f"no queue: {status} {answer}")
    line.close()
    await _plant(port, plan.messages)


def main() -> int:
    """0 when nothing died that nobody was given."""
    form = argparse.ArgumentParser(description="Whether a message may die that nobody was given.")
    form.add_argument("--messages", type=int, default=100_000)
    form.add_argument("--clients", type=int, default=24)
    form.add_argument(
        "--leaves", type=int, default=30, help="of a hundred receives, how many clients close their side in mid-poll"
    )
    form.add_argument(
        "--broken", type=int, default=0, help="of a hundred receives, how many clients reset the connection"
    )
    form.add_argument(
        "--stop", type=float, default=20.0, dest="stop_s", metavar="S", help="how long Kafka stands still"
    )
    form.add_argument("--workers", type=int, default=1)
    form.add_argument(
        "--kept", action="store_true", help="do not start the service again: its plane has the bodies, and serves"
    )
    form.add_argument("--seed", type=int, default=1)
    plan = Plan(**vars(form.parse_args()))
    with tempfile.TemporaryDirectory(prefix="undelivered-") as folder:
        verdict = run(plan, Path(folder))
    print(json.dumps(asdict(verdict)))
    return 1 if verdict.undelivered or verdict.lost or verdict.twice or verdict.in_doubt > verdict.broken * MOST else 0


if __name__ == "__main__":
    sys.exit(main())
