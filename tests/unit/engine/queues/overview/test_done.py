"""What is shown of numbers that only grow."""

from __future__ import annotations

from engine.queues.overview.done import Shown
from schemas.records import Totals
from state.shared.overview import Counted, Done

LIFE = "1" * 12


def _row(sent: int, done: Done) -> Counted:
    return Counted(0, 0, 0, 0, 0, 0, 9, sent, {0: done})


def test_a_delivery_is_shown_at_the_next_look_unless_it_was_given_back() -> None:
    shown = Shown()
    assert shown.done(LIFE, {0: Totals()}) == {0: Done()}
    assert shown.done(LIFE, {0: Totals(leased=10, leased_again=2, acked=1)}) == {0: Done(acked=1)}
    assert shown.done(LIFE, {0: Totals(leased=12, leased_again=2, returned=4, returned_again=1, acked=3)}) == {
        0: Done(received=6, redelivered=1, acked=3)
    }
    assert shown.done(LIFE, {0: Totals(leased=12, leased_again=2, returned=4, returned_again=1, acked=3)}) == {
        0: Done(received=8, redelivered=1, acked=3)
    }


def test_nothing_goes_back_when_redis_has_lost_something() -> None:
    shown = Shown()
    whole = Totals(leased=9, leased_again=3, acked=5, released=2, dead=1)
    shown.done(LIFE, {0: whole})
    assert shown.done(LIFE, {0: whole}) == {0: Done(9, 3, 5, 2, 1)}
    assert shown.done(LIFE, {0: Totals(leased=7, acked=4)}) == {0: Done(9, 3, 5, 2, 1)}
    assert shown.done(LIFE, {0: Totals(leased=7, acked=6)}) == {0: Done(9, 3, 6, 2, 1)}
    assert (shown.sent(LIFE, 10), shown.sent(LIFE, 0), shown.sent(LIFE, 11)) == (10, 10, 11)


def test_what_was_returned_in_one_life_of_redis_is_not_set_against_leases_of_another() -> None:
    shown = Shown()
    shown.begin_look(1)
    shown.done(LIFE, {0: Totals(leased=10, leased_again=2)})
    stock = Totals(leased=14, leased_again=5)  # of which nobody has the last three
    shown.done(LIFE, {0: stock})
    # The stock was returned. The journal had neither the leases nor that; more was leased since.
    shown.begin_look(2)
    rebuilt = Totals(leased=15, leased_again=2)
    assert shown.done(LIFE, {0: rebuilt}) == {0: Done(received=10, redelivered=2)}
    assert shown.done(LIFE, {0: rebuilt}) == {0: Done(received=15, redelivered=2)}
    # One unit alone has lost its state.
    shown.done(LIFE, {0: Totals(leased=19, leased_again=6)})
    assert shown.done(LIFE, {0: Totals(leased=17, leased_again=2)}) == {0: Done(received=15, redelivered=2)}


def test_another_worker_goes_on_from_what_was_shown() -> None:
    shown = Shown()
    shown.begin({LIFE: _row(20, Done(9, 3, 5))})
    # It can't know yet which of these an answer carried.
    assert shown.done(LIFE, {0: Totals(leased=30, leased_again=4, acked=6)}) == {0: Done(9, 3, 6)}
    assert shown.done(LIFE, {0: Totals(leased=30, leased_again=4, acked=6)}) == {0: Done(30, 4, 6)}
    assert shown.sent(LIFE, 19) == 20


def test_a_tag_that_is_gone_is_shown_no_more_and_a_life_begins_at_nothing() -> None:
    shown = Shown()
    shown.done(LIFE, {0: Totals(acked=1), 1: Totals(acked=2)})
    assert shown.done(LIFE, {0: Totals(acked=1)}) == {0: Done(acked=1)}
    shown.forget([LIFE])
    assert shown.done(LIFE, {0: Totals()}) == {0: Done()}
    assert shown.sent(LIFE, 1) == 1
