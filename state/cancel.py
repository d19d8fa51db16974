"""Cancels tasks for sure: a cancellation may be swallowed below (a wait that completes at that
moment), so it is repeated.

Neighbours: every service's `stop`. Must not know what a task does.
"""

from __future__ import annotations

import asyncio
from typing import Any


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
