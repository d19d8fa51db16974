"""How late this process gets its turn while a test measures times: a bound in ms that holds on a
quiet machine says nothing of one that gives us a tenth of a core.

Bounds are widened by what was measured meanwhile, so that on a quiet machine they are as they
stand.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType

TICK_S = 0.005
# A message passes so many processes and threads on its way that may each have to wait for a turn.
HOPS = 6


class Turns:
    """Measures in the running loop from enter to exit how late a timer is."""

    def __init__(self) -> None:
        self._late: list[float] = [0.0]
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Turns:
        self._task = asyncio.create_task(self._measure())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _measure(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            self._late.append(loop.time() - due)

    def slack_s(self) -> float:
        """By how much a bound may be missed: what the worst but one in a hundred turns took, at
        each hop.
        """
        return HOPS * sorted(self._late)[int(0.99 * (len(self._late) - 1))]
