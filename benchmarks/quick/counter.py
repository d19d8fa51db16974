"""Counts what one request makes the worker do: Python frames, turns of the event loop, writes to
Redis, produce calls.

It listens to the interpreter's own trace of calls, so the service runs unchanged.
"""

from __future__ import annotations

import sys
from asyncio.base_events import BaseEventLoop
from types import CodeType, FrameType
from typing import Any

from msgspec import Struct

from state.redis.wire import Wire

# Frames of the event loop and of the measuring itself are no part of the service; uvloop, which
# serves for real, has no such frames.
_NOT_OURS = ("/asyncio/", "/selectors.py", "/benchmarks/quick/", "/contextlib.py")
_WRITE = Wire._flush.__code__  # noqa: SLF001
_COMMAND = Wire.call.__code__  # the one place where commands become bytes
_TURN = BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]  # noqa: SLF001
_PRODUCE = frozenset(("produce", "produce_batch"))


class Counts(Struct):
    """Of one request."""

    python_calls: int = 0  # frames entered, in the loop's thread; a coroutine that goes on counts again
    loop_turns: int = 0  # how often the event loop woke up
    redis_commands: int = 0  # commands written
    redis_round_trips: int = 0  # writes to the connection: commands of one turn leave together
    redis_inside: int = 0  # commands that Redis ran, those within scripts too
    produce_calls: int = 0  # calls of the Kafka client


class Counter:
    """Use `begin` and `end` in the event loop's thread."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._ours: dict[CodeType, bool] = {}

    def begin(self) -> None:
        """Counts from now on."""
        self._counts = Counts()
        sys.setprofile(self._event)

    def end(self) -> Counts:
        """What was counted since `begin`."""
        sys.setprofile(None)
        return self._counts

    def _event(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self._entered(frame)
        elif event == "c_call" and argument.__name__ in _PRODUCE:
            self._counts.produce_calls += 1

    def _entered(self, frame: FrameType) -> None:
        code, counts = frame.f_code, self._counts
        ours = self._ours.get(code)
        if ours is None:
            ours = self._ours[code] = not any(part in code.co_filename for part in _NOT_OURS)
        if ours:
            counts.python_calls += 1
        if code is _COMMAND:
            counts.redis_commands += 1
        elif code is _WRITE:
            counts.redis_round_trips += bool(frame.f_locals["self"].buffer)
        elif code is _TURN:
            counts.loop_turns += 1
