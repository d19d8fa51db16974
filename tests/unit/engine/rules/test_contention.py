"""Whether a queue has the worker to itself: the last second counts."""

from __future__ import annotations

from engine.rules.linger import RECENT_S, Activity


def test_a_queue_alone_is_not_shared() -> None:
    crowd = Activity()
    assert not crowd.is_contended("a", 0)
    for now in (0.0, 0.1, 5.0):
        crowd.note_use("a", now)
        assert not crowd.is_contended("a", now)
    assert crowd.is_contended("b", 5.1), "a queue that was not used yet, beside one in use"


def test_another_queue_counts_for_a_second() -> None:
    crowd = Activity()
    crowd.note_use("b", 9.0)
    for now in (10.0, 10.1, 10.2):
        crowd.note_use("a", now)
    assert crowd.is_contended("a", 9.0 + RECENT_S - 0.01)
    assert not crowd.is_contended("a", 9.0 + RECENT_S + 0.01)
    assert crowd.is_contended("b", 10.3)


def test_many_queues_in_turn_are_shared() -> None:
    crowd = Activity()
    for now in range(100):
        crowd.note_use(f"q{now % 7}", now / 100)
    assert all(crowd.is_contended(f"q{n}", 1.0) for n in range(7))
