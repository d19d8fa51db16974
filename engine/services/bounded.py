"""How long a verb may take, whatever it waits for: Kafka, Redis, a right to change something, a
rebuild. Sends, receives and what is done with handles have times of their own.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from engine.errors import LogUnavailable
from runtime.background import Background
from runtime.cancel import cancel_all

P = ParamSpec("P")
T = TypeVar("T")

_background = Background()


def bounded(seconds: float) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Has a verb answer within so many seconds of its call, else by LogUnavailable: its outcome is
    unknown, for what it does goes on. Nothing is left half done because somebody waits no more.
    """

    def decorate(verb: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(verb)
        async def answered(*args: P.args, **kwargs: P.kwargs) -> T:
            task = _background.start(verb(*args, **kwargs), verb.__name__, awaited=True)
            try:
                await asyncio.wait([task], timeout=seconds)
            except asyncio.CancelledError:  # the client has gone, or the worker stops
                await cancel_all(task)
                raise
            if not task.done():
                raise LogUnavailable(f"{verb.__name__} took longer than {seconds:g} s: it goes on, and its outcome is unknown")
            return task.result()

        return answered

    return decorate
