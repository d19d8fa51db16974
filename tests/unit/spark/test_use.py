"""The parts of a report about who used what, without a browser."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from spark.page.use import asked, audit, use

ASKED: dict[str, Any] = {
    "date": date(2026, 3, 1), "principal": "<b>", "queue": "orders", "verb": "send", "dialect": "sqs",
    "outcome": "not_allowed", "requests": 3, "mean_ms": 0.25, "max_ms": 1_500.0,
}  # fmt: skip


def test_each_row_of_requests_says_who_asked_for_what_and_what_came_of_it() -> None:
    said = asked({"asked": [ASKED, {**ASKED, "principal": "", "outcome": "ok", "requests": 4}]})
    row = ("2026-03-01", "&lt;b&gt;", "orders", "send", "sqs", "not_allowed")
    assert "".join(f"<td>{text}</td>" for text in row) in said and "<b>" not in said
    assert '<td class="n">3</td><td class="n">0.25 ms</td><td class="n">1.5 s</td>' in said
    assert '<td class="n">7</td>' in said, "the sum of both"


def test_where_nothing_was_written_down_it_says_so() -> None:
    assert "The workers have written down no request" in asked({"asked": []})
    assert "Nobody changed anything" in audit({})


def test_use_says_which_requests_are_exact() -> None:
    day = dict.fromkeys(
        ("SEND_REQUEST", "RECEIVE_REQUEST", "CHANGE_REQUEST", "DELETE_REQUEST", "sentMessageNumber",
         "receivedMessageNumber", "deletedMessageNumber", "deadMessageNumber"), 5
    ) | {"date": date(2026, 3, 1), "queueName": "orders", "tagName": ""}  # fmt: skip
    said = use({"metering": [], "daily": [{**day, "exact": True}, {**day, "exact": False}]})
    assert said.count("<td>exact</td>") == said.count("<td>about right</td>") == 1


def test_the_audit_says_who_was_refused_and_when() -> None:
    row = {"date": date(2026, 3, 1), "principal": "eve", "verb": "purge", "queue": "orders", "outcome": "not_allowed",
           "requests": 2, "suppressed": 9, "last_at": datetime(2026, 3, 1, 4, 5, 6, tzinfo=UTC),
           "last_error": "no right"}  # fmt: skip
    said = audit({"audit": [row]})
    assert "<td>eve</td><td>purge</td><td>orders</td><td>not_allowed</td>" in said
    assert '<td class="n">9</td><td class="n">2026-03-01 04:05:06</td><td>no right</td>' in said
