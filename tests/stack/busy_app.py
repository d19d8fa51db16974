"""A facade whose loop always has something to do: each answer says how late a thread was meanwhile.

It must not need Kafka or Redis.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from facade.config import Settings
from tests.stack.tiny_app import Receive, Send, answering

JOBS = 10
WORK_S = 0.001


def create_app(settings: Settings) -> Callable[[dict[str, Any], Receive, Send], Awaitable[None]]:
    """As `facade.app.create_app`; the body of each answer is `lateness()` in ms."""

    async def told() -> bytes:
        return f"{1000 * await lateness():.3f}".encode()

    return answering(told)


async def lateness() -> float:
    """How long a thread that has ended its work waits for the interpreter's lock while the loop is
    busy, s: the median of JOBS.
    """
    late: list[float] = []

    def work() -> None:
        for _ in range(JOBS):
            began = time.perf_counter()
            time.sleep(WORK_S)
            late.append(time.perf_counter() - began - WORK_S)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        sum(range(25_000))  # some 0.3 ms
        await asyncio.sleep(0)
    return statistics.median(late)
