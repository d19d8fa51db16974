"""The clocks that tests move: what asks `runtime/clock.py` sees the first; Redis, Kafka and
the event loop do not. The second is Kafka's, as workers know it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from engine.log.log_clock import LogClock
from state.redis.script_caller import ScriptCaller
from state.redis.scripts import read_scripts
from state.redis.wire import Argument

# Leases of workers go on by Redis' own clock: nobody is to lose a unit because a test waits for no
# one.
_REAL = ("own", "seize")
_HERE = "runtime.clock"


class Clock:
    """As the machine's, until a test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead_ms = self._kafka_ahead_ms = 0
        estimate = LogClock._estimate
        monkeypatch.setattr(f"{_HERE}.time_ns", lambda: time.time_ns() + self._ahead_ms * 1_000_000)
        monkeypatch.setattr(f"{_HERE}.monotonic", lambda: time.monotonic() + self._ahead_ms / 1000)

        def moved(clock: LogClock) -> tuple[float, float]:
            at_ms, error_ms = estimate(clock)
            return at_ms + self._kafka_ahead_ms, error_ms

        monkeypatch.setattr(LogClock, "_estimate", moved)

    def pass_at_kafka_s(self, seconds: float) -> None:
        """So much time passes at once by Kafka's clock; what brokers write does not show it."""
        self._kafka_ahead_ms += int(seconds * 1000)

    def pass_s(self, seconds: float) -> None:
        """So much time passes at once."""
        self._ahead_ms += int(seconds * 1000)

    def set(self, epoch_ms: int) -> None:
        """It is that time now, and goes on from there."""
        self._ahead_ms = epoch_ms - time.time_ns() // 1_000_000


class ScriptClock(Clock):
    """The scripts see it too, in place of Redis' clock: of every worker in this process. Kafka does
    not.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        run, scripts = ScriptCaller.run, read_scripts()

        async def run_later(
            caller: ScriptCaller, name: str, keys: Sequence[str], arguments: Sequence[Argument]
        ) -> list[Any]:
            given, names = list(arguments), scripts[name].arguments
            if self._ahead_ms and "now" in names and name not in _REAL and given[names.index("now")] == 0:
                given[names.index("now")] = self.now_ms()
            return await run(caller, name, keys, given)

        monkeypatch.setattr(ScriptCaller, "run", run_later)

    def now_ms(self) -> int:
        """What time it is for the service."""
        return time.time_ns() // 1_000_000 + self._ahead_ms
