"""UserProperties and SystemProperties: MNS's elements and the engine's attributes.

A system property travels as an attribute whose name begins with `mns:`, which no user property may.
What other dialects send has MNS's four types by the first word of its own.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final

from facade.dialects.mns.wire.errors import INVALID_ARGUMENT, MALFORMED_XML, MnsError
from facade.dialects.mns.wire.replies import Item
from facade.dialects.mns.wire.xml import Element
from schemas.records import Attribute, Message
from schemas.records.trace_context import MNS_TRACEPARENT, MNS_TRACESTATE, of_attributes
from schemas.vocabulary import BOOLEAN_TYPE, SOURCE_QUEUE_ATTRIBUTE, TRACE_ATTRIBUTE

MOST: Final = 50
VALUE_CHARACTERS: Final = 4096
_NAME: Final = re.compile(r"(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_STORED_TYPES: Final = {"STRING": "string", "NUMBER": "number", "BOOLEAN": BOOLEAN_TYPE, "BINARY": "binary"}
_SYSTEM: Final = "mns:"
# A client may give these; the others tell of dead letters.
_SYSTEM_NAMES: Final = frozenset(("traceparent", "tracestate", "baggage"))
# Of other dialects, which no user has given.
_HIDDEN: Final = frozenset((SOURCE_QUEUE_ATTRIBUTE, TRACE_ATTRIBUTE))


def incoming(message: Element) -> dict[str, Attribute]:
    """The attributes of a message to send. Raises MnsError."""
    found: dict[str, Attribute] = {}
    for name, kind, value in _triples(message, "UserProperties", "PropertyValue"):
        if not _NAME.fullmatch(name):
            raise MnsError(INVALID_ARGUMENT, f"The name of a user property is invalid: {name[:300]!r}")
        found[name] = _attribute(name, kind, value)
    if len(found) > MOST:
        raise MnsError(INVALID_ARGUMENT, f"A message may have {MOST} user properties, given {len(found)}")
    for name, kind, value in _triples(message, "SystemProperties", "SystemPropertyValue"):
        if name not in _SYSTEM_NAMES or kind != "STRING":
            names = ", ".join(sorted(_SYSTEM_NAMES))
            raise MnsError(
                INVALID_ARGUMENT, f"A system property should be one of {names}, of type STRING, given {name[:100]!r}"
            )
        found[_SYSTEM + name] = _attribute(name, kind, value)
    return found


def _triples(message: Element, group: str, one: str) -> list[tuple[str, str, str]]:
    """Name, type and value of each property. Raises MnsError for one that is named twice, or lacks
    a part.
    """
    found = message.child(group)
    triples: dict[str, tuple[str, str, str]] = {}
    for child in () if found is None else found.children:
        if child.name != one:
            raise MnsError(MALFORMED_XML, f"{group} has {one} elements, given {child.name[:100]}")
        name, kind, value = child.value("Name"), child.value("Type"), child.value("Value")
        if name is None or kind is None or value is None:
            raise MnsError(MALFORMED_XML, f"a {one} has Name, Value and Type")
        if name in triples:
            raise MnsError(INVALID_ARGUMENT, f"The property {name[:300]!r} is given twice")
        triples[name] = (name, kind.strip(), value)
    return list(triples.values())


def _attribute(name: str, kind: str, value: str) -> Attribute:
    stored = _STORED_TYPES.get(kind)
    if stored is None:
        raise MnsError(
            INVALID_ARGUMENT,
            f"The type of property {name!r} should be one of {', '.join(_STORED_TYPES)}, given {kind[:100]!r}",
        )
    if len(value) > VALUE_CHARACTERS:
        raise MnsError(
            INVALID_ARGUMENT,
            f"The value of property {name!r} may have {VALUE_CHARACTERS} characters, given {len(value)}",
        )
    if kind == "BINARY":
        try:
            return Attribute(stored, b64decode(value.encode(), validate=True))
        except (UnicodeError, Base64Error):
            raise MnsError(INVALID_ARGUMENT, f"The value of the BINARY property {name!r} is not Base64") from None
    if kind == "BOOLEAN" and value.lower() not in ("true", "false"):
        raise MnsError(
            INVALID_ARGUMENT,
            f"The value of the BOOLEAN property {name!r} should be true or false, given {value[:100]!r}",
        )
    return Attribute(stored, value.encode())


def outgoing(message: Message) -> tuple[Item, Item]:
    """UserProperties and SystemProperties of a message; those of a message without any are left
    out.
    """
    user = [("PropertyValue", _parts(name, one)) for name, one in message.attributes.items() if _is_user(name)]
    system = [
        ("SystemPropertyValue", _parts(name.removeprefix(_SYSTEM), one))
        for name, one in message.attributes.items()
        if name.startswith(_SYSTEM)
    ]
    if message.attributes and MNS_TRACEPARENT not in message.attributes:
        system += _context(message)
    if message.origin is not None and SOURCE_QUEUE_ATTRIBUTE in message.attributes:
        system.append(
            (
                "SystemPropertyValue",
                _parts("DLQOriginMessageId", Attribute("string", message.origin.original_id.encode())),
            )
        )
    return ("UserProperties", user or None), ("SystemProperties", system or None)


def _context(message: Message) -> list[tuple[str, tuple[Item, Item, Item]]]:
    """The trace context that another dialect has stored, as system properties."""
    context = of_attributes(message.attributes)
    if context is None:
        return []
    texts = {MNS_TRACEPARENT: context.traceparent, MNS_TRACESTATE: context.state}
    return [
        ("SystemPropertyValue", _parts(name.removeprefix(_SYSTEM), Attribute("string", text.encode())))
        for name, text in texts.items()
        if text and name not in message.attributes
    ]


def _is_user(name: str) -> bool:
    return name not in _HIDDEN and not name.startswith(_SYSTEM)


def _parts(name: str, attribute: Attribute) -> tuple[Item, Item, Item]:
    kind = _kind(attribute.type.lower())
    value = b64encode(attribute.value).decode() if kind == "BINARY" else attribute.value.decode("utf-8", "replace")
    return ("Name", name), ("Value", value), ("Type", kind)


def _kind(stored: str) -> str:
    if stored == _STORED_TYPES["BOOLEAN"]:
        return "BOOLEAN"
    return {"number": "NUMBER", "binary": "BINARY"}.get(stored.partition(".")[0], "STRING")
