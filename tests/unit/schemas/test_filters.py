"""Which messages a filter lets through."""

from __future__ import annotations

import itertools

import pytest

from schemas.filters import Condition, Filter, Text, contains, matches
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
        Condition("color", "string", b"Red"),
        Condition("Color", "string", b"red"),
        Condition("color", "string"),
        Condition("color", "binary", b"red"),
        Condition("size", "string", b"7"),
        Condition("size", "number", b"7.0"),
    ],
)
def test_name_and_value_are_compared_byte_for_byte_and_the_kind_as_a_word(condition: Condition) -> None:
    assert not matches(Filter([condition]), MESSAGE)


# A type of an attribute, one of a condition, and whether the condition wants it.
TYPES = [
    *((given, wanted, True) for given, wanted in itertools.product(["string", "String", "STRING"], repeat=2)),
    *((given, wanted, True) for given, wanted in itertools.product(["number", "Number", "NUMBER"], repeat=2)),
    *((given, wanted, True) for given, wanted in itertools.product(["binary", "Binary", "BINARY"], repeat=2)),
    ("string.boolean", "STRING", True),
    ("String", "string.boolean", True),
    ("STRING.Number", "string.number", True),
    ("String.x", "string.X", True),
    ("String.x", "string", False),
    ("Number.int", "number", False),
    ("string", "String.x", False),
    ("String.y", "String.x", False),
    ("String.xy", "String.x", False),
    ("string.number", "number", False),
    ("strings", "string", False),
]


@pytest.mark.parametrize(("given", "wanted", "fits"), TYPES)
def test_each_dialects_word_for_a_type_means_the_same(given: str, wanted: str, fits: bool) -> None:
    assert matches(Filter([Condition("a", wanted, b"1")]), {"a": Attribute(given, b"1")}) == fits


def test_the_word_empty_has_any_case_and_no_value() -> None:
    assert matches(Filter([Condition("size", "EMPTY", b"ignored")]), MESSAGE)


def test_the_type_of_the_engines_own_attribute_has_any_case() -> None:
    moved = {SOURCE_QUEUE_ATTRIBUTE: Attribute("STRING", b"orders")}
    assert matches(Filter([Condition(SOURCE_QUEUE_ATTRIBUTE, "string", b"orders")]), moved)
    assert not matches(Filter([Condition(SOURCE_QUEUE_ATTRIBUTE, "string", b"mails")]), moved)


@pytest.mark.parametrize(
    ("body", "words", "any_case", "fits"),
    [
        ("Straße 7", "aße", False, True),
        ("Straße 7", "STRASSE", False, False),
        ("Straße 7", "STRASSE", True, True),
        ("Straße 7", "Straße 8", True, False),
        ("", "a", False, False),
    ],
)
def test_text_is_found_within_a_body(body: str, words: str, any_case: bool, fits: bool) -> None:
    assert contains(body.encode(), Text(words, any_case)) is fits


def test_a_body_that_is_no_text_has_no_text_in_it() -> None:
    assert not contains(b"abc\xff", Text("abc"))
    assert contains(b"abc\xff", None)
