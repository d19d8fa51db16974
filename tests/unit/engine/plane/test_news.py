"""What follows from what the plane tells."""

from __future__ import annotations

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
