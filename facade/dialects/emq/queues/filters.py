"""Attributes of messages as filters name them: EMQ's structs and the engine's.

The engine writes its own name of a queue into `DLQ.sourceQueue` of its dead letters, EMQ's idiom
asks for the full one: it is translated both ways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from facade.dialects.emq.queues.call import EmqError
from facade.dialects.emq.queues.names import name_of, source_of
from facade.dialects.emq.wire.enums import LogicalOperator
from facade.dialects.emq.wire.errors import ErrorCode
from facade.dialects.emq.wire.structs.access import AttributesFilter, CreateTagRequest
from facade.dialects.emq.wire.structs.message import MessageAttribute
from schemas.filters import Condition, Filter
from schemas.records import Attribute
from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE

if TYPE_CHECKING:
    from engine.engine import Engine

_EMPTY: Final = "empty"
_NUMBER: Final = "number"
_SOURCE_TYPE: Final = "STRING"


def attribute_of(name: str, given: MessageAttribute) -> Attribute:
    """An attribute with its value. Raises EmqError for a type that is not string or binary, or a
    value that does not fit it.
    """
    kind = given.type.partition(".")[0].lower()
    if kind == "string":
        if given.string_value is None:
            raise EmqError(
                ErrorCode.INVALID_ATTRIBUTE, f"attribute {name[:200]!r} of type {given.type[:50]!r} needs a stringValue"
            )
        return Attribute(given.type, given.string_value.encode())
    if kind == "binary":
        if given.binary_value is None:
            raise EmqError(
                ErrorCode.INVALID_ATTRIBUTE, f"attribute {name[:200]!r} of type {given.type[:50]!r} needs a binaryValue"
            )
        return Attribute(given.type, given.binary_value)
    raise EmqError(
        ErrorCode.INVALID_ATTRIBUTE,
        f"the type of attribute {name[:200]!r} must begin with string or binary, given {given.type[:50]!r}",
    )


def attribute_reply(engine: Engine, name: str, attribute: Attribute) -> MessageAttribute:
    """An attribute for the wire; text of a native producer that is none has its bad bytes
    replaced.
    """
    if name == SOURCE_QUEUE_ATTRIBUTE:
        return MessageAttribute(
            type=_SOURCE_TYPE, string_value=name_of(engine, attribute.value.decode("utf-8", "replace"))
        )
    if attribute.type[:6].lower() == "binary":
        return MessageAttribute(type=attribute.type, binary_value=attribute.value)
    return MessageAttribute(type=attribute.type, string_value=attribute.value.decode("utf-8", "replace"))


def condition_of(engine: Engine, name: str, given: MessageAttribute) -> Condition:
    """What a filter asks of one attribute; of type `empty` it must be there. Raises EmqError."""
    if given.type.lower() == _EMPTY:
        return Condition(name)
    if given.type.partition(".")[0].lower() == _NUMBER and given.string_value is not None:  # sent in another dialect
        return Condition(name, given.type, given.string_value.encode())
    attribute = attribute_of(name, given)
    if name == SOURCE_QUEUE_ATTRIBUTE:
        return Condition(name, attribute.type, source_of(engine, attribute.value.decode("utf-8", "replace")).encode())
    return Condition(name, attribute.type, attribute.value)


def single(engine: Engine, name: str | None, value: MessageAttribute | None) -> list[Condition]:
    """The condition of a request's attributeName and attributeValue, if it has both. Raises
    EmqError when it has one.
    """
    if name is None and value is None:
        return []
    if not name or value is None:
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, "attributeName and attributeValue go together")
    return [condition_of(engine, name, value)]


def filter_of(engine: Engine, given: CreateTagRequest) -> Filter | None:
    """What a tag wants: None = everything. Raises EmqError."""
    conditions = single(engine, given.attribute_name, given.attribute_value)
    several = given.attributes_filter
    if several is None:
        return Filter(conditions) if conditions else None
    more = [condition_of(engine, name, value) for name, value in several.attributes.items()]
    if not more:
        raise EmqError(ErrorCode.INVALID_ATTRIBUTE, "attributesFilter names no attributes")
    if several.logical_operator not in set(LogicalOperator):
        raise EmqError(
            ErrorCode.INVALID_ATTRIBUTE, f"logicalOperator must be 0 (AND) or 1 (OR), given {several.logical_operator}"
        )
    if several.logical_operator == LogicalOperator.OR and len(more) > 1:
        if conditions:
            raise EmqError(
                ErrorCode.INVALID_ATTRIBUTE, "attributeName and an attributesFilter with OR can't be used together"
            )
        return Filter(more, "OR")
    return Filter([*conditions, *more])


def parts_of(
    engine: Engine, filter: Filter | None
) -> tuple[str | None, MessageAttribute | None, AttributesFilter | None]:
    """A filter as a tag shows it: one condition as attributeName and attributeValue, several as
    attributesFilter.
    """
    if filter is None:
        return None, None, None
    shown = {one.name: _shown(engine, one) for one in filter.conditions}
    if len(shown) == 1:
        ((name, value),) = shown.items()
        return name, value, None
    operator = LogicalOperator.OR if filter.operator == "OR" else LogicalOperator.AND
    return None, None, AttributesFilter(attributes=shown, logical_operator=operator)


def _shown(engine: Engine, condition: Condition) -> MessageAttribute:
    if condition.type.lower() == _EMPTY:
        return MessageAttribute(type=condition.type)
    return attribute_reply(engine, condition.name, Attribute(condition.type, condition.value))
