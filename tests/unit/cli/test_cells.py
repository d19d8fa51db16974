"""Cells of a table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from facade.programs.cli.output.cells import cell, json_visible, moment, visible


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("backlog", 12, "12"),
        ("backlog", 1795469815321, "1795469815321"),
        ("sent_at_ms", 1795469815321, "2026-11-23T21:36:55.321Z"),
        ("expires_at_ms", 0, "0"),
        ("start_at_ms", -1, "-1"),
        ("since_ms", None, ""),
        ("lease_seconds", 30.0, "30"),
        ("lease_seconds", 0.001, "0.001"),
        ("threshold", 1234567.25, "1234567.25"),
        ("fifo", True, "true"),
        ("fifo", False, "false"),
        ("source_queues", ["a", "b"], "a, b"),
        ("source_queues", [], ""),
        ("notes", ["a, b"], '["a, b"]'),
        ("user_attributes", {"team": "ä"}, '{"team": "ä"}'),
        ("body", "a\nb\x1b[31m", "a\\nb\\x1b[31m"),
    ],
)
def test_a_cell_has_the_value_of_the_field(name: str, value: Any, text: str) -> None:
    assert cell(name, value) == text


def test_the_last_moment_that_has_a_date_is_one() -> None:
    assert moment(253_402_300_799_999) == "9999-12-31T23:59:59.999Z"
    assert cell("at_ms", 253_402_300_800_000) == "253402300800000"


@pytest.mark.parametrize("mark", ["\x00", "\x1b", "\x7f", "\x9b", "\u202e", "\u2028", "\ud800"])
def test_nothing_that_a_terminal_obeys_is_left(mark: str) -> None:
    assert mark not in visible(f"a{mark}b")

    shown = json_visible(json.dumps({"body": f"a{mark}b"}, ensure_ascii=False))
    assert mark not in shown
    assert json.loads(shown) == {"body": f"a{mark}b"}
