"""Which messages a filter lets through."""

from __future__ import annotations

import pytest

from schemas.filters import Condition, Filter, matches
from schemas.records import Attribute
from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE

MESSAGE = {"color": Attribute("string", b"red"), "size": Attribute("number", b"7")}
RED, BLUE, HAS_SIZE, HAS_PRICE = (
    Condition("color", "string", b"red"),
    Condition("color", "string", b"blue"),
    Condition("size"),
    Condition("price"),
)


def test_no_filter_lets_everything_through() -> None:
    assert matches(None, {}) and matches(None, MESSAGE)


@pytest.mark.parametrize(
    ("conditions", "all_hold", "one_holds"),
    [
        ([RED], True, True),
        ([BLUE], False, False),
        ([RED, HAS_SIZE], True, True),
        ([RED, HAS_PRICE], False, True),
        ([BLUE, HAS_PRICE], False, False),
    ],
)
def test_conditions_are_joined_by_and_or_or(conditions: list[Condition], all_hold: bool, one_holds: bool) -> None:
    assert matches(Filter(conditions), MESSAGE) == all_hold
    assert matches(Filter(conditions, "OR"), MESSAGE) == one_holds


@pytest.mark.parametrize(
    "condition",
    [
        Condition("color", "String", b"red"),
        Condition("color", "string", b"Red"),
        Condition("Color", "string", b"red"),
        Condition("color", "string"),
    ],
)
def test_name_type_and_value_are_compared_byte_for_byte(condition: Condition) -> None:
    assert not matches(Filter([condition]), MESSAGE)


def test_the_word_empty_has_any_case_and_no_value() -> None:
    assert matches(Filter([Condition("size", "EMPTY", b"ignored")]), MESSAGE)


def test_the_type_of_the_engines_own_attribute_has_any_case() -> None:
    moved = {SOURCE_QUEUE_ATTRIBUTE: Attribute("STRING", b"orders")}
    assert matches(Filter([Condition(SOURCE_QUEUE_ATTRIBUTE, "string", b"orders")]), moved)
    assert not matches(Filter([Condition(SOURCE_QUEUE_ATTRIBUTE, "string", b"mails")]), moved)
