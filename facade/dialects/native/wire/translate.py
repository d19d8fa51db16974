"""Native shapes <-> the engine's shapes: seconds and milliseconds, text and base64, shorthands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from engine.shapes import SendEntry
from facade.dialects.native.wire.letters.shapes import CopyMessageBody, PreviewBody
from facade.dialects.native.wire.shapes import (
    AttributeBody,
    ConditionBody,
    FilterBody,
    SendMessage,
)
from facade.dialects.native.wire.units import ATTRIBUTE_NAME_PATTERN, to_ms
from facade.http.problem import ProblemError
from schemas.filters import Condition, Filter
from schemas.records import Attribute, Choice, Message
from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE

RESERVED_ATTRIBUTE = SOURCE_QUEUE_ATTRIBUTE  # set by the move to a dead-letter queue, so never by a sender
_NUMBER_CHARACTERS = 400
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")
_ATTRIBUTE_NAME = re.compile(ATTRIBUTE_NAME_PATTERN)
_NO_ATTRIBUTES: dict[str, Attribute] = {}


def entries_of(messages: Sequence[SendMessage]) -> list[SendEntry]:
    """The messages to send. Raises ProblemError for a message that has not exactly one body, or a
    bad attribute.
    """
    entries = []
    for index, message in enumerate(messages):
        text = message.body
        if (text is None) == (message.body_base64 is None):
            raise _one_of(f"messages[{index}]", "body", "body_base64", both=text is not None)
        entries.append(
            SendEntry(
                body=text.encode() if text is not None else message.body_base64 or b"",
                attributes=_attributes(message.attributes, f"messages[{index}].attributes")
                if message.attributes
                else _NO_ATTRIBUTES,
                delay_ms=to_ms(message.delay_seconds),
                lease_ms=to_ms(message.lease_seconds),
                body_is_text=text is not None,
                group=message.group,
                dedup_id=message.dedup_id,
                priority=message.priority,
                deliver_at_ms=message.deliver_at_ms,
            )
        )
    return entries


def _one_of(where: str, first: str, second: str, *, both: bool) -> ProblemError:
    if both:
        return ProblemError(
            "duplicate_value", f"{where} may have {first} or {second}, not both.", field=f"{where}.{second}"
        )
    return ProblemError("missing_field", f"{where} needs {first} or {second}.", field=f"{where}.{first}")


def _attributes(given: Mapping[str, str | AttributeBody], place: str) -> dict[str, Attribute]:
    attributes = {}
    for name, attribute in given.items():
        where = f"{place}.{name}"
        if name == RESERVED_ATTRIBUTE:
            raise ProblemError(
                "invalid_value", f"{name} is reserved.", field=where, limit="not a reserved name", given=name
            )
        if isinstance(attribute, str):
            attributes[name] = Attribute("string", attribute.encode())
        else:
            attributes[name] = Attribute(
                attribute.type, _typed(where, attribute.type, attribute.value, attribute.value_base64)
            )
    return attributes


def _typed(where: str, type: str, value: str | None, value_base64: bytes | None) -> bytes:
    """The bytes of a value of `type`: text for string and number, base64 for binary."""
    kind = type.partition(".")[0].lower()
    wanted, other = ("value_base64", "value") if kind == "binary" else ("value", "value_base64")
    if (value if kind == "binary" else value_base64) is not None:
        raise ProblemError(
            "invalid_value", f"A {kind} attribute has {wanted}, not {other}.", field=f"{where}.{other}", limit=wanted
        )
    if kind == "binary":
        if value_base64 is None:
            raise ProblemError("missing_field", f"{where} needs {wanted}.", field=f"{where}.{wanted}")
        return value_base64
    if value is None:
        raise ProblemError("missing_field", f"{where} needs {wanted}.", field=f"{where}.{wanted}")
    if kind == "number" and not (len(value) <= _NUMBER_CHARACTERS and _NUMBER.fullmatch(value)):
        limit = f"a decimal number of {_NUMBER_CHARACTERS} characters at most"
        raise ProblemError(
            "invalid_value", f"{where} is not a number.", field=f"{where}.value", limit=limit, given=value
        )
    return value.encode()


def edit_of(body: CopyMessageBody) -> Callable[[Message], SendEntry]:
    """What makes a copy of a message. Raises ProblemError for two bodies, or a bad attribute."""
    if body.body is not None and body.body_base64 is not None:
        raise ProblemError("duplicate_value", "A copy may have body or body_base64, not both.", field="body_base64")
    data = body.body.encode() if body.body is not None else body.body_base64
    attributes = None if body.attributes is None else _attributes(body.attributes, "attributes")

    def edit(message: Message) -> SendEntry:
        kept = {name: attribute for name, attribute in message.attributes.items() if name != RESERVED_ATTRIBUTE}
        return SendEntry(
            body=message.body if data is None else data,
            attributes=kept if attributes is None else attributes,
            lease_ms=message.lease_ms,
            body_is_text=message.body_is_text if data is None else body.body is not None,
            group=body.group or message.group,
            dedup_id=body.dedup_id,
            priority=message.priority,
        )

    return edit


def choice_of(body: PreviewBody) -> Choice | None:
    """Which dead letters a redrive takes, beside its filter and ids; None = all."""
    choice = Choice(
        body.from_ or 0, body.to or 0, body.reason or "", body.source or "", body.text or "", body.ignore_case
    )
    return None if choice == Choice(any_case=body.ignore_case) else choice


def filter_of(body: FilterBody | None) -> Filter | None:
    """A filter; None stays None. Raises ProblemError for a condition that says two things."""
    if body is None:
        return None
    conditions = [
        _condition(condition, f"filter.conditions[{index}]") for index, condition in enumerate(body.conditions)
    ]
    return Filter(conditions, body.operator)


def _condition(body: ConditionBody, where: str) -> Condition:
    valued = body.value is not None or body.value_base64 is not None
    if body.type is None and body.value is not None and body.value_base64 is not None:
        raise _one_of(where, "value", "value_base64", both=True)
    kind = body.type or ("empty" if not valued else "string" if body.value is not None else "binary")
    if kind.lower() != "empty":
        return Condition(body.name, kind, _typed(where, kind, body.value, body.value_base64))
    if valued:
        raise ProblemError(
            "invalid_value",
            "Type empty asks that the attribute exists; it has no value.",
            field=where,
            limit="no value",
        )
    return Condition(body.name)


def filter_of_query(attributes: Sequence[str]) -> Filter | None:
    """The filter of `?attribute=name` (exists) and `?attribute=name=value` (string of that value);
    all must hold.
    """
    conditions = []
    for given in attributes:
        name, equals, value = given.partition("=")
        if not _ATTRIBUTE_NAME.match(name):
            about = "name or name=value; the name is letters, digits and printable ASCII without spaces"
            raise ProblemError(
                "invalid_value", f"attribute must be {about}.", field="attribute", limit=about, given=given
            )
        conditions.append(Condition(name, "string", value.encode()) if equals else Condition(name))
    return Filter(conditions) if conditions else None


def distinct(handles: list[str], field: str) -> list[str]:
    """`handles`, none of which may occur twice. Raises ProblemError with the place of the
    second.
    """
    if len(set(handles)) != len(handles):
        seen: set[str] = set()
        for index, handle in enumerate(handles):
            if handle in seen:
                where = field.format(index)
                raise ProblemError(
                    "duplicate_value", "A handle may be given once.", field=where, limit="distinct", given=handle
                )
            seen.add(handle)
    return handles
