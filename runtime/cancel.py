"""Cancels tasks for sure: a cancellation may be swallowed below (a wait that completes at that
moment), so it is repeated. And cancels what is not done in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def cancel_all(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancels tasks and returns when all have ended, however. None and ended ones are fine."""
    waiting = {task for task in tasks if task is not None and not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=0.2)
    for ended in tasks:
        if ended is not None and not ended.cancelled():
            ended.exception()


async def before(until: float, work: Awaitable[T], late: Callable[[], Exception]) -> T:
    """Returns what `work` returns. At `until` (loop time) it is cancelled, and what `late` makes is
    raised.
    """
    limit = asyncio.timeout_at(until)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if limit.expired():
            raise late() from None
        raise
