"""A job that runs again and again from start to stop: one class for all services."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from runtime.background import Background
from runtime.cancel import cancel_all

logger = logging.getLogger(__name__)


class Periodic:
    """Runs `job` every `every_s` seconds, the first time after `first_s`.

    An exception ends one round, never the service: one of `quiet` is expected now and then and goes
    to the debug log. Double starts and stops, and a stop before a start, are fine.
    """

    def __init__(
        self,
        name: str,
        job: Callable[[], Awaitable[object]],
        every_s: float,
        *,
        first_s: float | None = None,
        quiet: tuple[type[Exception], ...] = (),
    ) -> None:
        self._name = name
        self._job = job
        self._every_s = every_s
        self._first_s = every_s if first_s is None else first_s
        self._quiet = quiet
        self._background = Background()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when the service runs; its first round comes later."""
        if self._task is None:
            self._task = self._background.keep(self._loop, self._name)

    async def stop(self) -> None:
        """Cancels the round under way and returns when it has ended."""
        task, self._task = self._task, None
        await cancel_all(task)

    async def _loop(self) -> None:
        pause_s = self._first_s
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self._every_s
            try:
                await self._job()
            except self._quiet as error:
                logger.debug("action=%s error=%s", self._name, error)
            except Exception:
                logger.exception("action=%s", self._name)
