"""The turns of owned units: each files its pointers and brings what is due, beside the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from engine.loading.deferrals import Deferrals
from engine.loading.loader import Loader
from runtime.background import Background
from state.keys import Unit

Guard = Callable[[Loader, Callable[[], Awaitable[object]]], Coroutine[Any, Any, None]]


class Turns:
    """One task for a unit at a time. `guard` runs its work, and sees to what it raises."""

    def __init__(self, deferrals: Deferrals, background: Background, guard: Guard) -> None:
        self.deferrals = deferrals
        self._background = background
        self._guard = guard
        self.tasks: dict[Unit, asyncio.Task[None]] = {}

    async def start_due(self, loaders: Iterable[Loader]) -> None:
        """Begins the turns that are due; waits for none."""
        self.begin_due(loaders)

    def begin_due(self, loaders: Iterable[Loader]) -> list[asyncio.Task[None]]:
        """The turns of these units that are due, begun or under way."""
        now = asyncio.get_running_loop().time()
        return [self._begin(loader) for loader in loaders if loader.turn_at <= now]

    def _begin(self, loader: Loader) -> asyncio.Task[None]:
        unit = loader.unit
        if unit not in self.tasks:
            task = self.tasks[unit] = self._background.start(self._guard(loader, lambda: self.deferrals.turn(loader)), "turn")
            task.add_done_callback(lambda _: self.tasks.pop(unit, None))
        return self.tasks[unit]
