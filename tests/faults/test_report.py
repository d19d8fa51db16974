"""Figures of a run and tables of many, on small histories; memory's slope on a line that is
known.
"""

from __future__ import annotations

import itertools
import os
import random
import time

import pytest

from tests.faults.memory import Watch, rss_mb, slope
from tests.faults.run import Order, faults_of
from tests.judge.book import Book, clean
from tests.judge.checkers import check
from tests.judge.report import report
from tests.judge.table import percentile, tables


def hurt() -> Book:
    """Two messages of which one is lost, one delivered again after a wipe; back 0.5 s after the
    heal.
    """
    book = (
        Book()
        .queue(steady=True)
        .send(100, "a", "lost")
        .lease(200, "a")
        .ack(300, "a@205")
        .fault(800, "wipe redis", 1000, loses=True)
    )
    return (
        book.send(1200, "b")
        .lease(1490, "b")
        .ack(1600, "b@1495")
        .lease(6000, "a", count=2)
        .ack(6100, "a@6005")
        .rest(9000)
    )


def told(book: Book, fault: str = "wipe redis") -> dict[str, object]:
    return {**report(book.story, check(book.story, 60)), "fault": fault}


def test_a_report_counts_what_happened() -> None:
    found = told(hurt())
    assert (found["sends"], found["seconds"], found["rate_per_s"]) == (3, 1.1, 3)
    assert (found["lost"], found["altered"], found["again_after_ack"]) == (1, 0, 1)
    assert found["duplicates_per_million"] == pytest.approx(1e6 / 3, abs=0.1)
    assert found["recovery_s"] == {"wipe redis": [0.5]}
    assert found["outage_s"] == {"wipe redis": [0.7]}
    assert found["broken"] == {"no acked send lost": 1, "atomic batches all or none": 1}


def test_tables_sum_the_runs_of_a_fault() -> None:
    text = tables([told(hurt()), told(hurt()), told(clean(), "mix")])
    assert "| mix | 1 | 1 |" in text
    assert "| wipe redis | 2 | 6 | 3 | 2 | 0 | 333,333 | 0 (0) | 0 | 0 | 2 | 0.5 / 0.5 (2) |" in text
    assert "| wipe redis | 2 | 0.5 / 0.5 | 0.7 / 0.7 |" in text


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([], 0.5)) == (51.0, 100.0, 0.0)


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
