"""Whether a queue has the worker to itself: the last second counts."""

from __future__ import annotations

from engine.rules.contention import RECENT_S, Crowd


def test_a_queue_alone_is_not_shared() -> None:
    crowd = Crowd()
    assert not crowd.shared("a", 0)
    for now in (0.0, 0.1, 5.0):
        crowd.used("a", now)
        assert not crowd.shared("a", now)
    assert crowd.shared("b", 5.1), "a queue that was not used yet, beside one in use"


def test_another_queue_counts_for_a_second() -> None:
    crowd = Crowd()
    crowd.used("b", 9.0)
    for now in (10.0, 10.1, 10.2):
        crowd.used("a", now)
    assert crowd.shared("a", 9.0 + RECENT_S - 0.01)
    assert not crowd.shared("a", 9.0 + RECENT_S + 0.01)
    assert crowd.shared("b", 10.3)


def test_many_queues_in_turn_are_shared() -> None:
    crowd = Crowd()
    for now in range(100):
        crowd.used(f"q{now % 7}", now / 100)
    assert all(crowd.shared(f"q{n}", 1.0) for n in range(7))
