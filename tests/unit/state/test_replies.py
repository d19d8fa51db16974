"""What the counts of a tag say together."""

from __future__ import annotations

from state.replies import TagCounts

COUNTS = TagCounts(ready=3, delayed=5, leased=2, parked=0, cursor=40, floor=30, ahead=7, deferred=11, lowest=31)


def test_later_are_the_delayed_and_those_with_far_delays() -> None:
    assert COUNTS.later == 16


def test_behind_the_window_is_what_the_log_has_from_its_cursor_on_and_nothing_else_knows() -> None:
    assert COUNTS.behind(100) == 53


def test_nothing_is_behind_a_window_that_has_read_to_the_end_of_the_log() -> None:
    # the end that is known may be older than the cursor
    assert COUNTS.behind(47) == COUNTS.behind(40) == 0
