"""What the tests of EMQ's wire are made of: all structs, values of them, and the library's own
protocols in Python, which share nothing with the C codec and our JSON but the thrift_spec.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st
from thrift.protocol.TBase import TBase
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TJSONProtocol import TJSONProtocol
from thrift.Thrift import TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from facade.dialects.emq.wire.codec import Codec
from facade.dialects.emq.wire.kinds import Kind, Shape, Wire
from facade.dialects.emq.wire.packed import BINARY, COMPACT
from facade.dialects.emq.wire.structs import access as _access
from facade.dialects.emq.wire.structs import message as _message
from facade.dialects.emq.wire.structs import queue as _queue
from facade.dialects.emq.wire.structs import shared as _shared
from facade.dialects.emq.wire.structs import statistics as _statistics
from facade.dialects.emq.wire.tjson import JSON

MODULES = (_shared, _access, _message, _queue, _statistics)
STRUCTS = {
    name: found
    for module in MODULES
    for name, found in vars(module).items()
    if isinstance(found, type) and issubclass(found, Wire) and found is not Wire
}
TYPES = {
    "binary": b"application/x-thrift-binary",
    "compact": b"application/x-thrift-compact",
    "json": b"application/x-thrift-json",
}
CODECS: dict[str, Codec] = {"binary": BINARY, "compact": COMPACT, "json": JSON}
LIBRARY: dict[str, Callable[[Any], Any]] = {
    "binary": TBinaryProtocol,
    "compact": TCompactProtocol,
    "json": TJSONProtocol,
}

# The library's JSON writes other control characters as they are, which is no JSON.
_text = st.text(st.one_of(st.characters(exclude_categories=["Cs", "Cc"]), st.sampled_from("\b\f\n\r\t")), max_size=12)
_scalars: dict[int, st.SearchStrategy[Any]] = {
    TType.BOOL: st.booleans(),
    TType.I32: st.integers(-(1 << 31), (1 << 31) - 1),
    TType.I64: st.integers(-(1 << 63), (1 << 63) - 1),
    TType.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    TType.STRING: _text,
}


@cache
def values(kind: Kind) -> st.SearchStrategy[Any]:
    """Values of a type; of a struct with any of its optional fields unset."""
    if kind.shape is not None:
        fields = {
            field.attribute: values(field.kind) if field.is_required else st.none() | values(field.kind)
            for field in kind.shape.fields
        }
        return st.builds(kind.shape.make, **fields)
    if kind.key is not None and kind.item is not None:
        return st.dictionaries(values(kind.key), values(kind.item), max_size=2)
    if kind.item is not None:
        return st.lists(values(kind.item), max_size=2) | st.lists(values(kind.item), min_size=15, max_size=16)
    return st.binary(max_size=8) if kind.is_bytes else _scalars[kind.code]


@cache
def oracle(shape: Shape) -> Any:
    """The struct as the library's generator would declare it."""
    rows = {
        field.number: (field.number, field.kind.code, field.attribute, _arguments(field.kind), None)
        for field in shape.fields
    }
    attributes = tuple(field.attribute for field in shape.fields)

    def init(self: Any, **given: Any) -> None:
        for attribute in attributes:
            setattr(self, attribute, given.get(attribute))

    spec = tuple(rows.get(number) for number in range(max(rows, default=-1) + 1))
    return type(shape.name, (TBase,), {"__slots__": attributes, "__init__": init, "thrift_spec": spec})


def _arguments(kind: Kind) -> Any:
    if kind.shape is not None:
        return [oracle(kind.shape), oracle(kind.shape).thrift_spec]
    if kind.item is None:
        return "BINARY" if kind.is_bytes else "UTF8"
    item = (kind.item.code, _arguments(kind.item))
    return (*item, False) if kind.key is None else (kind.key.code, _arguments(kind.key), *item, False)


def translated(value: Any, kind: Kind) -> Any:
    """A value of ours as one of the library's."""
    if value is None:
        return None
    if kind.shape is not None:
        fields = {
            field.attribute: translated(getattr(value, field.attribute), field.kind) for field in kind.shape.fields
        }
        return oracle(kind.shape)(**fields)
    if kind.key is not None and kind.item is not None:
        return {translated(key, kind.key): translated(item, kind.item) for key, item in value.items()}
    return [translated(item, kind.item) for item in value] if kind.item is not None else value


def message(
    protocol: str, name: str, write: Callable[[Any], None], *, kind: int = TMessageType.CALL, seqid: int = 7
) -> bytes:
    """A message of the library's, of which `write` writes the struct."""
    buffer = TMemoryBuffer()
    library = LIBRARY[protocol](buffer)
    library.writeMessageBegin(name, kind, seqid)
    write(library)
    library.writeMessageEnd()
    written: bytes = buffer.getvalue()
    return written


def struct(*fields: tuple[int, int, Callable[[Any], None]]) -> Callable[[Any], None]:
    """Writes a struct of fields: number, type, and what writes the value."""

    def write(library: Any) -> None:
        library.writeStructBegin("")
        for number, code, value in fields:
            library.writeFieldBegin("", code, number)
            value(library)
            library.writeFieldEnd()
        library.writeFieldStop()
        library.writeStructEnd()

    return write


def text(value: str) -> Callable[[Any], None]:
    """Writes a string."""
    return lambda library: library.writeString(value)


def number(value: int) -> Callable[[Any], None]:
    """Writes an i32."""
    return lambda library: library.writeI32(value)


def listing(code: int, *items: Callable[[Any], None]) -> Callable[[Any], None]:
    """Writes a list of elements of a type."""

    def write(library: Any) -> None:
        library.writeListBegin(code, len(items))
        for item in items:
            item(library)
        library.writeListEnd()

    return write


def mapping(key: int, code: int, *pairs: tuple[Callable[[Any], None], Callable[[Any], None]]) -> Callable[[Any], None]:
    """Writes a map of elements of a type."""

    def write(library: Any) -> None:
        library.writeMapBegin(key, code, len(pairs))
        for name, item in pairs:
            name(library)
            item(library)
        library.writeMapEnd()

    return write
