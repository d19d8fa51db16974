"""A running set of children: signals, and the end in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine

from facade.programs.stack.processes.child import Child, Program


class Group:
    """Children in the order they were started; they end in the reverse order, those of one step
    together.

    Use from one task. The first SIGINT or SIGTERM sets `stopping`; a second one kills what is left.
    """

    def __init__(self, say: Callable[[str], None], changed: Callable[[], None]) -> None:
        self.stopping = asyncio.Event()
        self._say = say
        self._changed = changed
        self._steps: list[list[Child]] = []

    def listen_to_signals(self) -> None:
        """From now on, SIGINT and SIGTERM mean stop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked_to_stop)

    def add(self, programs: list[Program]) -> list[Child]:
        """A step of children, not yet started; a step added later ends earlier."""
        step = [Child(program, self._changed, self._say) for program in programs]
        self._steps.append(step)
        return step

    async def run_until_asked(self, start: Callable[[], Coroutine[None, None, None]]) -> None:
        """Start by `start`, wait until asked to stop, and end all children, whatever happens.

        A stop asked for during the start cancels it. Raises what `start` raises.
        """
        starting = asyncio.create_task(start())
        waiting = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await waiting
        finally:
            for task in (starting, waiting):
                task.cancel()
            await asyncio.gather(starting, waiting, return_exceptions=True)
            await self._stop()

    async def _stop(self) -> None:
        for step in reversed(self._steps):
            # One that can't be ended as it should must not keep the others running.
            for failed in await asyncio.gather(*(child.stop() for child in step), return_exceptions=True):
                if isinstance(failed, Exception):
                    self._say(f"a part may not have ended: {failed!r}")

    def _asked_to_stop(self) -> None:
        if not self.stopping.is_set():
            self.stopping.set()
            self._say("stopping (again to kill)")
            return
        for step in self._steps:
            for child in step:
                child.kill()


async def start_together(children: list[Child]) -> None:
    """Start children side by side; the first StackError ends the other starts and is raised."""
    tasks = [asyncio.create_task(child.start()) for child in children]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
