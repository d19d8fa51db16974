"""Repeats the first calls of a start for as long as a repeat may help."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from engine.errors import LogUnavailable, QueueInUse, Unavailable
from state.errors import StateError

logger = logging.getLogger(__name__)

T = TypeVar("T")

# A Kafka or Redis that answers and is not ready gets so long in any case: new partitions look for
# their leaders, a broker that was fenced comes back, a file is loaded.
NOT_READY_S: Final = 60.0
PAUSE_S: Final = 0.1, 2.0
SAY_S: Final = 5.0


class Patience:
    """How long the start of a worker may wait, from now on: `wait_s` for a Kafka that has not
    answered yet, NOT_READY_S at least for what answered and is not ready, and never for what a
    repeat does not heal: a refusal, a wrong setting.
    """

    def __init__(self, wait_s: float) -> None:
        self._began = asyncio.get_running_loop().time()
        self._wait_s = wait_s
        self._said_at = self._began - SAY_S
        self._answered = False

    async def repeat(self, step: Callable[[], Awaitable[T]]) -> T:
        """Returns what `step` does. It must be one that may be repeated. Raises what it raised
        last.
        """
        pause_s, longest_s = PAUSE_S
        while True:
            try:
                result = await step()
                self._answered = True
                return result
            except (Unavailable, QueueInUse, StateError) as error:
                now = asyncio.get_running_loop().time()
                if now - self._began + pause_s > self._bound_s(error):
                    raise
                if now - self._said_at >= SAY_S:
                    self._said_at = now
                    logger.warning("action=start outcome=waiting error=%s", error)
            await asyncio.sleep(pause_s)
            pause_s = min(longest_s, pause_s * 1.5)

    def _bound_s(self, error: Exception) -> float:
        if isinstance(error, LogUnavailable) and not error.soon:
            if not error.away:
                return 0.0
            if not self._answered:
                return self._wait_s
        return max(self._wait_s, NOT_READY_S)
