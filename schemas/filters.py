"""Filters of tags and redrive tasks: which attributes a message must carry; and text in its body.

Rules (reference/emq.md section 3.2): a condition of type `empty` asks that the attribute exists;
any other asks for the same type and value. Each dialect writes types in letters of its own
(`string`, `String`, `STRING`), so their case does not count, and the boolean of MNS is a text to
all others. Labels count (`Number.eur`), and values are compared byte for byte. A filter combines
conditions with AND or OR. `spark.rules.lifecycles` has the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from schemas.vocabulary import BOOLEAN_TYPE


class Typed(Protocol):
    """An attribute: a type word and its bytes."""

    @property
    def type(self) -> str: ...

    @property
    def value(self) -> bytes: ...


class Condition(Struct, frozen=True):
    """Attribute `name` must exist (type `empty`), else be of this type and have this value."""

    name: str
    type: str = "empty"
    value: bytes = b""


class Filter(Struct, frozen=True):
    """1 to 20 conditions combined by `operator`: AND (all hold) or OR (at least one)."""

    conditions: list[Condition]
    operator: Literal["AND", "OR"] = "AND"


def _holds(condition: Condition, attributes: Mapping[str, Typed]) -> bool:
    attribute = attributes.get(condition.name)
    if attribute is None:
        return False
    if condition.type.lower() == "empty":
        return True
    return attribute.value == condition.value and is_of(attribute.type, condition.type)


def is_of(given: str, wanted: str) -> bool:
    """Whether an attribute of type `given` is of the type that a condition wants."""
    return given == wanted or _word(given) == _word(wanted)


def _word(type: str) -> str:
    """A type as it is compared."""
    word = type.lower()
    return "string" if word == BOOLEAN_TYPE else word


def matches(filter: Filter | None, attributes: Mapping[str, Typed]) -> bool:
    """Whether a message with `attributes` passes `filter`; None passes everything."""
    if filter is None:
        return True
    test = all if filter.operator == "AND" else any
    return test(_holds(condition, attributes) for condition in filter.conditions)


class Text(Struct, frozen=True):
    """Text that a body must contain; `any_case`: in capitals or not."""

    words: str
    any_case: bool = False


def contains(body: bytes, text: Text | None) -> bool:
    """Whether a body is UTF-8 and has the text in it; None is in everything."""
    if text is None:
        return True
    try:
        return text.words.casefold() in body.decode().casefold() if text.any_case else text.words in body.decode()
    except UnicodeDecodeError:
        return False
