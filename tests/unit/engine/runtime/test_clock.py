"""The clocks of the engine, and that tests move both."""

from __future__ import annotations

import time

from runtime.clock import elapsed_s, now_ms
from tests.clock import Clock


def test_now_is_in_milliseconds_of_the_epoch() -> None:
    before = time.time()
    assert before * 1000 - 1 <= now_ms() <= time.time() * 1000 + 1


def test_a_moved_clock_moves_both(clock: Clock) -> None:
    at, elapsed = now_ms(), elapsed_s()
    clock.pass_s(90)
    assert 90_000 <= now_ms() - at < 91_000
    assert 90 <= elapsed_s() - elapsed < 91
