"""What hostile clients cost a well-behaved one: the p99 of its sends and its refusals before and
during each flood, and the memory of the workers.

    .venv/bin/python -m benchmarks.floods --sends 3000

Starts its own `leaseway up --auth required` in a temporary folder; talks to 127.0.0.1 only; ends by
itself. The floods come from a process of their own, and from the address of the good client: none
is told from the other by it. That process takes a core of the machine, which a flood over a network
does not, so the p99 is also taken beside a process that does nothing but take a core.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from benchmarks.idle_polls import resident_kib
from facade.http.bounds.connections import raise_descriptors
from tests.services import Up

LARGE = 16 * 1024 * 1024
SENDS = "/v1/queues/calm/messages"
AT_ONCE = 200
SETTLE_S = 3.0
WARM_SENDS = 5000
BUSY = "while True: pass"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Flood = Callable[["Target", int], Coroutine[Any, Any, None]]


class Target:
    """Where a flood goes, and with which credentials: the key is there, and good."""

    def __init__(self, port: int, authorization: str) -> None:
        self.port = port
        self.authorization = authorization
        self.gate = asyncio.Semaphore(AT_ONCE)

    async def open(self) -> Streams:
        async with self.gate:
            return await asyncio.open_connection("127.0.0.1", self.port, limit=4096)

    def head(self, length: int, authorization: str = "") -> bytes:
        proof = authorization or self.authorization
        text = f"POST {SENDS} HTTP/1.1\r\nHost: x\r\nAuthorization: {proof}\r\nContent-Type: application/json\r\n"
        return text.encode() + b"Content-Length: %d\r\n\r\n" % length


async def large_bodies(target: Target, number: int) -> None:
    """16 MiB less one byte at once, then nothing."""
    reader, writer = await target.open()
    with contextlib.closing(writer):
        writer.write(target.head(LARGE) + b" " * (LARGE - 1))
        await reader.read()


async def slow_bodies(target: Target, number: int) -> None:
    """A small body, of which a little comes each second."""
    reader, writer = await target.open()
    with contextlib.closing(writer):
        writer.write(target.head(200_000) + b" " * 20_000)
        ended = asyncio.ensure_future(reader.read())
        while not (await asyncio.wait({ended}, timeout=1.0))[0]:
            writer.write(b" " * 100)
        await ended


async def slow_heads(target: Target, number: int) -> None:
    """A head of which a line comes each second."""
    reader, writer = await target.open()
    with contextlib.closing(writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nx-1: " + b"y" * 4000 + b"\r\n")
        ended = asyncio.ensure_future(reader.read())
        while not (await asyncio.wait({ended}, timeout=1.0))[0]:
            writer.write(b"x-2: y\r\n")
        await ended


async def half_requests(target: Target, number: int) -> None:
    """Half a request, of one kind or the other, and then nothing."""
    reader, writer = await target.open()
    with contextlib.closing(writer):
        writer.write(target.head(1000) + b"{" if number % 2 else b"POST / HTTP/1.1\r\nHost: x\r\n")
        await reader.read()


async def wrong_secrets(target: Target, number: int) -> None:
    """Guesses at the secret of a key that is there, as fast as they are answered."""
    reader, writer = await target.open()
    with contextlib.closing(writer):
        for n in range(1000):
            wrong = "Basic " + b64encode(b"guessed:%d-%d" % (number, n)).decode()
            writer.write(target.head(2, wrong) + b"{}")
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)


# How many clients each has.
FLOODS: dict[str, tuple[Flood, int]] = {
    "large bodies": (large_bodies, 44),
    "slow bodies": (slow_bodies, 1_000),
    "slow heads": (slow_heads, 2_000),
    "half requests": (half_requests, 10_000),
    "wrong secrets": (wrong_secrets, 16),
}


def flood(name: str, port: int, authorization: str, clients: int, over: Any) -> None:
    """Runs in a process of its own until `over` is set; each client begins anew when it is sent
    away.
    """
    raise_descriptors()

    async def run() -> None:
        target, kind = Target(port, authorization), FLOODS[name][0]

        async def again(number: int) -> None:
            while True:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                    await kind(target, number)
                await asyncio.sleep(1.0)

        tasks = [asyncio.ensure_future(again(number)) for number in range(clients)]
        await asyncio.to_thread(over.wait)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


class Watch:
    """How much memory processes have at most, KiB, looked at twenty times a second."""

    def __init__(self, pids: list[int]) -> None:
        self.most_kib = 0
        self._pids = pids
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.most_kib = max(self.most_kib, sum(resident_kib(pid) for pid in self._pids))

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class Good:
    """The well-behaved client."""

    def __init__(self, port: int, authorization: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = {"content-type": "application/json", "authorization": authorization}

    def call(self, method: str, path: str, body: Any) -> int:
        self._connection.request(method, path, json.dumps(body).encode(), self._headers)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def sends(self, number: int) -> tuple[float, dict[int, int]]:
        """p99 of sends of 1 KiB one after the other (ms), and how many ended with each status."""
        took, ended = [], collections.Counter[int]()
        for _ in range(number):
            began = time.perf_counter()
            ended[self.call("POST", SENDS, {"messages": [{"body": "x" * 1000}]})] += 1
            took.append(time.perf_counter() - began)
        return sorted(took)[int(number * 0.99) - 1] * 1000, dict(ended)

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """While another process takes a core."""
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def flooding(name: str, port: int, authorization: str, clients: int) -> Iterator[None]:
    """While a flood runs."""
    context = multiprocessing.get_context("spawn")
    over = context.Event()
    process = context.Process(target=flood, args=(name, port, authorization, clients, over))
    process.start()
    try:
        time.sleep(SETTLE_S)
        yield
    finally:
        over.set()
        process.join(20)
        if process.is_alive():
            process.kill()
            process.join()


def measure(up: Up, name: str, clients: int, sends: int, authorization: str) -> dict[str, Any]:
    """One flood: the good client's p99 (ms) before and during it, its statuses, and what the
    workers grew by at most (MiB).
    """
    pids = [facade["pid"] for facade in up.run["facades"]]
    with contextlib.closing(Good(up.port, authorization)) as good:
        quiet, _ = good.sends(sends)
        before = sum(resident_kib(pid) for pid in pids)
        with flooding(name, up.port, authorization, clients), Watch(pids) as watch:
            during, ended = good.sends(sends)
            ready = up.status("/ready")
    return {
        "flood": name, "clients": clients, "quiet_p99_ms": round(quiet, 1), "during_p99_ms": round(during, 1),
        "statuses": ended, "ready": ready, "grown_mib": round((watch.most_kib - before) / 1024, 1),
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def beside_busy(up: Up, sends: int, authorization: str) -> float:
    """The good client's p99 (ms) without a flood, while another process takes a core."""
    with contextlib.closing(Good(up.port, authorization)) as good, busy():
        return round(good.sends(sends)[0], 1)


def prepare(up: Up) -> str:
    """Makes the queue and a key that is guessed at; the proof of the good client."""
    secret = (up.data / "admin_secret").read_text().strip()
    authorization = "Basic " + b64encode(f"admin:{secret}".encode()).decode()
    with contextlib.closing(Good(up.port, authorization)) as good:
        assert good.call("POST", "/v1/queues", {"name": "calm"}) in (200, 201)
        assert good.call("POST", "/v1/keys", {"key_id": "guessed", "principal": "somebody"}) in (200, 201)
    return authorization


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sends", type=int, default=3000)
    parser.add_argument("--flood", choices=FLOODS, action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder), "--auth", "required")
        try:
            up.wait_ready()
            authorization = prepare(up)
            with contextlib.closing(Good(up.port, authorization)) as good:
                good.sends(WARM_SENDS)  # Java compiles what it has run often
            for name in options.flood or FLOODS:
                beside = {"busy_p99_ms": beside_busy(up, options.sends, authorization)}
                print(json.dumps(measure(up, name, FLOODS[name][1], options.sends, authorization) | beside), flush=True)
        finally:
            up.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
