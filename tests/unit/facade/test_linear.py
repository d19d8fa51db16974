"""What reads bytes of strangers takes time in proportion to them, and little of it.

Each reader has its worst inputs at a quarter of its largest size, and at all of it. Times are of
this thread's CPU, the best of some, and are compared with each other, and with that of a loop that
is measured beside them: so it does not matter how fast or how busy the machine is.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.facade.readers import READERS, REFUSALS, Reader

TIMES = 3
# A quarter takes a quarter; what is quadratic takes a sixteenth.
MOST_GROWTH = 8.0
# On a busy machine one of both may be measured while others use the caches: then both once more.
AGAIN = 5
# Steps of an empty loop, about 0.1 s of a machine of 2026: in that time nobody else is served.
MOST_STEPS = 12_000_000
# Of what is read in a thread beside the event loop.
OFF_LOOP = 3
# Below this many of them a time says nothing about how it grows.
LEAST_STEPS = 500_000


def taken(work: Callable[[], Any], times: int = TIMES) -> float:
    """Seconds of CPU, the least of some; without those in which Python looks for garbage among all
    that other tests have left.
    """
    best = float("inf")
    gc.disable()
    try:
        for _ in range(times):
            began = time.thread_time()
            work()
            best = min(best, time.thread_time() - began)
    finally:
        gc.enable()
    return best


def steps(number: int) -> float:
    """How long so many steps of a loop take now."""

    def loop() -> None:
        for _ in range(number // 10):
            pass

    return taken(loop) * 10


def read(reader: Reader, given: Any) -> None:
    with contextlib.suppress(*REFUSALS):
        reader.read(given)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_reader_takes_time_in_proportion_to_its_input(reader: Reader) -> None:
    part, whole = reader.make(reader.most // 4), reader.make(reader.most)
    once = taken(lambda: read(reader, whole), 1)
    assert once < 20 * steps(MOST_STEPS), "what takes so long is not repeated"
    for _ in range(AGAIN):
        least, most = taken(lambda: read(reader, part)), taken(lambda: read(reader, whole))
        longest = min(steps(MOST_STEPS) * (OFF_LOOP if reader.is_long else 1), MOST_GROWTH * max(least, steps(LEAST_STEPS)))
        if most < longest:
            return
    assert most < longest
