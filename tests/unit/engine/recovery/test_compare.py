"""A cut of Redis beside the folded journal: each planted difference is found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.journal.fold import TagState
from engine.recovery.compare import NOT_OPEN, compare
from schemas.records import JournalEntry, OpenDelivery
from schemas.vocabulary import EventKind
from state.replies import TagDump

END = 10
ACKED = JournalEntry(9, 9, EventKind.ACKED, 0, [2], [], "")


def cut() -> TagDump:
    """0 to 3 are settled, 4 is leased, 5 was never delivered, and 6 is where loading goes on; 8 was
    taken ahead.
    """
    return TagDump(6, 3, {4: 900, 5: 100, 8: 100}, {4: OpenDelivery(4, 77, 2, 50, 0, 900)}, {8}, "0:-1", {}, set())


def journal() -> TagState:
    state = TagState()
    state.floor = 3
    state.settled = {3}
    state.deliveries = {4: OpenDelivery(4, 77, 2, 50, 0, 900)}
    return state


def test_equal_states_have_no_difference_and_the_records_of_the_rest_are_asked_for() -> None:
    findings = compare(cut(), journal(), 0, 0, END)
    assert findings.found == []
    assert findings.untouched == {5: 100, 8: 100} and findings.over == set()


def plant(change: Callable[[TagDump, TagState], object]) -> list[tuple[int | None, str]]:
    here, there = cut(), journal()
    change(here, there)
    return [(offset, redis) for offset, redis, _ in compare(here, there, 0, 0, END).found]


PLANTED: dict[str, tuple[Callable[[Any, Any], object], int | None, str]] = {
    "an acked message is open": (lambda here, there: there.settled.add(5), 5, "open"),
    "a leased message is gone": (lambda here, there: (here.open.pop(4), here.deliveries.pop(4)), 4, NOT_OPEN),
    "another nonce": (lambda here, there: there.deliveries.update({4: OpenDelivery(4, 78, 2, 50, 0, 900)}), 4, "open"),
    "another count": (lambda here, there: there.deliveries.update({4: OpenDelivery(4, 77, 1, 50, 0, 900)}), 4, "open"),
    "another deadline": (lambda here, there: here.open.update({4: 901}), 4, "visible at 901"),
    "open and not taken": (lambda here, there: here.open.update({9: 1}), 9, "open, but not taken"),
    "settled and not taken": (lambda here, there: there.settled.add(7), 7, "not taken"),
    "another number of acks": (lambda here, there: there.apply(ACKED), None, "ever done"),
    "a delivery of nothing": (
        lambda here, there: here.deliveries.update({2: OpenDelivery(2, 1, 1, 1, 0, 1)}),
        2,
        "a delivery without",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_difference_is_found_where_it_is(name: str) -> None:
    change, offset, text = PLANTED[name]
    found = plant(change)
    assert [at for at, _ in found] == [offset] and found[0][1].startswith(text)


def test_a_window_ahead_of_the_log_is_told_for_the_tag_as_a_whole() -> None:
    findings = compare(cut(), journal(), 0, 0, 5)
    assert (None, "cursor 6") in [(offset, redis) for offset, redis, _ in findings.found]
