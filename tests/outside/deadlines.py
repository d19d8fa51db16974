"""Senders and ackers over raw HTTP while Kafka stands still: how late the latest answer is, and
whether what was refused as not stored is delivered all the same.

`python -m tests.outside.deadlines` stops the Kafka of a stack of its own for a minute, under 300
senders of ten messages a send and 50 who ack in a queue with durable acks.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.services import Up
from tests.stopping import stand_still

BODIES = 10


class Caller:
    """One keep-alive connection to the service."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, content: Any) -> tuple[int, Any]:
        """The status and the JSON of an answer, however long it takes."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        body = json.dumps(content).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
            f"{len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in rest)}
        answer = await reader.readexactly(int(headers.get("content-length", 0)))
        return int(line.split(" ")[1]), json.loads(answer) if answer else None

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


class Book:
    """What became of each body, and how long the answers took (s) by what was asked."""

    def __init__(self) -> None:
        self.stored: set[str] = set()
        self.not_stored: set[str] = set()
        self.unknown: set[str] = set()
        self.took: dict[str, list[float]] = {"send": [], "ack": []}
        self.codes: Counter[str] = Counter()

    def note(self, asked: str, began: float, status: int, answer: Any) -> str:
        """Notes an answer, and returns its code, "" = it is 200."""
        self.took[asked].append(time.monotonic() - began)
        code = "" if status == 200 else str(answer["code"])
        self.codes[f"{asked} {code or 'ok'}"] += 1
        return code

    def told(self) -> str:
        """A line for people."""
        parts = [
            f"{asked}: {len(took)} answers, p50 {_middle(took):.2f} s, longest {max(took, default=0):.2f} s"
            for asked, took in self.took.items()
        ]
        return "; ".join([*parts, str(dict(self.codes))])


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


async def send_until(port: int, queue: str, name: str, until: float, book: Book) -> None:
    """Sends batches one after the other; none is sent again."""
    caller = Caller(port)
    for turn in itertools.count():
        if time.monotonic() > until:
            break
        bodies = [f"{name}-{turn}-{n}" for n in range(BODIES)]
        began = time.monotonic()
        status, answer = await caller.post(
            f"/v1/queues/{queue}/messages", {"messages": [{"body": body} for body in bodies]}
        )
        code = book.note("send", began, status, answer)
        kept = book.stored if not code else book.not_stored if code in ("not_stored", "overloaded") else book.unknown
        kept.update(bodies)
    caller.close()


async def ack_until(port: int, queue: str, handles: list[str], until: float, book: Book) -> None:
    """Acks one message after the other."""
    caller = Caller(port)
    while handles and time.monotonic() < until:
        began = time.monotonic()
        status, answer = await caller.post(f"/v1/queues/{queue}/ack", {"handles": [handles.pop()]})
        if book.note("ack", began, status, answer):
            await asyncio.sleep(0.1)
    caller.close()


async def take_all(port: int, queue: str, *, patience_s: int = 3) -> Counter[str]:
    """How often each body of a queue is delivered, until nothing comes for some seconds."""
    caller, found = Caller(port), Counter[str]()
    while True:
        status, answer = await caller.post(
            f"/v1/queues/{queue}/receive", {"max": 100, "wait_seconds": patience_s, "lease_seconds": 300}
        )
        assert status == 200, answer
        if not answer["messages"]:
            caller.close()
            return found
        found.update(message["body"] for message in answer["messages"])


async def handles_of(port: int, queue: str, number: int) -> list[str]:
    """Sends so many messages to a queue, and returns their handles, with long leases."""
    caller, handles = Caller(port), list[str]()
    for first in range(0, number, 100):
        status, answer = await caller.post(
            f"/v1/queues/{queue}/messages", {"messages": [{"body": str(first + n)} for n in range(100)]}
        )
        assert status == 200, answer
    while len(handles) < number:
        _, answer = await caller.post(
            f"/v1/queues/{queue}/receive", {"max": 100, "wait_seconds": 5, "lease_seconds": 600}
        )
        handles += [message["handle"] for message in answer["messages"]]
    caller.close()
    return handles


@contextlib.contextmanager
def stopped(pid: int) -> Any:
    """A process stands still."""
    stand_still(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def hold_up(port: int, kafka: int, *, senders: int, ackers: int, stop_s: float, queues: tuple[str, str]) -> Book:
    """Traffic to a queue, and acks in a queue with durable acks, while Kafka is stopped for
    `stop_s`; the answers to what was asked meanwhile.
    """
    to, acked = queues
    handles = await handles_of(port, acked, max(100, ackers * 100))
    book, warm = Book(), Book()
    until = time.monotonic() + 1
    await asyncio.gather(*(send_until(port, to, f"w{n}", until, warm) for n in range(senders)))
    with stopped(kafka):
        until = time.monotonic() + stop_s
        shares = [handles[n::ackers] for n in range(ackers)]
        traffic = asyncio.gather(
            *(send_until(port, to, f"s{n}", until, book) for n in range(senders)),
            *(ack_until(port, acked, share, until, book) for share in shares),
        )
        await asyncio.sleep(stop_s)
    await traffic
    book.stored |= warm.stored
    return book


async def main(options: argparse.Namespace, up: Up) -> int:
    """Prints what came of it; 1 = an answer was late, or something was delivered that should not
    be there.
    """
    caller = Caller(up.port)
    for name, settings in (("to", {}), ("acked", {"durable_acks": True})):
        status, answer = await caller.post("/v1/queues", {"name": name, **settings})
        assert status in (200, 201), answer
    kafka = int(up.run["kafka"]["pid"])
    book = await hold_up(
        up.port, kafka, senders=options.senders, ackers=options.ackers, stop_s=options.stop, queues=("to", "acked")
    )
    print(book.told())
    found = await take_all(up.port, "to", patience_s=10)
    wrong = book.not_stored & found.keys()
    lost = book.stored - found.keys()
    twice = [body for body, times in found.items() if times > 1]
    print(
        f"{len(book.stored)} stored, {len(book.not_stored)} not stored, {len(book.unknown)} unknown; "
        f"{len(found)} delivered:"
    )
    print(
        f"{len(lost)} of the stored lost, {len(wrong)} of the not stored and "
        f"{len(book.unknown & found.keys())} of the unknown delivered,"
    )
    print(f"{len(twice)} twice")
    late = max(book.took["send"]) > 11 or max(book.took["ack"]) > 6
    return int(late or bool(wrong or lost))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--senders", type=int, default=300)
    parser.add_argument("--ackers", type=int, default=50)
    parser.add_argument("--stop", type=float, default=60.0, help="for how many seconds Kafka stands still")
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder) / "data")
        try:
            up.wait_ready()
            raise SystemExit(asyncio.run(main(parser.parse_args(), up)))
        finally:
            up.stop()
