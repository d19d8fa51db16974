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
from tests.unit.facade.readers_of_library import READERS as LIBRARY_READERS

TIMES = 3
# A quarter takes a quarter; what is quadratic takes a sixteenth.
MOST_GROWTH = 8.0
# On a busy machine one of them may be measured while others use the caches: then all are measured
# once more, and the least of each so far counts too, which comes to that of a quiet machine.
AGAIN = 12
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
    check(reader)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("reader", LIBRARY_READERS, ids=lambda reader: reader.name)
def test_a_reader_of_the_library_takes_time_in_proportion_to_its_input(reader: Reader) -> None:
    check(reader)


def check(reader: Reader) -> None:
    """Measures a reader with a quarter of its largest input, and with all of it."""
    part, whole = reader.make(reader.most // 4), reader.make(reader.most)
    once = taken(lambda: read(reader, whole), 1)
    assert once < 20 * steps(MOST_STEPS), "what takes so long is not repeated"
    best = (float("inf"),) * 4
    for _ in range(AGAIN):
        now = (
            taken(lambda: read(reader, part)),
            taken(lambda: read(reader, whole)),
            steps(LEAST_STEPS),
            steps(MOST_STEPS),
        )
        best = min(best[0], now[0]), min(best[1], now[1]), min(best[2], now[2]), min(best[3], now[3])
        if is_in_proportion(reader, *now) or is_in_proportion(reader, *best):
            return
    least, most, *_ = best
    raise AssertionError(f"a quarter takes {least:.6f} s, and all of it {most:.6f} s")


def is_in_proportion(reader: Reader, least: float, most: float, few_steps: float, many_steps: float) -> bool:
    """Whether the times of a quarter and of the whole are those of a reader that reads once."""
    return most < min(many_steps * (OFF_LOOP if reader.is_long else 1), MOST_GROWTH * max(least, few_steps))
