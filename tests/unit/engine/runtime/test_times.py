"""How long messages were in queues and in hand."""

from __future__ import annotations

from engine.meters.times import BOUNDS_MS, Histogram, MessageTimes


def test_a_time_falls_under_the_first_bound_that_it_is_not_above() -> None:
    histogram = Histogram()
    histogram.note([BOUNDS_MS[2], BOUNDS_MS[2] + 1, BOUNDS_MS[-1] + 1, -3])
    assert [place for place, count in enumerate(histogram.between) if count] == [0, 2, 3, len(BOUNDS_MS)]
    assert histogram.sum_ms == 2 * BOUNDS_MS[2] + BOUNDS_MS[-1] + 2


def test_what_the_plane_has_noted_is_added() -> None:
    times, between = MessageTimes(), [0] * len(BOUNDS_MS) + [2]
    times.acked.note([4])
    times.add([])  # there is none
    times.add([(9, between), (0, []), (7, between)])
    queue, acked, released = times.shown()
    assert (queue.place, queue.verb, queue.seconds, queue.between) == ("queue", "", 0.009, between)
    assert (acked.place, acked.verb, acked.seconds, sum(acked.between)) == ("hand", "ack", 0.004, 1)
    assert (released.verb, released.seconds) == ("release", 0.007)
    assert (queue.bounds[0], queue.bounds[-1]) == (0.005, 604_800)
