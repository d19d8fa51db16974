"""The seed gives the faults; memory's slope on a line that is known."""

from __future__ import annotations

import itertools
import os
import random
import time

import pytest

from tests.faults.memory import Watch, rss_mb, slope
from tests.faults.run import Order, faults_of


def test_the_slope_is_that_of_the_line() -> None:
    assert slope([(0, 10), (1, 13), (2, 16)]) == pytest.approx(3)
    assert slope([(0, 12), (1, 10), (2, 14), (3, 12)]) == pytest.approx(0.4)
    assert slope([(5, 1)]) == 0


def test_a_watch_follows_the_longest_life() -> None:
    assert rss_mb(os.getpid()) > 10
    assert rss_mb(2**22 + 1) == 0
    pids = iter([2**22 + 1, *[os.getpid()] * 10_000])
    watch = Watch(lambda: {"me": next(pids)}, every_s=0.01)
    time.sleep(0.3)
    row = watch.stop(0)["me"]
    assert row["lives"] == 1 and row["most_mb"] > 10


def test_the_seed_gives_the_faults() -> None:
    def first(seed: int, fault: str, n: int = 24) -> list[str]:
        return list(itertools.islice(faults_of(Order(fault=fault), random.Random(seed)), n))

    assert first(1, "mix") == first(1, "mix") != first(2, "mix")
    assert sorted(first(1, "all")) == sorted(set(first(1, "all")))
    assert first(1, "kill redis", 3) == ["kill redis"] * 3
    with pytest.raises(KeyError):
        first(1, "no such fault")
