"""Tables say what the JSON says."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest

from facade.programs.cli.output.cells import cell
from facade.programs.cli.output.table import flat, list_table, object_table
from facade.programs.connect.failures import Failure

QUEUE: dict[str, Any] = {
    "name": "orders",
    "created_at_ms": 1795469815321,
    "lease_seconds": 30.0,
    "redrive_policy": {"dead_letter_queue": "orders.dead", "max_receive_count": 5},
    "user_attributes": {},
    "tags": [
        {"name": "default", "backlog": 12, "filter": None},
        {"name": "eu", "backlog": 3, "filter": {"operator": "AND"}},
    ],
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def cells(table: str, columns: list[str]) -> list[dict[str, str]]:
    """A table read back: a cell ends where the next title begins, so no cell may be wider."""
    head, *lines = table.splitlines()
    assert head.split() == columns
    return [dict(zip(columns, re.split(r" {2,}", line.strip()), strict=False)) for line in lines]


def test_every_cell_of_a_list_is_that_of_its_field() -> None:
    rows = [
        {"name": "orders", "backlog": 12, "since_ms": 1795469815321},
        {"name": "x" * 500, "backlog": 3, "since_ms": 0},
    ]

    shown = cells(list_table(rows, list(rows[0]), io.StringIO()), list(rows[0]))

    assert shown == [{name: cell(name, value) for name, value in row.items()} for row in rows]


def test_a_column_that_no_row_has_is_left_out_unless_it_was_named() -> None:
    assert list_table([{"id": "a"}], ["id", "body"], io.StringIO()) == "id\na\n"
    assert list_table([], ["id", "body"], io.StringIO()) == "id  body\n"
    with pytest.raises(Failure, match="no column is named 'body'; there are: id"):
        list_table([{"id": "a"}], ["id", "body"], io.StringIO(), strict=True)


def test_an_object_has_a_line_for_each_field_and_a_table_for_objects_in_it() -> None:
    fields, tags = object_table(QUEUE, None, io.StringIO()).split("\ntags\n")

    assert [re.split(r" {2,}", line) for line in fields.splitlines()] == [
        ["field", "value"],
        ["name", "orders"],
        ["created_at_ms", "2026-11-23T21:36:55.321Z"],
        ["lease_seconds", "30"],
        ["redrive_policy.dead_letter_queue", "orders.dead"],
        ["redrive_policy.max_receive_count", "5"],
        ["user_attributes"],
    ]
    assert [line.split() for line in tags.splitlines()] == [
        ["name", "backlog", "filter"],
        ["default", "12"],
        ["eu", "3", '{"operator":', '"AND"}'],
    ]


def test_fields_of_an_object_may_be_chosen() -> None:
    assert object_table(QUEUE, ["name"], io.StringIO()).split() == ["field", "value", "name", "orders"]
    with pytest.raises(Failure, match="no field is named 'nope'"):
        object_table(QUEUE, ["nope"], io.StringIO())


def test_flat_keeps_every_value() -> None:
    assert dict(flat({"a": {"b": {"c": 1}, "d": []}, "e": {}})) == {"a.b.c": 1, "a.d": [], "e": {}}


def test_colours_are_for_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in list_table([{"id": "a"}], ["id"], Terminal())
    assert "\x1b" not in list_table([{"id": "a"}], ["id"], io.StringIO())

    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in list_table([{"id": "a"}], ["id"], Terminal())


def test_a_long_cell_is_cut_at_a_terminal_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    rows = [{"body": "x" * 400}]

    assert "(100 more characters)" in list_table(rows, ["body"], Terminal())
    assert "x" * 400 in list_table(rows, ["body"], io.StringIO())
