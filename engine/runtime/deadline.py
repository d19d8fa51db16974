"""Until when a request is answered: one moment for all that it waits for, counted from when the
request came.

It is a time of the event loop (`loop.time()`), and is handed down as `until`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

# How long a request waits for the journal, as an ack of a queue with durable acks does.
JOURNAL_S = 5.0


def journal_until() -> float:
    """When a request that comes now has waited for the journal long enough."""
    return asyncio.get_running_loop().time() + JOURNAL_S


async def before(until: float, work: Awaitable[T], late: Callable[[], Exception]) -> T:
    """Returns what `work` returns. At `until` it is cancelled, and what `late` makes is raised."""
    limit = asyncio.timeout_at(until)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if limit.expired():
            raise late() from None
        raise
