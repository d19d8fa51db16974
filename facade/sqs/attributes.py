"""Message attributes and system attributes: SQS's form <-> the engine's, with SQS's rules and the filter of a receive.

What SQS calls system attributes travels as attributes of the message whose names begin with `AWS.`, which SQS refuses from users.
Neighbours: `messages`. This module must not know requests or replies beyond an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from facade.sqs.errors import invalid, missing
from facade.sqs.limits import DATA_TYPE_CHARACTERS, MESSAGE_ATTRIBUTES, NUMBER_DIGITS, NUMBER_EXPONENTS
from facade.sqs.replies import AttributeReply
from facade.sqs.shapes import AttributeValue
from schemas.records import Attribute

TRACE_HEADER = "AWSTraceHeader"
_STORED_TRACE_HEADER = "AWS.TraceHeader"
SOURCE_QUEUE = "DLQ.sourceQueue"  # the mover's word of where a dead letter came from
_HIDDEN = frozenset((_STORED_TRACE_HEADER, SOURCE_QUEUE))

_NAME = re.compile(r"(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_RESERVED = ("aws.", "amazon.")
# The label's characters and length are the engine's.
_DATA_TYPE = re.compile(r"(String|Number|Binary)(\.[A-Za-z0-9.]{1,200})?")
_NUMBER = re.compile(r"[+-]?0*(?P<whole>\d*)(?:\.(?P<part>\d*))?(?:[eE](?P<exponent>[+-]?\d{1,4}))?")
# What UTF-8 has beyond #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF.
_CONTROLS = set(range(0x20)) - set(b"\t\n\r")
_MARKED = bytes(0x7F if byte in _CONTROLS else byte for byte in range(256))  # a table that changes them only: half the time of deleting
_LAST_TWO = ("\ufffe".encode(), "\uffff".encode())


def _has_last(text: bytes) -> bool:
    return any(character in text for character in _LAST_TWO)


def encoded(text: str) -> bytes | None:
    """`text` in UTF-8; None when SQS does not allow a character of it in a message."""
    try:
        found = text.encode()
    except UnicodeEncodeError:
        return None
    return found if found.translate(_MARKED) == found and (found.isascii() or not _has_last(found)) else None


def decoded(body: bytes) -> str | None:
    """The text of which `body` is the UTF-8; None when it is none, or has a character that SQS does not allow in a message."""
    try:
        found = body.decode()
    except UnicodeDecodeError:
        return None
    return found if body.translate(_MARKED) == body and (body.isascii() or not _has_last(body)) else None


def incoming(given: Mapping[str, AttributeValue] | None) -> dict[str, Attribute]:
    """The user's attributes of a message to send. Raises SqsError for a name, type or value that SQS refuses."""
    if not given:
        return {}
    if len(given) > MESSAGE_ATTRIBUTES:
        raise invalid("MessageAttributes", len(given), f"A message may have {MESSAGE_ATTRIBUTES} attributes.")
    return {_checked_name(name): _incoming(name, value) for name, value in given.items()}


def incoming_system(given: Mapping[str, AttributeValue] | None) -> dict[str, Attribute]:
    """The system attributes of a message to send, by the names they are stored under. Raises SqsError."""
    if not given:
        return {}
    for name, value in given.items():
        if name != TRACE_HEADER or value.data_type != "String":
            raise invalid("MessageSystemAttributes", name, f"The one system attribute that may be sent is {TRACE_HEADER}, a String.")
    return {_STORED_TRACE_HEADER: _incoming(TRACE_HEADER, given[TRACE_HEADER])}


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name.lower().startswith(_RESERVED):
        reason = "1 to 256 letters, digits, _, - and single dots, none at an end; not beginning with AWS. or Amazon."
        raise invalid("MessageAttribute.Name", name, reason)
    return name


