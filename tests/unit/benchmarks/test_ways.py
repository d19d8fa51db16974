"""The share of the plane, as `make bench` prints it."""

from __future__ import annotations

from benchmarks.bench.ways import Ways
from facade.http.metrics import Metrics

BEFORE = Ways(10, 5)


def test_the_share_is_that_of_hot_requests_since_the_run_began() -> None:
    metrics = Metrics(dict)
    for why, requests in (("", 1_000_010), ("new", 8), ("fields", 7), ("verb", 1_000)):
        metrics.count_way(why, requests)
    found = Ways.read(metrics.text().decode())
    assert found == Ways(1_000_010, 15)
    assert found.share_since(BEFORE) == 1_000_000 / 1_000_010


def test_who_counts_nothing_has_no_share() -> None:
    assert Ways.read(Metrics(dict).text().decode()) == Ways()
    assert BEFORE.share_since(BEFORE) is None
