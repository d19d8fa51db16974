"""How fast a request must come."""

from __future__ import annotations

from facade.http.bounds.pace import HEAD_S, LEAST_BYTES_A_SECOND, SPAN_S, Pace

ENOUGH = int(SPAN_S * LEAST_BYTES_A_SECOND)


def test_a_head_comes_whole_within_its_time_however_it_comes() -> None:
    pace = Pace()
    pace.note(10, 5.0, in_body=False, first=True)
    pace.note(60_000, 14.0, in_body=False, first=False)
    assert pace.left_s(14.0) == HEAD_S - 9.0
    assert pace.left_s(15.0) == 0.0


def test_a_body_comes_at_its_least_rate_in_each_span() -> None:
    pace = Pace()
    pace.note(100, 0.0, in_body=False, first=True)
    pace.note(ENOUGH, 5.0, in_body=True, first=False)  # its span begins with it
    assert pace.left_s(5.0 + SPAN_S) == SPAN_S
    pace.note(ENOUGH - 1, 20.0, in_body=True, first=False)
    assert pace.left_s(5.0 + 2 * SPAN_S) == 0.0


def test_what_came_quickly_at_first_buys_no_time() -> None:
    """16 MiB less one byte at once, and then nothing: as somebody held a worker's room."""
    pace = Pace()
    pace.note(16 * 1024 * 1024 - 1, 0.0, in_body=True, first=True)
    assert pace.left_s(SPAN_S) == SPAN_S
    assert pace.left_s(2 * SPAN_S) == 0.0


def test_time_in_which_nobody_read_does_not_count() -> None:
    pace = Pace()
    pace.note(1, 0.0, in_body=True, first=True)
    pace.passed_over(100.0)
    assert pace.left_s(100.0 + SPAN_S - 1) == 1.0
    assert pace.since == 100.0


def test_the_next_request_begins_anew() -> None:
    pace = Pace()
    pace.note(1, 0.0, in_body=False, first=True)
    pace.note(1, 50.0, in_body=False, first=True)
    assert pace.left_s(50.0) == HEAD_S
