"""Numbers, times and texts as people read them."""

from __future__ import annotations

import pytest

from facade.programs.console.web import words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0 s"),
        (0.5, "0.5 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (3723, "1 h 2 min"),
        (90_000, "1 d 1 h"),
    ],
)  # fmt: skip
def test_spans(seconds: float | None, text: str) -> None:
    assert words.span(seconds) == text


def test_times_are_in_utc_and_none_is_a_dash() -> None:
    assert words.when(1_795_000_000_000) == "2026-11-18 11:06:40"
    assert words.clock(1_795_000_000_999) == "11:06:40"
    assert words.when(None) == words.clock(0) == words.age(None, 5) == "-"
    assert words.when(10**18) == f"{10**18} ms"
    assert words.age(1_000, 3_724_000) == "1 h 2 min"
    # The clock of the service may be behind that of a record.
    assert words.age(5_000, 1_000) == "0 s"


def test_numbers_and_texts() -> None:
    assert (words.count(1234567), words.count(1.50), words.count(None)) == ("1,234,567", "1.5", "-")
    assert words.cut("x" * 300) == "x" * 200 + " ..."
    assert words.body({"body": ""}) == "" and words.body({"body_base64": "AA=="}) == "AA=="


def test_a_time_of_an_input_is_read_as_utc() -> None:
    assert words.moment("2026-11-18T11:06:40") == 1_795_000_000_000
    assert words.moment("") is None
    with pytest.raises(ValueError, match="Invalid"):
        words.moment("yesterday")
