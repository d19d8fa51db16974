"""Message attributes and system attributes: SQS's form <-> the engine's, with SQS's rules and the
filter of a receive.

What SQS calls system attributes travels as attributes of the message whose names begin with `AWS.`,
which SQS refuses from users.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from facade.dialects.sqs.wire.errors import INVALID_PARAMETER, SqsError
from facade.dialects.sqs.wire.limits import (
    DATA_TYPE_CHARACTERS,
    MESSAGE_ATTRIBUTES,
    NAME_CHARACTERS,
    NUMBER_DIGITS,
    NUMBER_EXPONENTS,
)
from facade.dialects.sqs.wire.replies import AttributeReply
from facade.dialects.sqs.wire.shapes import AttributeValue
from facade.dialects.sqs.wire.words import GIVEN_CHARACTERS
from schemas.records import Attribute
from schemas.records.trace_context import of_attributes
from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE, TRACE_ATTRIBUTE

TRACE_HEADER = "AWSTraceHeader"
_HIDDEN = frozenset((TRACE_ATTRIBUTE, SOURCE_QUEUE_ATTRIBUTE))

_EVERYTHING = frozenset(("All", "*", ".*"))
_NAME = re.compile(r"(?!\.)(?!.*\.\.)[\w.-]{1,256}(?<!\.)")  # AWS takes letters beyond ASCII too
_RESERVED = ("aws.", "amazon.")
# The label's characters and length are the engine's.
_DATA_TYPE = re.compile(r"(String|Number|Binary)(\.[A-Za-z0-9.]{1,200})?")
_TRACE = re.compile(rb"[ -~]{1,512}")
# Zeros can be read in one way only: of two, the time would grow with the square of the length.
_NUMBER = re.compile(
    r"[+-]?0*(?P<whole>(?:[1-9]\d*)?)(?:\.(?P<part>\d*))?(?:[eE](?P<exponent>[+-]?\d{1,4}))?", re.ASCII
)
# What UTF-8 has beyond #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF.
_CONTROLS = set(range(0x20)) - set(b"\t\n\r")
# A table that changes them only takes half the time of deleting.
_MARKED = bytes(0x7F if byte in _CONTROLS else byte for byte in range(256))
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
    """The text of which `body` is the UTF-8; None when it is none, or has a character that SQS does
    not allow in a message.
    """
    try:
        found = body.decode()
    except UnicodeDecodeError:
        return None
    return found if body.translate(_MARKED) == body and (body.isascii() or not _has_last(body)) else None


def incoming(given: Mapping[str, AttributeValue] | None) -> dict[str, Attribute]:
    """The user's attributes of a message to send. Raises SqsError for a name, type or value that
    SQS refuses.
    """
    if not given:
        return {}
    if len(given) > MESSAGE_ATTRIBUTES:
        raise _refused(
            f"Number of message attributes [{len(given)}] exceeds the allowed maximum [{MESSAGE_ATTRIBUTES}]."
        )
    return {_checked_name(name): _incoming(name, value) for name, value in given.items()}


def incoming_system(given: Mapping[str, AttributeValue] | None) -> dict[str, Attribute]:
    """The system attributes of a message to send, by the names they are stored under. Raises
    SqsError.
    """
    if not given:
        return {}
    for name, value in given.items():
        if name != TRACE_HEADER or value.data_type != "String":
            raise _refused(f"Message system attribute name '{name[:GIVEN_CHARACTERS]}' is invalid.")
    return {TRACE_ATTRIBUTE: _incoming(TRACE_HEADER, given[TRACE_HEADER])}


def traced(trace: bytes) -> dict[str, Attribute]:
    """The system attribute that stands for the X-Ray header of a request; none of one that is no
    such header.
    """
    return {TRACE_ATTRIBUTE: Attribute("String", trace)} if _TRACE.fullmatch(trace) else {}


def _refused(text: str) -> SqsError:
    return SqsError(INVALID_PARAMETER, text)


def _checked_name(name: str) -> str:
    if not name:
        raise _refused("The request must contain non-empty message (user) attribute names.")
    if len(name) > NAME_CHARACTERS:
        raise _refused(f"Message (user) attribute name must be shorter than {NAME_CHARACTERS} bytes.")
    if name.lower().startswith(_RESERVED):
        about = "beginning with 'AWS.' or 'Amazon'. These strings are reserved for internal use."
        raise _refused(f"You can't use message attribute names {about}")
    if not _NAME.fullmatch(name):
        about = "Attribute name can contain A-Z, a-z, 0-9, underscore (_), hyphen (-), and period (.) characters."
        raise _refused(f"The message attribute name '{name}' is invalid. {about}")
    return name


def _incoming(name: str, given: AttributeValue) -> Attribute:
    named = f"essage (user) attribute '{name}'"
    if given.string_list_values or given.binary_list_values:
        raise _refused("Message attribute list values in SendMessage operation are not supported.")
    if not given.data_type:
        raise _refused(f"The m{named} must contain a non-empty message attribute value.")
    if len(given.data_type) > DATA_TYPE_CHARACTERS:
        raise _refused(f"Message (user) attribute type must be shorter than {DATA_TYPE_CHARACTERS} bytes.")
    found = _DATA_TYPE.fullmatch(given.data_type)
    if found is None:
        about = "You must use only the following supported type prefixes: Binary, Number, String."
        raise _refused(f"The type of m{named} is invalid. {about}")
    if found[1] == "Binary":
        if not given.binary_value or given.string_value is not None:
            raise _refused(f"M{named} must contain a non-empty value of type 'Binary'.")
        return Attribute(given.data_type, given.binary_value)
    text = given.string_value
    if not text or given.binary_value is not None:
        raise _refused(f"M{named} must contain a non-empty value of type '{found[1]}'.")
    value = encoded(text)
    if value is None:
        raise _refused(f"M{named} has characters that are not allowed in a message.")
    if found[1] == "Number" and not _is_number(text):
        raise _refused(f"Can't cast the value of m{named} to a number.")
    return Attribute(given.data_type, value)


def _is_number(text: str) -> bool:
    """Whether SQS takes `text` for a number: its digits and the power of ten of the first one that
    counts.
    """
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


class Wanted:
    """What the MessageAttributeNames of a receive ask for; made once for all its messages, for a
    request may have thousands of names.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._everything = not _EVERYTHING.isdisjoint(names)
        self._names = frozenset(names)
        self._prefixes = frozenset(name[:-2] for name in names if name.endswith(".*"))

    def of(self, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
        """The user's attributes among these that are shown, with data types in SQS's spelling."""
        return {
            name: Attribute(_data_type(attribute.type), attribute.value)
            for name, attribute in attributes.items()
            if name not in _HIDDEN and self._asks(name)
        }

    def _asks(self, name: str) -> bool:
        if self._everything or name in self._names:
            return True
        return bool(self._prefixes) and any(name[:end] in self._prefixes for end in range(len(name) + 1))


def _data_type(type: str) -> str:
    """The native API says `string` for what SQS calls `String`; labels stay as they are."""
    kind, dot, label = type.partition(".")
    return kind.capitalize() + dot + label


def attribute_reply(attribute: Attribute) -> AttributeReply:
    """An attribute for the wire. Text that is none (native producers can say so) is shown with its
    bad bytes replaced.
    """
    if attribute.type.startswith("Binary"):
        return AttributeReply(data_type=attribute.type, binary_value=attribute.value)
    return AttributeReply(data_type=attribute.type, string_value=attribute.value.decode("utf-8", "replace"))


def stored_text(attributes: Mapping[str, Attribute], name: str) -> str | None:
    """The text of a stored attribute of ours, or None."""
    found = attributes.get(name)
    return None if found is None else found.value.decode("utf-8", "replace")


def trace_header(attributes: Mapping[str, Attribute]) -> str | None:
    """The X-Ray trace header that the sender gave, or the context of the message as one; None = it
    has none.
    """
    given = stored_text(attributes, TRACE_ATTRIBUTE)
    if given is not None or not attributes:
        return given
    context = of_attributes(attributes)
    return None if context is None else context.xray


def of_user(stored: Mapping[str, Attribute]) -> list[tuple[str, str, bytes]]:
    """What the user gave of the attributes to send, for the MD5."""
    return [one for one in triples(stored) if one[0] != TRACE_ATTRIBUTE]


def of_system(stored: Mapping[str, Attribute]) -> list[tuple[str, str, bytes]]:
    """The system attributes among those to send, under SQS's own names, for the MD5."""
    found = stored.get(TRACE_ATTRIBUTE)
    return [] if found is None else [(TRACE_HEADER, found.type, found.value)]
