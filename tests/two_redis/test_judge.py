"""The judge of the cases sees what a book must not have: each kind of breach is planted in a small
book.
"""

from __future__ import annotations

import pytest

from tests.two_redis.book import Book, Delivered
from tests.two_redis.judge import (
    FORGOTTEN_AFTER_S,
    FORGOTTEN_BEFORE_S,
    LOADED,
    LOADED_BEFORE_S,
    Verdict,
    judge,
    judge_split,
)

LIFE = 100.0
QUIET = LOADED - 0.1


def delivered(uid: str, began: float, worker: int = 0) -> Delivered:
    return Delivered(uid.split("/", maxsplit=1)[0], uid, worker, began, began + 0.1)


def a_book() -> Book:
    """One message of each queue, sent, delivered and acknowledged before another life came."""
    book = Book()
    for queue in ("plain", "durable"):
        uid = f"{queue}/0/0"
        book.sent[uid] = (queue, 80.0, 80.1)
        book.deliveries.append(delivered(uid, 81.0))
        book.acked[uid] = (82.0, 82.1)
    return book


def ack_at(book: Book, uid: str, at: float) -> None:
    book.acked[uid] = (at - 0.1, at)


def test_a_book_without_a_breach_is_right() -> None:
    found = judge(a_book(), [LIFE], QUIET)
    assert found.broken == []
    figures = {"sent": 2, "deliveries": 2, "acked": 2, "acks_forgotten": 0, "durable_acks": 1}
    assert found.figures == {**figures, "forgotten_from_s": 0, "forgotten_to_s": 0}


def test_an_answered_send_that_never_came_is_told() -> None:
    book = a_book()
    book.sent["plain/0/1"] = ("plain", 99.0, 99.1)
    (text,) = judge(book, [LIFE], QUIET).broken
    assert "1 answered sends were never delivered: ['plain/0/1']" in text


def test_a_delivery_of_what_nobody_sent_is_told_but_not_of_what_may_have_been() -> None:
    book = a_book()
    book.deliveries += [delivered("plain/0/1", 99.0), delivered("plain/0/2", 99.0)]
    book.doubtful.add("plain/0/1")
    (text,) = judge(book, [LIFE], QUIET).broken
    assert "deliveries of what nobody sent: ['plain/0/2']" in text


def test_an_answer_that_no_fault_explains_is_told() -> None:
    book = a_book()
    book.refuse("ack", 503, "away")
    book.refuse("ack", 500, "a bug")
    (text,) = judge(book, [LIFE], QUIET).broken
    assert "ack 500: a bug" in text


@pytest.mark.parametrize(
    ("acked_at", "load", "is_told"),
    [
        (LIFE - FORGOTTEN_BEFORE_S - 0.1, QUIET, True),
        (LIFE - FORGOTTEN_BEFORE_S + 0.1, QUIET, False),
        (LIFE - LOADED_BEFORE_S - 0.1, LOADED, True),
        (LIFE - LOADED_BEFORE_S + 0.1, LOADED, False),
        (LIFE + FORGOTTEN_AFTER_S - 0.1, QUIET, False),
        (LIFE + FORGOTTEN_AFTER_S + 0.1, LOADED, True),
    ],
)
@pytest.mark.parametrize("queue", ["plain", "durable"])
def test_an_ack_may_be_forgotten_close_to_another_life_only_and_a_durable_one_never(
    queue: str, acked_at: float, load: float, is_told: bool
) -> None:
    book, uid = a_book(), f"{queue}/0/0"
    ack_at(book, uid, acked_at)
    book.deliveries.append(delivered(uid, acked_at + 1))
    found = judge(book, [LIFE], load)
    assert found.figures["acks_forgotten"] == 1
    assert found.figures["forgotten_from_s"] == found.figures["forgotten_to_s"] == round(acked_at - LIFE, 2)
    assert bool(found.broken) == (is_told or queue == "durable")


def test_a_delivery_that_was_asked_for_before_the_ack_is_none_after_it() -> None:
    book = a_book()
    book.deliveries.append(delivered("durable/0/0", 82.05))
    assert judge(book, [LIFE], QUIET).broken == []


@pytest.mark.parametrize(("old_at", "is_told"), [(102.2, False), (102.6, True), (110.2, False)])
def test_a_delivery_of_the_old_life_after_one_of_the_new_is_told(old_at: float, is_told: bool) -> None:
    """Worker 1 has the old one until 110; the new one is first used at 102.3."""
    book, verdict = a_book(), Verdict()
    book.deliveries += [delivered("plain/0/1", 102.2, worker=0), delivered("plain/0/2", old_at - 0.1, worker=1)]
    judge_split(book, 1, 0, LIFE, 110.0, verdict)
    assert bool(verdict.broken) == is_told, verdict.broken
    assert verdict.figures["new_life_after_s"] == 2.3


def test_a_split_in_which_nobody_used_the_new_life_says_nothing_and_is_told() -> None:
    verdict = Verdict()
    judge_split(a_book(), 1, 0, LIFE, 110.0, verdict)
    assert "not in use" in verdict.broken[0]
