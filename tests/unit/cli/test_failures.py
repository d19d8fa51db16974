"""Exit statuses, and the line that says what went wrong."""

from __future__ import annotations

import pytest

from facade.http.problem import CODES
from facade.programs.connect.failures import ABOUT, Refused, code_of


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 2), (413, 2), (404, 3), (401, 4), (403, 4), (421, 4), (503, 5), (409, 1), (429, 1), (500, 1), (301, 1)],
)
def test_a_status_of_http_has_an_exit_status(status: int, code: int) -> None:
    assert code_of(status) == code


def test_every_problem_of_the_service_ends_with_a_documented_exit_status() -> None:
    assert {code_of(row.status) for row in CODES.values()} <= set(ABOUT) - {0}


def test_a_refusal_names_limit_and_given_where_the_detail_does_not() -> None:
    problem = {"detail": "Too long.", "field": "lease_seconds", "limit": [0, 43200], "given": 99999}

    assert str(Refused(400, problem)) == "Too long (field lease_seconds, limit 0 to 43200, given 99999)"


def test_words_that_may_be_given_are_listed() -> None:
    assert str(Refused(400, {"detail": "No.", "limit": ["AND", "OR"]})) == "No (limit AND, OR)"


def test_a_refusal_repeats_nothing_that_the_detail_says() -> None:
    problem = {
        "detail": "lease_seconds must be 0 to 43200, given 99999.",
        "field": "lease_seconds",
        "limit": [0, 43200],
        "given": 99999,
    }

    assert str(Refused(400, problem)) == "lease_seconds must be 0 to 43200, given 99999"


def test_a_refusal_without_a_detail_has_the_title_or_the_status() -> None:
    assert str(Refused(404, {"title": "There is no such queue."})) == "There is no such queue"
    assert str(Refused(500, {})) == "the service answered 500"