def _incoming(name: str, given: AttributeValue) -> Attribute:
    where = f"The message attribute '{name}'"
    if given.string_list_values or given.binary_list_values:
        raise invalid("MessageAttributes", name, "Message attribute list values are not supported.")
    if not given.data_type:
        raise missing(f"MessageAttributes.{name}.DataType")
    found = _DATA_TYPE.fullmatch(given.data_type)
    if found is None or len(given.data_type) > DATA_TYPE_CHARACTERS:
        raise invalid("DataType", given.data_type, f"{where} must be String, Number or Binary, each with .label at will.")
    if found[1] == "Binary":
        if not given.binary_value or given.string_value is not None:
            raise invalid("MessageAttributes", name, f"{where} of type Binary must contain a BinaryValue that is not empty, and no other.")
        return Attribute(given.data_type, given.binary_value)
    text = given.string_value
    if not text or given.binary_value is not None:
        raise invalid("MessageAttributes", name, f"{where} of type {found[1]} must contain a StringValue that is not empty, and no other.")
    value = encoded(text)
    if value is None:
        raise invalid("MessageAttributes", name, f"{where} has characters that SQS does not allow.")
    if found[1] == "Number" and not _is_number(text):
        raise invalid("MessageAttributes", text, f"{where} must be a number of up to {NUMBER_DIGITS} digits, from 10^-128 to 10^126.")
    return Attribute(given.data_type, value)


def _is_number(text: str) -> bool:
    """Whether SQS takes `text` for a number: its digits and the power of ten of the first one that counts."""
    found = _NUMBER.fullmatch(text) if len(text) <= 400 else None
    if found is None or not any(character.isdecimal() for character in text.lower().partition("e")[0]):
        return False
    whole, part = found["whole"], found["part"] or ""
    digits = (whole + part).strip("0")
    if not digits:
        return True
    first = len(whole) - 1 if whole else -1 - (len(part) - len(part.lstrip("0")))
    power = first + int(found["exponent"] or 0)
    return len(digits) <= NUMBER_DIGITS and NUMBER_EXPONENTS[0] <= power <= NUMBER_EXPONENTS[1]


def triples(attributes: Mapping[str, Attribute]) -> list[tuple[str, str, bytes]]:
    """Name, data type and value of each, for the MD5."""
    return [(name, attribute.type, attribute.value) for name, attribute in attributes.items()]


def wanted(attributes: Mapping[str, Attribute], names: Sequence[str] | None) -> dict[str, Attribute]:
    """The user's attributes that a receive with MessageAttributeNames `names` shows, with data types in SQS's spelling."""
    if not names or not attributes:
        return {}
    everything = "All" in names or ".*" in names
    exact, prefixes = frozenset(names), tuple(name[:-2] for name in names if name.endswith(".*"))
    return {
        name: Attribute(_data_type(attribute.type), attribute.value)
        for name, attribute in attributes.items()
        if name not in _HIDDEN and (everything or name in exact or name.startswith(prefixes))
    }


def _data_type(type: str) -> str:
    """The native API says `string` for what SQS calls `String`; labels stay as they are."""
    kind, dot, label = type.partition(".")
    return kind.capitalize() + dot + label


def attribute_reply(attribute: Attribute) -> AttributeReply:
    """An attribute for the wire. Text that is none (native producers can say so) is shown with its bad bytes replaced."""
    if attribute.type.startswith("Binary"):
        return AttributeReply(data_type=attribute.type, binary_value=attribute.value)
    return AttributeReply(data_type=attribute.type, string_value=attribute.value.decode("utf-8", "replace"))


def stored_text(attributes: Mapping[str, Attribute], name: str) -> str | None:
    """The text of a stored attribute of ours, or None."""
    found = attributes.get(name)
    return None if found is None else found.value.decode("utf-8", "replace")


def trace_header(attributes: Mapping[str, Attribute]) -> str | None:
    """The X-Ray trace header that the sender gave, or None."""
    return stored_text(attributes, _STORED_TRACE_HEADER)


def of_user(stored: Mapping[str, Attribute]) -> list[tuple[str, str, bytes]]:
    """What the user gave of the attributes to send, for the MD5."""
    return [one for one in triples(stored) if one[0] != _STORED_TRACE_HEADER]


def of_system(stored: Mapping[str, Attribute]) -> list[tuple[str, str, bytes]]:
    """The system attributes among those to send, under SQS's own names, for the MD5."""
    found = stored.get(_STORED_TRACE_HEADER)
    return [] if found is None else [(TRACE_HEADER, found.type, found.value)]
