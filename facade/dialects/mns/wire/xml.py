"""XML as it comes: bytes to elements, read by expat within bounds.

A document type is refused, so there are no entities, no external ones, and nothing expands: a body
takes memory in proportion to its bytes. Names are taken in the namespace of MNS, with and without
its last slash, and without any (reference/mns.md section 0).
"""

from __future__ import annotations

from typing import Any, Final
from xml.parsers import expat

from msgspec import Struct

from facade.dialects.mns.wire.errors import MALFORMED_XML, MnsError

# Room for what a send of MNS holds, 64 KiB, with every character escaped, and for a message of the
# largest queue of the service as it is.
MAX_BYTES: Final = 1_114_112
MAX_DEPTH: Final = 8
# Of a tag: no element of MNS has attributes, and a namespace is short. expat keeps what is not
# whole and reads it again with every piece, so the pieces are as long.
MAX_TAG: Final = 4096
# Of a batch of 16 messages with 50 properties of four elements each, twice.
MAX_ELEMENTS: Final = 8000
NAMESPACE: Final = "http://mns.aliyuncs.com/doc/v1"
_MARKS_OF_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")  # expat believes them more than what it is told
_NAMESPACES: Final = frozenset((NAMESPACE, f"{NAMESPACE}/"))


class Element(Struct):
    """An element: its name without a namespace, the text in it, and the elements in it in order."""

    name: str
    text: str
    children: list[Element]

    def child(self, name: str) -> Element | None:
        """The one child of that name, None = there is none. Raises MnsError for a second."""
        found = [child for child in self.children if child.name == name]
        if len(found) > 1:
            raise MnsError(MALFORMED_XML, f"{self.name} has {name} {len(found)} times, it may have it once")
        return found[0] if found else None

    def value(self, name: str) -> str | None:
        """The text of the one child of that name, None = there is none. Raises MnsError for a
        second, or one that has elements.
        """
        found = self.child(name)
        if found is not None and found.children:
            raise MnsError(MALFORMED_XML, f"{name} of {self.name} must be text, it has elements")
        return None if found is None else found.text


class _Builder:
    """What expat calls. An error of a handler ends the parse."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[tuple[Element, list[str]]] = []
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > MAX_ELEMENTS:
            raise MnsError(MALFORMED_XML, f"the body has more than {MAX_ELEMENTS} elements")
        if len(self._open) >= MAX_DEPTH:
            raise MnsError(MALFORMED_XML, f"the elements of the body are more than {MAX_DEPTH} deep")
        element = Element(_local(name), "", [])
        if self._open:
            self._open[-1][0].children.append(element)
        else:
            self.root = element
        self._open.append((element, []))

    def text(self, text: str) -> None:
        if self._open:
            self._open[-1][1].append(text)

    def end(self, name: str) -> None:
        element, parts = self._open.pop()
        element.text = "".join(parts)

    def refuse(self, *about: Any) -> None:
        raise MnsError(MALFORMED_XML, "the body must not have a document type or entities")


def _local(name: str) -> str:
    namespace, _, local = name.rpartition(" ")
    if namespace and namespace not in _NAMESPACES:
        raise MnsError(MALFORMED_XML, f"elements must be in the namespace {NAMESPACE}, given {namespace[:200]}")
    return local


def parse(body: bytes) -> Element:
    """The root of a body in UTF-8. Raises MnsError for what is no XML, or too much of it."""
    if len(body) > MAX_BYTES:
        raise MnsError(MALFORMED_XML, f"a body may have {MAX_BYTES} bytes, given {len(body)}")
    if body[:2] in _MARKS_OF_UTF16:
        raise MnsError(MALFORMED_XML, "the body is not XML in UTF-8")
    # Said here, the encoding that a body declares of itself does not count.
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True
    builder = _Builder()
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = builder.refuse
    parser.ExternalEntityRefHandler = parser.UnparsedEntityDeclHandler = builder.refuse  # type: ignore[assignment]
    try:
        _feed(parser, body)
    except expat.ExpatError as error:
        about = f"{expat.errors.messages[error.code]} at line {error.lineno}"
        raise MnsError(MALFORMED_XML, f"the body is not XML in UTF-8: {about}") from None
    except (UnicodeError, ValueError):
        raise MnsError(MALFORMED_XML, "the body is not XML in UTF-8") from None
    assert builder.root is not None  # a document without a root is an error of expat
    return builder.root


def _feed(parser: expat.XMLParserType, body: bytes) -> None:
    """Has `parser` read the body. Raises MnsError for a tag, comment or name that is too long,
    before it is read; and ExpatError.
    """
    for start in range(0, len(body), MAX_TAG):
        piece = body[start : start + MAX_TAG]
        parser.Parse(piece, False)
        if start + len(piece) - parser.CurrentByteIndex > MAX_TAG:
            raise MnsError(MALFORMED_XML, f"a tag may have {MAX_TAG} bytes")
    parser.Parse(b"", True)
