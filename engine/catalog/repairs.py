"""Writes again what counts where the last record of a key in the control topic does not: Kafka's
compaction keeps the last one.

At once the first time; then in rounds that come further and further apart as long as something is
refused, so that who floods the topic does not make the service do so too. There is a day's time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from engine.errors import EngineError
from runtime.background import Background
from runtime.cancel import cancel_all
from state.errors import StateError

logger = logging.getLogger(__name__)

# The pause after a round that repaired something, or could not: doubled up to the longest, and the
# first again when nothing was refused for QUIET_S.
FIRST_PAUSE_S, LONGEST_PAUSE_S, QUIET_S = 0.5, 60.0, 300.0


class Repairs:
    """`left` names keys to repair; `rewrite` repairs one, or raises EngineError or StateError."""

    def __init__(self, left: Callable[[], Iterable[str]], rewrite: Callable[[str], Awaitable[None]]) -> None:
        self._left = left
        self._rewrite = rewrite
        self._asked = asyncio.Event()
        self._background = Background()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._background.keep(self._run, "repair")

    async def stop(self) -> None:
        await cancel_all(self._task)
        self._task = None

    def ask(self) -> None:
        """There is something to repair."""
        self._asked.set()

    async def _run(self) -> None:
        loop, pause_s, last = asyncio.get_running_loop(), FIRST_PAUSE_S, 0.0
        while True:
            await self._asked.wait()
            if loop.time() - last > QUIET_S:
                pause_s = FIRST_PAUSE_S
            self._asked.clear()
            for key in list(self._left()):
                try:
                    await self._rewrite(key)
                except (EngineError, StateError) as error:
                    logger.warning("action=write_again part=control key=%s error=%s", key, error)
                    self._asked.set()
            last = loop.time()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
