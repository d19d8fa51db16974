"""What is printed, in each form."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import yaml

from facade.programs.cli.output.forms import Printer
from facade.programs.connect.failures import Failure

ROWS: list[dict[str, Any]] = [{"name": "a", "backlog": 3}, {"name": "b\x1b", "backlog": 0, "body": "x"}]


def printed(form: str, *, one: bool = False, stream: bool = False, columns: list[str] | None = None) -> str:
    out = io.StringIO()
    printer = Printer(form, out, columns)
    if one:
        printer.one(ROWS[0], "name")
    elif stream:
        printer.stream(iter(ROWS), ["name", "backlog"], "name")
    else:
        printer.rows(ROWS, ["name", "backlog"], "name")
    return out.getvalue()


def test_json_yaml_and_lines_have_all_of_a_list() -> None:
    assert json.loads(printed("json")) == ROWS
    assert yaml.safe_load(printed("yaml")) == ROWS
    assert [json.loads(line) for line in printed("jsonl").splitlines()] == ROWS
    assert printed("name") == "a\nb\\x1b\n"


def test_an_object_is_one_value() -> None:
    assert json.loads(printed("json", one=True)) == ROWS[0]
    assert yaml.safe_load(printed("yaml", one=True)) == ROWS[0]
    assert printed("jsonl", one=True) == '{"name":"a","backlog":3}\n'
    assert printed("name", one=True) == "a\n"


def test_a_stream_is_lines_in_every_form() -> None:
    assert [json.loads(line) for line in printed("json", stream=True).splitlines()] == ROWS
    assert list(yaml.safe_load_all(printed("yaml", stream=True))) == ROWS
    assert printed("table", stream=True) == "a\t3\nb\\x1b\t0\n"
    assert printed("name", stream=True) == "a\nb\\x1b\n"


@pytest.mark.parametrize("mark", ["\ud800", "\u202e", "\x9b", "\x85"])
def test_yaml_has_nothing_that_a_terminal_obeys_and_loses_nothing(mark: str) -> None:
    out = io.StringIO()

    Printer("yaml", out).one({"body": f"ä{mark}b\n"}, "name")

    assert mark not in out.getvalue()
    assert yaml.safe_load(out.getvalue()) == {"body": f"ä{mark}b\n"}


def test_an_object_without_a_name_is_refused_as_one() -> None:
    with pytest.raises(Failure, match="no field 'name' that -o name could print"):
        Printer("name", io.StringIO()).one({"level": "use"}, "name")


@pytest.mark.parametrize("form", ["json", "jsonl", "yaml", "name"])
def test_only_a_table_has_columns(form: str) -> None:
    assert printed(form, columns=["backlog"]) == printed(form)


def test_columns_are_those_that_are_named() -> None:
    assert printed("table", columns=["backlog", "body"]).split() == ["backlog", "body", "3", "0", "x"]
