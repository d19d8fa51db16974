"""What N idle long polls cost: memory of every process of a `leaseway up` before and while they
wait, and how fast one is woken.

    .venv/bin/python -m benchmarks.idle_polls --polls 10000

Starts its own `leaseway up` in a temporary folder; talks to 127.0.0.1 only; ends by itself. N
connections need `ulimit -n` of N + 1,000 here and in the service.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import tempfile
import time
from pathlib import Path

from tests.acceptance.traffic import Client
from tests.services import Up

QUEUES = 100
AT_ONCE = 200
WAIT_S = 60


def resident_kib(pid: int) -> int:
    """Resident memory of a process in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def memory(up: Up) -> dict[str, int]:
    """KiB by part; all workers together."""
    run = up.run
    workers = sum(resident_kib(facade["pid"]) for facade in run["facades"])
    return {
        "supervisor": resident_kib(up.process.pid),
        "facade": workers,
        "kafka": resident_kib(run["kafka"]["pid"]),
        "redis": resident_kib(run["redis"]["pid"]),
    }


def make_queues(up: Up, count: int) -> None:
    with contextlib.closing(Client(up.endpoint)) as client:
        for n in range(count):
            status, answer = client.call("POST", "/v1/queues", {"name": f"poll-{n}", "partitions": 1})
            assert status in (200, 201), answer


class Polls:
    """Open long polls, each on a connection of its own, spread over `queues` queues."""

    def __init__(self, up: Up, queues: int) -> None:
        self._up = up
        self._queues = queues
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self, count: int) -> None:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with gate:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._up.port, limit=4096)
                body = json.dumps({"wait_seconds": WAIT_S, "max": 1}).encode()
                path = f"/v1/queues/poll-{number % self._queues}/receive"
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
                self._streams.append((reader, writer))

        await asyncio.gather(*(one(number) for number in range(count)))

    async def woken_ms(self, queue: int) -> float:
        """Sends one message to a queue; how long until one of its polls has an answer."""
        mine = [reader for reader, _ in self._streams[queue :: self._queues]]
        waits = [asyncio.ensure_future(reader.readline()) for reader in mine]
        began = time.perf_counter()
        status, answer = await asyncio.to_thread(self._send, queue)
        assert status == 200, answer
        done, rest = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        took = time.perf_counter() - began
        assert done and next(iter(done)).result().startswith(b"HTTP/1.1 200"), "nobody was woken"
        for wait in rest:
            wait.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        return took * 1000

    def _send(self, queue: int) -> tuple[int, object]:
        with contextlib.closing(Client(self._up.endpoint)) as client:
            return client.call("POST", f"/v1/queues/poll-{queue}/messages", {"messages": [{"body": "wake"}]})

    async def close(self) -> None:
        for _, writer in self._streams:
            writer.close()


async def measure(up: Up, polls: int, queues: int) -> dict[str, object]:
    """Opens polls and says what they cost (MiB), over all processes."""
    before = memory(up)
    opened = Polls(up, queues)
    began = time.perf_counter()
    await opened.open(polls)
    opening = time.perf_counter() - began
    await asyncio.sleep(5)
    during = memory(up)
    woken = await opened.woken_ms(queues - 1)
    await opened.close()
    cost = {part: round((during[part] - before[part]) / 1024, 1) for part in before}
    return {
        "polls": polls,
        "queues": queues,
        "opened_in_s": round(opening, 1),
        "cost_mib": cost,
        "cost_mib_in_all": round(sum(cost.values()), 1),
        "kib_a_poll": round((sum(during.values()) - sum(before.values())) / polls, 1),
        "woken_after_ms": round(woken, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--polls", type=int, default=10_000)
    parser.add_argument("--queues", type=int, default=QUEUES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder))
        try:
            up.wait_ready()
            make_queues(up, options.queues)
            print(json.dumps(asyncio.run(measure(up, options.polls, options.queues)), indent=2))
        finally:
            up.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
