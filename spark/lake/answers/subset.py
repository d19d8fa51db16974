"""Which questions mean the same to DuckDB as to Spark: those made of these parts of SQL alone.

Both speak SQL, and not the same: to one `a[1]` is the first of a list and to the other the second,
a cast rounds or cuts, `"a"` is a column or a text. What is not listed here is asked of Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

_CLASSES = frozenset({
    "BETWEEN", "CASE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION", "OPERATOR", "STAR",
    "SUBQUERY", "WINDOW", "CAST",
})  # fmt: skip
_OPERATORS = frozenset({
    "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_COALESCE"
})  # fmt: skip
_FUNCTIONS = frozenset({
    "abs", "avg", "count", "count_star", "date_trunc", "day", "dense_rank", "first_value", "greatest", "hour",
    "last_value", "lag", "lead", "least", "lower", "max", "max_by", "min", "min_by", "minute", "month", "now",
    "rank", "row_number", "second", "sum", "upper", "year",
    "+", "-", "*", "~~", "!~~",
})  # fmt: skip
_INTERVALS = frozenset({"to_days", "to_hours", "to_minutes", "to_seconds"})
_CASTS = frozenset({"TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "DATE"})
_NAMED = frozenset({"avg", "count", "max", "min", "sum"})


# Columns of ours that are words of DuckDB's SQL, but where they are words of Spark's too.
_WORDS = re.compile(r"('(?:[^']|'')*')|\b(at(?!\s+time\b)|offset(?!\s+\d))\b", re.IGNORECASE)


class NotCommon(Exception):
    """A question may mean something else to DuckDB; the text says what of it."""


def spelt(query: str) -> str:
    """The question in DuckDB's spelling. Raises NotCommon: it has signs that mean something else
    there.
    """
    for sign, about in (('"', "quotation marks"), ("\\", "a backslash")):
        if sign in query:
            raise NotCommon(about)
    return _WORDS.sub(lambda found: found[1] or f'"{found[2]}"', query)


def names_of(serialized: str) -> list[str | None]:
    """The names that Spark gives the columns of a question; None = those that DuckDB gives.
    `serialized` is what `json_serialize_sql` makes of it (`spelt`). Raises NotCommon.
    """
    told = json.loads(serialized)
    if told.get("error"):
        raise NotCommon(str(told.get("error_message", "it can't be read")).splitlines()[0])
    if len(told["statements"]) != 1:
        _refuse("more than one statement")
    [statement] = told["statements"]
    for node in _nodes(statement):
        _check(node)
    root = statement["node"]
    return [_name(column) for column in root["select_list"]] if root["type"] == "SELECT_NODE" else [None]


def _check(node: dict[str, Any]) -> None:
    kind, sort = node.get("class"), str(node.get("type"))
    if kind is not None and kind not in _CLASSES:
        _refuse(str(kind).lower())
    if kind == "OPERATOR" and sort not in _OPERATORS:
        _refuse(sort.lower())
    if kind in ("FUNCTION", "WINDOW") and str(node["function_name"]) not in _FUNCTIONS:
        _refuse(f"the function {node['function_name']}")
    if kind == "CAST":
        _check_cast(node)
    if sort == "TABLE_FUNCTION":
        _refuse("a function that gives a table")


def _check_cast(node: dict[str, Any]) -> None:
    """Only texts that stand in the question are cast, to times: TIMESTAMP '2026-03-01'."""
    kind = str(node["cast_type"]["id"])
    if kind not in _CASTS or node["child"]["class"] != "CONSTANT":
        _refuse(f"a cast to {kind}")


def _name(column: dict[str, Any]) -> str | None:
    """The name of a column of the result."""
    if column.get("alias") or column["class"] in ("COLUMN_REF", "STAR"):
        return None
    if column["class"] == "FUNCTION" and not column["distinct"]:
        if column["function_name"] == "count_star":
            return "count(1)"
        inner = column["children"]
        if column["function_name"] in _NAMED and [one["class"] for one in inner] == ["COLUMN_REF"]:
            return f"{column['function_name']}({inner[0]['column_names'][-1]})"
    raise NotCommon("a column without a name")


def _nodes(part: object) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if part.get("function_name") in _INTERVALS and '"COLUMN_REF"' not in json.dumps(part):
            return  # INTERVAL 3 HOUR, which DuckDB casts to a whole number.
        yield part
        for inner in part.values():
            yield from _nodes(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _nodes(inner)


def _refuse(about: str) -> NoReturn:
    raise NotCommon(about)
