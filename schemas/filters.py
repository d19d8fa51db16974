"""Filters of tags and redrive tasks: which attributes a message must carry.

Rules (reference/emq.md section 3.2): a condition of type `empty` asks that the attribute exists;
any other asks that type and value are equal, byte for byte. A filter combines conditions with AND
or OR. Neighbours: the sender and the loader ask `matches`; this module must not know queues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE


class Typed(Protocol):
    """An attribute: a type word and its bytes."""

    @property
    def type(self) -> str: ...

    @property
    def value(self) -> bytes: ...


class Condition(Struct, frozen=True):
    """Attribute `name` must exist (type `empty`), else have this type and value."""

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
    # The type of the engine's own attribute was once `STRING`: letters and filters of then say so
    # still.
    of_engine = condition.name == SOURCE_QUEUE_ATTRIBUTE
    alike = attribute.type == condition.type or (of_engine and attribute.type.lower() == condition.type.lower())
    return alike and attribute.value == condition.value


def matches(filter: Filter | None, attributes: Mapping[str, Typed]) -> bool:
    """Whether a message with `attributes` passes `filter`; None passes everything."""
    if filter is None:
        return True
    test = all if filter.operator == "AND" else any
    return test(_holds(condition, attributes) for condition in filter.conditions)
