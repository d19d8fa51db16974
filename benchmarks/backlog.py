"""A backlog of N messages of 1 KiB: filled, service started again, drained. Says memory of Redis,
rates, what came and how often.

    .venv/bin/python -m benchmarks.backlog --messages 1000000

Starts its own `leaseway up` in a temporary folder; talks to 127.0.0.1 only; ends by itself.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import redis

from tests.acceptance.traffic import Client
from tests.services import Up

FILLER = "x" * 1012


class Memory(threading.Thread):
    """Watches Redis' used memory five times a second; `peak` in bytes."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._client = redis.Redis.from_url(url)
        self._ended = threading.Event()
        self.peak = 0

    def run(self) -> None:
        while not self._ended.wait(0.2):
            info = self._client.info("memory")
            self.peak = max(self.peak, int(info["used_memory"]))

    def end(self) -> int:
        self._ended.set()
        self.join()
        self._client.close()
        return self.peak


def in_threads(count: int, work: Callable[[int], None]) -> float:
    """Runs `work(number)` in threads; how many seconds it took."""
    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def fill(endpoint: str, messages: int, threads: int) -> float:
    def work(number: int) -> None:
        client = Client(endpoint)
        for start in range(number * 100, messages, threads * 100):
            bodies = [{"body": f"{n:011d} {FILLER}"} for n in range(start, min(start + 100, messages))]
            status, answer = client.call("POST", "/v1/queues/backlog/messages", {"messages": bodies})
            if status != 200:
                raise SystemExit(f"a send failed: {status} {answer}")
        client.close()

    return in_threads(threads, work)


def drain(endpoint: str, messages: int, threads: int) -> tuple[float, bytearray]:
    """Receives and acks until nothing comes for 3 s; seconds, and how often each message came."""
    seen = bytearray(messages)
    last = [time.perf_counter()]

    def work(number: int) -> None:
        client = Client(endpoint)
        while time.perf_counter() - last[0] < 3:
            _, answer = client.call(
                "POST", "/v1/queues/backlog/receive", {"max": 100, "wait_seconds": 1, "lease_seconds": 60}
            )
            if not answer["messages"]:
                continue
            last[0] = time.perf_counter()
            for m in answer["messages"]:
                seen[int(m["body"][:11])] += 1
            client.call("POST", "/v1/queues/backlog/ack", {"handles": [m["handle"] for m in answer["messages"]]})
        client.close()

    began = time.perf_counter()
    in_threads(threads, work)
    return last[0] - began, seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        up = Up(Path(folder))
        try:
            up.wait_ready()
            client = Client(up.endpoint)
            client.call("POST", "/v1/queues", {"name": "backlog"})
            memory = Memory(up.run["redis"]["url"])
            memory.start()
            filled_s = fill(up.endpoint, options.messages, options.threads)
            client.close()
            peak_fill = memory.end()
            up.stop()
            up = Up(Path(folder))
            up.wait_ready()
            client = Client(up.endpoint)
            began = time.perf_counter()
            first = client.call("POST", "/v1/queues/backlog/receive", {"max": 1, "lease_seconds": 1})
            first_s = time.perf_counter() - began
            client.close()
            if not first[1]["messages"]:
                raise SystemExit(f"the first receive gave nothing: {first}")
            memory = Memory(up.run["redis"]["url"])
            memory.start()
            drained_s, seen = drain(up.endpoint, options.messages, options.threads)
            peak_drain = memory.end()
        finally:
            up.close()
    # The first receive let its lease lapse, so that message came twice by design.
    twice = sum(count > 1 for count in seen)
    report = {
        "machine": f"{platform.machine()}, 2 cores shared with the client",
        "messages": options.messages,
        "filled_per_s": round(options.messages / filled_s),
        "first_receive_after_start_ms": round(first_s * 1000, 1),
        "drained_per_s": round(options.messages / drained_s),
        "redis_peak_mib_filling": round(peak_fill / 2**20, 1),
        "redis_peak_mib_draining": round(peak_drain / 2**20, 1),
        "never_received": seen.count(0),
        "received_twice": twice,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
