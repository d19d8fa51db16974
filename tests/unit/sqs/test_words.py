"""No text of SQS has the engine's words in it: every engine error, with every field that the engine
has a name for.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import engine
import facade.dialects.sqs
from engine import errors, shapes
from facade.dialects.sqs.wire.errors import sqs_error
from facade.dialects.sqs.wire.words import PARAMETERS
from schemas import records
from schemas.records.settings import TABLE
from tests.unit.sqs.test_errors import tree

ENGINE = Path(inspect.getfile(engine)).parent
SQS = Path(inspect.getfile(facade.dialects.sqs)).parent


def named() -> Iterator[str]:
    """The fields that the engine's errors name, as its source says."""
    for file in sorted(ENGINE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            for keyword in node.keywords:
                if keyword.arg == "field" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)
            if (
                isinstance(node.func, ast.Name)
                and node.func.id in ("check_range", "check_asked", "check_name")
                and isinstance(node.args[0], ast.Constant)
            ):
                yield str(node.args[0].value)


def structs(module: Any) -> Iterator[str]:
    for found in vars(module).values():
        if isinstance(found, type) and issubclass(found, msgspec.Struct):
            yield from found.__struct_fields__


FIELDS = sorted({*named(), *TABLE, *structs(shapes)})
# Words that are English too may stand in a text: `queue`, `name`, `body`. What has an underscore in
# it is nobody's English.
INTERNAL = sorted({word for word in (*FIELDS, *structs(records)) if "_" in word})
ERRORS = [error for error in tree() if error.__module__ == errors.__name__]
WORDS = re.compile(rf"(?<![A-Za-z_])(?:{'|'.join(INTERNAL)})(?![A-Za-z_])")
LIMITS: list[Any] = [None, 128, [0, 900_000], [1, 100], "a FIFO queue", ["queue", "group"]]
GIVENS: list[Any] = [None, 2_000_000, "x", ["x"], {"a": 1}]


def test_the_engine_names_its_fields() -> None:
    assert {"delay_ms", "dedup_id", "content_dedup", "lease_ms", "handles", "dead_letter_queue"} <= set(FIELDS)
    assert {"delay_ms", "dedup_scope", "max_receive_count", "redrive_policy"} <= set(INTERNAL)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_no_text_has_a_word_of_the_engine(error: type[errors.EngineError]) -> None:
    for field, limit, given, action in itertools.product((None, *FIELDS), LIMITS, GIVENS, ("", "SendMessage")):
        detail = f"{field} must be 0 to 900000, given 2000000 ({', '.join(INTERNAL)})"
        text = sqs_error(error(detail, field=field, limit=limit, given=given), action).message

        assert text and text.strip() == text
        assert WORDS.search(text) is None, text
        if error is errors.InvalidValue and (field or "").endswith("_ms"):
            assert "2000000" not in text and "900000" not in text, text


@pytest.mark.parametrize("field", [field for field in FIELDS if field.endswith("_ms") and field in PARAMETERS])
def test_a_time_is_told_in_seconds(field: str) -> None:
    text = sqs_error(errors.InvalidValue(field=field, limit=[0, 900_000], given=2_000_000)).message

    assert text.startswith(f"Value 2000 for parameter {PARAMETERS[field][0]} is invalid. Reason: ")
    assert (
        text.rstrip(".").removesuffix(", if provided").endswith("must be >= 0 and <= 900")
        or "Must be >= 0 and <= 900" in text
    )


def test_the_dialect_passes_no_text_of_the_engine_on() -> None:
    for file in SQS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            assert not (isinstance(node, ast.Attribute) and node.attr == "detail"), f"{file.name}:{node.lineno}"
