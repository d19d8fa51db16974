"""Owns tasks that nobody awaits: neither the task nor what it raises is lost.

The event loop itself holds a task weakly, and tells of an exception only when the task is thrown
away. So no part makes tasks of its own: `tests/unit/test_background.py` walks the source for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, ClassVar, TypeVar

from runtime.cancel import cancel_all

logger = logging.getLogger(__name__)

T = TypeVar("T")

AGAIN_S = 1.0


class Background:
    """The tasks of one service. `failures` counts those of this process that ended by an exception,
    all services together.
    """

    failures: ClassVar[int] = 0

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(
        self, work: Coroutine[Any, Any, T], action: str, *, awaited: bool = False, context: Context | None = None
    ) -> asyncio.Task[T]:
        """Runs `work` beside its caller. What it raises is logged and counted.

        `awaited`: callers await the task and handle what it raises, so it is only noted here, for
        they may have gone. `context`: None = the caller's.
        """
        task = asyncio.get_running_loop().create_task(work, name=action, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._note_failure if awaited else self._report_failure)
        return task

    def keep(self, job: Callable[[], Coroutine[Any, Any, None]], action: str) -> asyncio.Task[None]:
        """Runs a job that is to go on until it is cancelled: one that raises is told of, and begun
        again a second later. It is part of no request, whoever begins it.
        """
        return self.start(_again(job, action), action, context=Context())

    async def finished(self) -> None:
        """Returns when no task is left."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def stop(self) -> None:
        """Ends all tasks."""
        await cancel_all(*self._tasks)

    def _report_failure(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _report(task.get_name(), error)

    def _note_failure(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("action=%s outcome=failed error=%r", task.get_name(), error)


async def _again(job: Callable[[], Coroutine[Any, Any, None]], action: str) -> None:
    while True:
        try:
            return await job()
        except Exception as error:
            _report(action, error)
        await asyncio.sleep(AGAIN_S)


def _report(action: str, error: BaseException) -> None:
    Background.failures += 1
    logger.error("action=%s outcome=failed error=%r", action, error, exc_info=error)
