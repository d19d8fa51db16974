"""The clock that tests move: what asks `engine/runtime/clock.py` sees it; Redis, Kafka and the
event loop do not.
"""

from __future__ import annotations

import time

import pytest

_HERE = "engine.runtime.clock"


class Clock:
    """As the machine's, until a test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead_ms = 0
        monkeypatch.setattr(f"{_HERE}.time_ns", lambda: time.time_ns() + self._ahead_ms * 1_000_000)
        monkeypatch.setattr(f"{_HERE}.monotonic", lambda: time.monotonic() + self._ahead_ms / 1000)

    def pass_s(self, seconds: float) -> None:
        """So much time passes at once."""
        self._ahead_ms += int(seconds * 1000)

    def set(self, epoch_ms: int) -> None:
        """It is that time now, and goes on from there."""
        self._ahead_ms = epoch_ms - time.time_ns() // 1_000_000
