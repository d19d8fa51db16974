"""What follows from what the plane tells."""

from __future__ import annotations

from engine.meters.times import BOUNDS_MS
from engine.plane import library as lib
from tests.unit.engine.plane.test_plane import RECORD, Stage


async def test_what_it_was_too_late_to_give_back_is_not_counted_as_returned() -> None:
    stage = Stage()
    stage.route()
    news, counters = stage.parts.units.plane_news, stage.parts.base.counters
    woken: list[tuple[str, int, int]] = []
    stage.parts.units.window.receivable.connect(lambda *what: woken.append(what))
    news.take([lib.RETURNED, 1, 1, 0, [6, 9, 4001, 8, 9, 4000], 3])
    assert (counters.get("deliveries_returned_total"), counters.get("deliveries_too_late_to_return_total")) == (2, 3)
    assert woken == [(RECORD.incarnation, 0, 4000)]
    news.take([lib.RETURNED, 1, 1, 1, [], 1])
    assert (counters.get("deliveries_returned_total"), counters.get("deliveries_too_late_to_return_total")) == (2, 4)
    assert len(woken) == 1, "nothing is there that was not before"


async def test_receives_that_found_nothing_and_those_that_wait_are_counted_by_queue_and_tag() -> None:
    stage = Stage()
    stage.route()
    stage.library.counts = [
        [1, 1, lib.RECEIVE, 1, 0, 9, 4, 5, 5, 5, [], []],
        [1, 1, lib.NATIVE_RECEIVE, 1, 0, 2, 0, 2, 5, 5, [], []],
        [1, 1, lib.RECEIVE, 0, 1, 3, 0, 3, 5, 5, [], []],  # their clients have gone
        [1, 1, lib.DELETE, 0, 0, 1, 0, 1, 5, 5, [], []],
    ]
    stage.parts.units.plane_news.collect(stage.library, lambda *counts: None)
    assert stage.parts.base.meters.empty == {(RECORD.incarnation, 1): 7}
    stage.library.times = [[7, [1, *[0] * len(BOUNDS_MS)]], [0, []], [0, []]]
    stage.parts.units.plane_news.collect(stage.library, lambda *counts: None)
    assert stage.parts.base.meters.times.in_queue.sum_ms == 7
    stage.library.waiters = [[1, 1, 3], [99, 1, 1]]
    assert stage.parts.units.plane_news.waiters() == {(RECORD.incarnation, 1): 3}, "nobody knows what 99 was"
