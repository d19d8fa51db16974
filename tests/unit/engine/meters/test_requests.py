"""Who has asked for what: what is one row, and what a minute is bounded by."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.meters.requests import CHARACTERS, MOST_ROWS, RequestCounts, dialect_of
from schemas.records.watching import Request, RequestRow
from schemas.vocabulary import CLIENT_GONE, OK


def asked(principal: str = "shop", queue: str = "orders", outcome: str = OK) -> Request:
    return Request(principal, queue, "sqs.SendMessage", "send", outcome)


def note(counts: RequestCounts, request: Request, us: int) -> None:
    counts.add(request, 1, us, us)


def sums(rows: list[RequestRow]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        found[row.dialect, row.outcome] += row.requests
    return found


def test_what_is_alike_is_one_row_and_each_minute_begins_anew() -> None:
    counts = RequestCounts()
    note(counts, asked(), 30)
    note(counts, asked(), 50)
    counts.add(asked(), 3, 90, 40)
    note(counts, asked(outcome=CLIENT_GONE), 7)
    assert sorted(counts.take(), key=lambda row: row.outcome) == [
        RequestRow("sqs", "sqs.SendMessage", "send", "shop", "orders", "gone", 1, 7, 7),
        RequestRow("sqs", "sqs.SendMessage", "send", "shop", "orders", "ok", 5, 170, 50),
    ]
    assert counts.take() == []


@pytest.mark.parametrize(("operation", "dialect"), [("send", "native"), ("emq.sendMessage", "emq"), ("", "native")])
def test_an_operation_tells_its_dialect(operation: str, dialect: str) -> None:
    assert dialect_of(operation) == dialect


def test_beyond_the_bound_sums_stay_exact() -> None:
    counts = RequestCounts()
    for number in range(MOST_ROWS + 500):
        note(counts, asked(f"p{number}"), number)
        note(counts, Request(f"p{number}", "", "receive", "receive", "queue_not_found"), 1)
    note(counts, asked("p0"), 1)  # a row that is there is counted still
    rows = counts.take()
    assert len(rows) == MOST_ROWS + 2
    assert sums(rows) == {("sqs", "ok"): MOST_ROWS + 501, ("native", "queue_not_found"): MOST_ROWS + 500}
    others = [row for row in rows if not row.operation]
    assert sorted((row.dialect, row.verb, row.principal, row.queue, row.outcome) for row in others) == [
        ("native", "", "", "", "queue_not_found"),
        ("sqs", "", "", "", "ok"),
    ]
    assert max(row.max_us for row in others) == MOST_ROWS + 499
    assert [row.requests for row in rows if row.principal == "p0" and row.dialect == "sqs"] == [2]
    note(counts, asked("late"), 1)
    assert [row.principal for row in counts.take()] == ["late"], "the next minute has room again"


def test_strangers_take_no_room_of_others() -> None:
    counts = RequestCounts()
    refused = [Request("", "", f"sqs.Action{number}", "", "not_authenticated") for number in range(MOST_ROWS)]
    for request in refused:
        note(counts, request, 1)
    for number in range(MOST_ROWS):
        note(counts, asked(f"p{number}"), 1)
    rows = counts.take()
    assert len(rows) == 2 * MOST_ROWS and all(row.operation for row in rows)


def test_a_queue_that_is_not_there_is_counted_without_its_name() -> None:
    counts = RequestCounts(lambda name: name == "orders")
    for number in range(10):
        note(counts, asked(queue=f"made-up-{number}", outcome="queue_not_found"), 1)
    note(counts, asked(outcome="not_authorised"), 1)
    note(counts, asked(queue="gone"), 1)  # it was there until this request deleted it
    found = {(row.queue, row.outcome): row.requests for row in counts.take()}
    assert found == {("", "queue_not_found"): 10, ("orders", "not_authorised"): 1, ("gone", "ok"): 1}


def test_long_names_are_cut() -> None:
    counts = RequestCounts()
    for end in "ab":
        note(counts, asked("x" * CHARACTERS + end), 1)
    [row] = counts.take()
    assert (row.principal, row.requests) == ("x" * CHARACTERS, 2)
